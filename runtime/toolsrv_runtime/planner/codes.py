"""Names where a function takes codes: "the flight from Vienna to Zurich", and it wants VIE and ZRH.

Whether such a function is meant the matcher says of the task with the function's own examples in
the names' places; which code each name has, another function. Pure but for the matcher.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from toolsrv_registry.api import Parameter
from toolsrv_registry.matcher import MatchRequest, Span
from toolsrv_runtime.contract.format import Reranker, Step
from toolsrv_runtime.planner.bridging import SURE, Crossing, taker
from toolsrv_runtime.planner.matched import holds
from toolsrv_runtime.planner.scene import Offer, Scene, about, news
from toolsrv_runtime.values.facts import words

MEANT = 6.0
"""The matcher's log-odds from which on a function would serve the task."""

_CODE = re.compile(r"\bcodes?\b", re.IGNORECASE)
_NAME = re.compile(r"\bnames?\b", re.IGNORECASE)
_EXAMPLE = re.compile(r"[A-Z]{2,4}")
_EDGES = " ,;:.!?"

Names = dict[str, str]
"""What the task says for each parameter of a call: the function's key -> a name, or a code."""


def coded(scene: Scene, prior: Reranker, *, meant: bool) -> Crossing | None:
    """Return the next call towards a function that takes codes where the task tells names.

    One that was refused for names or, with ``meant``, that would serve the task if these were
    codes: first what tells each name's code, then the function itself. None where nothing is new,
    and for a function that is down or whose call a person declined.
    """
    meant = meant or bool(scene.path and _is_looked_up(scene.path[-1]))
    left = {step.move.function for step in scene.attempts if step.down or step.declined}
    for offer in scene.offers:
        examples = {} if offer.function.name in left else _examples(offer)
        named = _refused(offer, examples, scene) if examples else None
        if examples and named is None and meant:
            named = _meant(offer, examples, scene, prior)
        if named is None:
            continue
        about_it, names = named
        found = {key: _code(names[key], examples[key], scene) for key in names}
        unknown = next((names[key] for key, code in found.items() if not code), "")
        crossing = Crossing(about_it, offer, found)
        if not unknown and not _was_made(crossing, scene):
            return crossing
        if not unknown:
            continue
        wanted = words(_parameter(offer, next(iter(examples))).name).rpartition(" ")[2]
        if lookup := _lookup(unknown, wanted, scene, prior):
            return lookup
    return None


def _is_looked_up(step: Step) -> bool:
    """Whether a call was made to learn something of one name: it is about nothing else."""
    return step.ok and list(json.loads(step.move.arguments).values()) == [about(step)]


def _parameter(offer: Offer, key: str) -> Parameter:
    return offer.function.parameters[key]


def _examples(offer: Offer) -> dict[str, str]:
    """Return an example code for each value that a function must have; {} where one is no code."""
    required = offer.function.api.required
    found = {
        key: str(one.default)
        for key, one in offer.function.parameters.items()
        if one in required
        and _CODE.search(f"{words(one.name)} {one.description}")
        and not _NAME.search(one.description)
        and _EXAMPLE.fullmatch(str(one.default))
    }
    return found if required and len(found) == len(required) else {}


def _refused(offer: Offer, examples: Mapping[str, str], scene: Scene) -> tuple[str, Names] | None:
    """Return what a refused call was about, and the names that it was made with."""
    for step in scene.attempts:
        if step.move.function == offer.function.name and not step.ok:
            given = {key: str(value) for key, value in json.loads(step.move.arguments).items()}
            names = {key: given[key] for key in examples if key in given}
            plain = [one for key, one in names.items() if not _is_code(one, examples[key])]
            if plain and all(holds(scene.task, one) for one in plain):
                return about(step), names
    return None


def _meant(
    offer: Offer, examples: Mapping[str, str], scene: Scene, prior: Reranker
) -> tuple[str, Names] | None:
    """Return the words that ask for a function, and the names in them, were these codes."""
    api, task = offer.function.api, scene.task
    match = next(iter(prior.match(MatchRequest(task), [api])), None)
    if match is None:
        return None
    spans: dict[str, Span] = {}
    for key in examples:
        slot = match.parameters.get(_parameter(offer, key).name)
        best = [one for one in slot.best() if not one.source] if slot else []
        if not best or any(best[0].touches(one) for one in spans.values()):
            return None
        spans[key] = best[0]
    text = task
    for key, one in sorted(spans.items(), key=lambda item: -item[1].begin):
        text = f"{text[: one.begin]}{examples[key]}{text[one.end :]}"
    told = next(iter(prior.match(MatchRequest(text), [api])), None)
    if told is None or told.serves < MEANT:
        return None
    names = {key: task[one.begin : one.end].strip(_EDGES) for key, one in spans.items()}
    begin, end = min(one.begin for one in spans.values()), max(one.end for one in spans.values())
    return task[begin:end].strip(_EDGES), names


def _lookup(name: str, wanted: str, scene: Scene, prior: Reranker) -> Crossing | None:
    """Return the call that tells what of some kind a name has; None where none does, or did not."""
    best: tuple[float, Crossing] | None = None
    for question in (f"Which {wanted} does {name} have?", f"What is the {wanted} of {name}?"):
        matches = prior.match(MatchRequest(question), [one.function.api for one in scene.offers])
        for offer, match in zip(scene.offers, matches, strict=False):
            key = taker(offer, match, question, name)
            if key and match.serves >= SURE and (best is None or match.serves > best[0]):
                best = (match.serves, Crossing(name, offer, {key: name}))
    return None if best is None or _was_made(best[1], scene) else best[1]


def _code(name: str, example: str, scene: Scene) -> str:
    """Return the code of a name by what was answered of it, "" where nothing was; a code's own."""
    if _is_code(name, example):
        return name
    for step in scene.path:
        if step.ok and name in map(str, json.loads(step.move.arguments).values()):
            codes = [one for _, value in news(step) for one in _codes(value, example)]
            if codes:
                return codes[0]
    return ""


def _codes(text: str, example: str) -> list[str]:
    return re.findall(rf"\b[A-Z]{{{len(example)}}}\b", text)


def _is_code(said: str, example: str) -> bool:
    return len(said) == len(example) and said.isupper()


def _was_made(one: Crossing, scene: Scene) -> bool:
    return any(
        step.move.function == one.offer.function.name
        and json.loads(step.move.arguments) == one.arguments
        for step in scene.attempts
    )
