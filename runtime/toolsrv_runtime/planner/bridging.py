"""A call between a value of the task and the function that refused it.

"I change planes at ADD. What currency does that country have?": no country is called ADD, but an
airport is, and that is in one. What would have to be asked is put in words of our own; retriever
and matcher say what serves them. Pure but for the matcher.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import NamedTuple

from toolsrv_registry.api import Parameter
from toolsrv_registry.matcher import Match, MatchRequest
from toolsrv_runtime.contract.format import Reranker, Step
from toolsrv_runtime.planner.matched import holds
from toolsrv_runtime.planner.reading import grounding
from toolsrv_runtime.planner.scene import Offer, Scene, about, news
from toolsrv_runtime.values import kinds
from toolsrv_runtime.values.facts import words

SURE = 2.0
"""The matcher's log-odds from which on a function answers such a question."""

_KINDS = frozenset({"country", "name", "currency", "language", "zone", ""})
"""Kinds of values that another thing's name may stand for."""

_PLACES = frozenset({"country", "city", "state", "region", "continent", "zone"})
_SENTENCE = re.compile(r"(?<=[.?!;])\s+")


class Crossing(NamedTuple):
    """A call that is known whole: the words that it is about, the function, its arguments."""

    words: str
    offer: Offer
    arguments: dict[str, str]


def questions(scene: Scene) -> tuple[str, ...]:
    """Return what to ask about the value that the last call was refused for, () for no such one."""
    if (refused := _refused(scene)) is None:
        return ()
    parameter, value = refused
    wanted = words(parameter.name).rpartition(" ")[2]
    told = next(one for one in _SENTENCE.split(scene.task) if holds(one, value))
    named = f"the code {value}" if value.isupper() else value
    if wanted in _PLACES:
        return f"Which {wanted} is {named} in?", f"{told} Which {wanted} is that in?"
    return f"What is the {wanted} of {named}?", f"{told} What is its {wanted}?"


def bridge(scene: Scene, prior: Reranker) -> Crossing | None:
    """Return the call whose answer may be what the last one was refused for; None without one."""
    refused = _refused(scene)
    if refused is None:
        return None
    value = refused[1]
    called = {step.move.function for step in scene.attempts}
    offers = [one for one in scene.offers if one.function.name not in called]
    found: list[tuple[float, Crossing]] = []
    for question in questions(scene):
        matches = prior.match(MatchRequest(question), [one.function.api for one in offers])
        for offer, match in zip(offers, matches, strict=False):
            key = taker(offer, match, question, value)
            if key and match.serves >= SURE:
                found.append((match.serves, Crossing(value, offer, {key: value})))
    return max(found, key=lambda one: one[0])[1] if found else None


def crossed(scene: Scene) -> Crossing | None:
    """Return the refused call with what has been answered in between; None where nothing was."""
    if len(scene.path) < 2 or not scene.path[-1].ok:
        return None
    before, last = scene.path[-2:]
    refused = _refused_by(before, scene)
    if refused is None or about(last) != refused[1]:
        return None
    parameter, value = refused
    facts = [one for name, one in news(last) if grounding.is_named(parameter, name)]
    offer = next(one for one in scene.offers if one.function.name == before.move.function)
    if not facts:
        return None
    given = json.loads(before.move.arguments)
    arguments = {key: facts[0] if said == value else said for key, said in given.items()}
    return Crossing(about(before), offer, arguments)


def _refused(scene: Scene) -> tuple[Parameter, str] | None:
    return _refused_by(scene.path[-1], scene) if scene.path else None


def _refused_by(step: Step, scene: Scene) -> tuple[Parameter, str] | None:
    """Return the one name of the task that a failed call was refused for, and its parameter.

    Of several names that one which the refusal repeats; none that a call has taken for what it is.
    """
    offer = next((o for o in scene.offers if o.function.name == step.move.function), None)
    if step.ok or step.down or step.declined or offer is None:
        return None
    given = json.loads(step.move.arguments)
    named = [
        (one, str(given[key]))
        for key, one in offer.function.parameters.items()
        if key in given and _is_name(one, offer, str(given[key]), scene.task)
    ]
    before = scene.path[: scene.path.index(step)]
    known = {str(value) for one in before if one.ok for value in _given(one)}
    named = [(one, value) for one, value in named if value not in known]
    if len(given) > 1:
        named = [(one, value) for one, value in named if holds(step.observation, value)]
    return named[0] if len(named) == 1 else None


def _given(step: Step) -> Iterable[object]:
    arguments: dict[str, object] = json.loads(step.move.arguments)
    return arguments.values()


def _is_name(parameter: Parameter, offer: Offer, value: str, task: str) -> bool:
    """Whether a value is a name that a sentence of the task has, of a kind of thing."""
    kind = kinds.value_kind(parameter, offer.function.api)
    lettered = any(letter.isalpha() for letter in value)
    told = kind in _KINDS and not parameter.enum and lettered
    return told and any(holds(one, value) for one in _SENTENCE.split(task))


def taker(offer: Offer, match: Match, question: str, value: str) -> str:
    """Return the one parameter that must be given and whose value a question states; "" for none."""
    required = offer.function.api.required
    slot = match.parameters.get(required[0].name) if len(required) == 1 else None
    best = slot.best(1) if slot else []
    if not slot or not best or best[0].source or best[0].score <= slot.none:
        return ""
    said = question[best[0].begin : best[0].end].strip(" .,;:?!\"'")
    key = next((k for k, one in offer.function.parameters.items() if one is required[0]), "")
    return key if said == value else ""
