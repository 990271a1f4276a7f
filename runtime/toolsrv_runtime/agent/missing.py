"""Arguments of a call that nobody has given: those to ask a person for, and those to refuse.

Two judges have to agree. The matcher (``toolsrv_registry.matcher``), which was trained to say where
in a text the value of a parameter stands, says of a required one that it stands nowhere: asked about
the whole task, and, once calls have answered, again about the clause beside their answers. And what
the model wrote cannot be traced to the task, to what the person said since, or to a result
(``evidence``). One judge alone errs: a value may be meant without being spelled, and a made-up one may
occur by chance. Where the matcher sees another value in the task, or rules the function out, there is
nothing to ask: the call is refused (``doubts``). Choices (allowed values, yes or no) and what has a
default are the model's to make.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from toolsrv_catalogs.text import clean
from toolsrv_registry.api import Api, Parameter
from toolsrv_registry.functions import Function
from toolsrv_registry.matcher import Asked, Match
from toolsrv_runtime.agent.coverage import NEEDED, RULED_OUT
from toolsrv_runtime.agent.tools import describe
from toolsrv_runtime.contract.questions import Question
from toolsrv_runtime.evidence import trace
from toolsrv_runtime.evidence.claims import fold, typed
from toolsrv_runtime.formats.base import Move, Prior, View
from toolsrv_runtime.values.facts import FULL_LIMIT, facts, said_by, words

NOWHERE = 0.5
"""Probability of "nowhere" from which on the matcher says that a value is missing.

Of the 790 required arguments of the 564 right calls of tasks_open and tasks_fresh three that cannot
be traced have it, or no likely words (``SOMEWHERE``): one of them, a feast's country, is really not told. Of the 30 values that
missing_values leaves out 22 are seen.
"""

SOMEWHERE = 0.25
"""Probability of the likeliest words below which a value stands in none of them."""

SERVES = -1.5
"""Log-odds that the task asks for a function, below which its arguments are no reason to ask."""

FACTS = 12
FACT_CHARACTERS = 600
"""What the matcher reads of each result."""

TEXT_LIMIT = 240
NAME_LIMIT = 80

_WORD = re.compile(r"\w+")
_NUMBER = re.compile(r"\d[\d.,]*")


@dataclass(frozen=True, slots=True)
class Known:
    """What is known at a node: the task, what else a person or the agent said, the responses."""

    task: str
    said: tuple[str, ...] = ()
    responses: tuple[Any, ...] = ()


def known(view: View, *also: str) -> Known:
    """Return what is known at a node; ``also`` are further texts, as today's date."""
    said = (*(answer for _, answer in view.answers), *also)
    return Known(
        "\n".join((view.task, *(text for pair in view.before for text in pair))),
        said,
        tuple(one.response for one in (*view.earlier, *view.path, *view.tried) if one.ok),
    )


def missing(
    function: Function,
    arguments: Mapping[str, Any],
    held: Known,
    prior: Prior,
    asked: Collection[str] = (),
) -> tuple[str, ...]:
    """Return the keys of the required arguments that nobody has given, in the function's order.

    Of those that a person was ``asked`` for before it is known that the task does not say them. None
    where the matcher is silent, or does not see that the task asks for the function.
    """
    api = function.api
    required = {one.name for one in api.required}
    suspects = {
        key: parameter
        for key, parameter in function.parameters.items()
        if parameter.name in required
        and not _is_choice(parameter)
        and not parameter.has_default
        and not is_traced(arguments.get(key), held)
    }
    if not suspects:
        return ()
    readings = list(_readings(api, held, prior))
    if not readings or readings[0].serves < SERVES:
        return ()
    return tuple(
        key
        for key, parameter in suspects.items()
        if key in asked or all(_is_nowhere(one, parameter.name) for one in readings)
    )


def doubts(
    function: Function, arguments: Mapping[str, Any], held: Known, prior: Prior
) -> dict[str, str]:
    """Return key -> what the task says instead of a value that stands nowhere, "" for nothing.

    A model whose call failed likes to try it with another number, or to call something else with
    values of its own. Two judges again: the value cannot be traced, and the matcher sees another
    number for the argument in the task, or rules the function out. Not doubted are a number of the same
    digits (250 g of "0.25 kg"), and dates where the task says none in full: they are counted ("in 3
    weeks").
    """
    suspects = {
        key: parameter
        for key, parameter in function.parameters.items()
        if key in arguments and not _is_choice(parameter) and not is_traced(arguments[key], held)
    }
    match = next(iter(prior.match(Asked(held.task), [function.api])), None) if suspects else None
    if match is None:
        return {}
    required = {one.name for one in function.api.required}
    found = {}
    for key, parameter in suspects.items():
        slot = match.parameters.get(parameter.name)
        if match.serves < RULED_OUT and parameter.name in required:
            found[key] = ""
        if slot is None or math.exp(slot.none) >= NOWHERE:
            continue
        spans = slot.best(1)
        words = held.task[spans[0].begin : spans[0].end] if spans and not spans[0].source else ""
        if _differs(str(arguments[key]), words):
            found[key] = _line(words)
    return found


def is_traced(value: Any, held: Known) -> bool:
    """Whether a value stands in what is known, as it is written or as it may be written otherwise.

    Of a list or an object one part suffices. ``None`` and an empty text are no values.
    """
    leaves = [one for one in _leaves(value) if one not in ("", None)]
    if any(isinstance(one, bool) for one in leaves):
        return True
    text = "\n".join((held.task, *held.said))
    results = list(enumerate(held.responses, 1))
    sources = [fold(text), *(fold(said_by(one, FULL_LIMIT * 10)[0]) for one in held.responses)]
    tokens = [f" {' '.join(_WORD.findall(one))} " for one in sources]
    for leaf in leaves:
        run = " ".join(_WORD.findall(fold(str(leaf))))
        if run and any(f" {run} " in one for one in tokens):
            return True
        if trace(str(leaf), text, results).supported:
            return True
    return False


def question(function: Function, key: str) -> Question:
    """Return the question for an argument, in one sentence made of what the catalog says of it."""
    parameter = function.parameters[key]
    name = _name(words(parameter.name) or key)
    about = _line(parameter.description).rstrip(".")
    about = f" ({about})" if about else ""
    return Question(
        text=f'What is "{name}"{about} for the function "{_name(words(function.api.name))}"?',
        api_id=function.api.id,
        function=function.name,
        parameter=key,
        description=_line(describe(parameter)),
        json_schema=function.argument_schema()["properties"].get(key, {}),
    )


def questions(
    view: View, move: Move, held: Known, prior: Prior, asked: Collection[str] = ()
) -> list[Question]:
    """Return the questions that a call leaves open; ``asked`` are the keys of earlier ones."""
    function = next((one for one in view.functions if one.name == move.function), None)
    if function is None:
        return []
    return [question(function, key) for key in missing(function, move.parsed, held, prior, asked)]


def suppliers(view: View, move: Move, prior: Prior) -> tuple[str, ...]:
    """Return the other functions that the task asks for and that no call on the path served yet.

    What one of them answers may be the value that a call lacks: of 61 right calls of tasks_open and
    tasks_fresh that lack a value before their turn, 60 have such a function (59 the right one), and
    of the 30 tasks of missing_values one has.
    """
    served = {step.move.function for step in view.path if step.ok}
    others = [one for one in view.functions if one.name not in {*served, move.function}]
    matches = prior.match(Asked(view.task), [one.api for one in others])
    return tuple(
        one.name for one, match in zip(others, matches, strict=False) if match.serves >= NEEDED
    )


def _readings(api: Api, held: Known, prior: Prior) -> Iterator[Match]:
    """Yield what the matcher says of an API: by the whole task, then by its clause and the facts."""
    whole = next(iter(prior.match(Asked(held.task), [api])), None)
    if whole is None:
        return
    yield whole
    spans = whole.clause.best(1)
    if held.responses and spans and not spans[0].source:
        found = [fact for one in held.responses for fact in facts(one, limit=FACT_CHARACTERS)]
        clause = (spans[0].begin, spans[0].end)
        yield from prior.match(Asked(held.task, clause, tuple(found[:FACTS])), [api])


def _is_nowhere(match: Match, name: str) -> bool:
    slot = match.parameters.get(name)
    if slot is None:
        return False
    best = max((math.exp(one.score) for one in slot.best(1)), default=0.0)
    return math.exp(slot.none) >= NOWHERE or best < SOMEWHERE


def _is_choice(parameter: Parameter) -> bool:
    """Whether a parameter takes one of few values, which a model may choose."""
    declared = parameter.json_schema or {}
    return bool(
        parameter.enum
        or "enum" in declared
        or declared.get("type") == "boolean"
        or parameter.type.strip().upper() == "BOOLEAN"
    )


def _leaves(value: Any, depth: int = 0) -> Iterator[Any]:
    if isinstance(value, dict | list) and depth < 8:
        for one in list(value.values() if isinstance(value, dict) else value)[:50]:
            yield from _leaves(one, depth + 1)
    else:
        yield value


def _differs(value: str, words: str) -> bool:
    """Whether words of the task say another number, or another day of the calendar, than a value."""
    given, said = typed(value), typed(words)
    if any(one.days for one in given):
        return any(None not in day for one in said for day in one.days)
    if any(one.clocks or one.days for one in (*given, *said)):
        return False
    numbers = _digits(words)
    return bool(numbers) and numbers.isdisjoint(_digits(value) or numbers)


def _digits(text: str) -> set[str]:
    """Return the numbers of a text without signs, separators, and zeros at either end."""
    return {one for run in _NUMBER.findall(text) if (one := re.sub(r"\D", "", run).strip("0"))}


def _line(text: str) -> str:
    return " ".join(clean(text, TEXT_LIMIT).split())


def _name(text: str) -> str:
    return " ".join(clean(text, NAME_LIMIT).replace('"', " ").split())
