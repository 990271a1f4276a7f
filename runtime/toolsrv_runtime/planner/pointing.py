"""Words that point back at two values, or at one of them: "those two", "the latter". Pure.

Values stand together where calls of one function took them in turn for one parameter, or answered
them under one name, where one call took them for two parameters alike ("from Bonn to Graz"), and in
a list that one call answered.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from toolsrv_registry.api import Parameter
from toolsrv_registry.functions import Function
from toolsrv_runtime.contract.format import Step
from toolsrv_runtime.planner.matched import holds
from toolsrv_runtime.planner.scene import Scene, about, news
from toolsrv_runtime.values.facts import words
from toolsrv_runtime.values.kinds import find_values, normalise_value, value_kind

_STOP = re.compile(r"[.?!;]\s")
_TWO = re.compile(
    r"\b(?:(?:the|these|those) (?:(first|last) )?two|two of (?:them|these|those)|them both|"
    r"both of (?:them|these|those)|between (?:them|these|those))\b",
    re.IGNORECASE,
)
_OF = r"(?: \w+)? of (?:them|these|those|the (?:two|three))\b"
_ONE = re.compile(
    rf"\bthe (?:(former|latter)\b|(first|second|third|last)(?: one\b|{_OF})"
    rf"|(other)(?: one\b|{_OF}))",
    re.IGNORECASE,
)
_DIGIT = re.compile(r"\d")
_LONGEST = 100
"""Values of a list that words point at."""

_PLACES = {"former": 0, "first": 0, "latter": 1, "second": 1, "third": 2, "last": -1}


@dataclass(frozen=True, slots=True)
class _Row:
    """Values that stand together in the task's order, the nouns they go by, the last call's number."""

    values: tuple[str, ...]
    nouns: frozenset[str]
    last: int
    listed: bool = False


def pointed(
    part: str, scene: Scene, function: Function, arguments: Mapping[str, str]
) -> dict[str, str]:
    """Return a call's arguments with what a part of the task points back at, where that is sure.

    A value that was chosen tells which values are meant, else what the parameter takes; what the
    part itself names stays, and what failed is not tried again.
    """
    clause = _clause(part, scene.task)
    one, two = _ONE.search(clause), _TWO.search(clause)
    free = {
        key: value
        for key, value in arguments.items()
        if not holds(part, value) and not function.parameters[key].enum
    }
    rows = list(_rows(scene)) if free and (one or two) else []
    made: Iterator[dict[str, str]] = iter(())
    if one:
        meant = [(row, place) for row in rows if (place := _place(row, one, scene)) is not None]
        made = (
            _single(row, place, function, free, chosen=chosen)
            for chosen in (True, False)
            for row, place in meant
        )
    elif two:
        made = (_both(row, two[1], function, free) for row in rows)
    straight = {**arguments, **next(filter(None, made), {})}
    failed = (_given(one) for one in scene.attempts if not one.ok and _calls(one, function))
    return dict(arguments) if straight in failed else straight


def unnamed(step: Step, scene: Scene) -> set[str]:
    """Return the values of a call that its words do not name, where they point back; else none."""
    clause = _clause(about(step), scene.task)
    if not _ONE.search(clause) and not _TWO.search(clause):
        return set()
    return {value for value in _given(step).values() if not holds(about(step), value)}


def _clause(part: str, task: str) -> str:
    """Return a part with what stands before it in its sentence: "the second of those, what's that"."""
    at = task.find(part)
    begin = max((stop.end() for stop in _STOP.finditer(task, 0, max(at, 0))), default=0)
    return task[begin : at + len(part)] if at >= 0 else part


def _both(
    row: _Row, which: str | None, function: Function, free: Mapping[str, str]
) -> dict[str, str]:
    """Return the two values for the two parameters alike of a call that has one of them at least."""
    values = row.values
    if which:
        values = values[:2] if which.lower() == "first" else values[-2:]
    keys = _alike(function)
    if len(values) != 2 or not all(key in free for key in keys):
        return {}
    known = any(free[key] in row.values for key in keys)
    return dict(zip(keys, values, strict=True)) if keys and known else {}


def _single(
    row: _Row, place: int, function: Function, free: Mapping[str, str], *, chosen: bool
) -> dict[str, str]:
    """Return the value in its place for the one parameter that takes such values.

    That which had one ``chosen``, else that which fits them.
    """
    if chosen:
        keys = [key for key, value in free.items() if value in row.values]
    else:
        keys = [key for key in free if _fits(function.parameters[key], function, row)]
        if not keys and row.listed and len(free) == 1:  # of names, which have no form of their own
            keys = [key for key in free if _names(function.parameters[key], function)]
    return {keys[0]: row.values[place]} if len(keys) == 1 else {}


def _place(row: _Row, one: re.Match[str], scene: Scene) -> int | None:
    """Return which value of a row words mean, None where they mean none of it.

    "The other one" is that of two with no call of its own since.
    """
    if one[3]:
        since = [step for step in scene.path[row.last + 1 :] if step.ok]
        named = {value for step in since for value in _given(step).values()}
        left = [at for at, value in enumerate(row.values) if value not in named]
        return left[0] if len(row.values) == 2 and len(left) == 1 else None
    place = _PLACES[(one[1] or one[2]).lower()]
    known = len(row.values) == 2 if one[1] else len(row.values) > 1
    return place if known and place < len(row.values) else None


def _fits(parameter: Parameter, function: Function, row: _Row) -> bool:
    """Whether a parameter takes what a row has: the same by name, or by what its values look like."""
    if _noun(parameter) in row.nouns:
        return True
    kind = value_kind(parameter, function.api)
    return all(find_values(kind, value) == [value] for value in row.values)


def _names(parameter: Parameter, function: Function) -> bool:
    """Whether a parameter takes names."""
    return value_kind(parameter, function.api) in {"", "name", "country"}


def _rows(scene: Scene) -> Iterator[_Row]:
    """Yield the values that stand together, those of the latest calls first."""
    functions = {offer.function.name: offer.function for offer in scene.offers}
    calls: dict[str, list[int]] = {}
    for at, step in enumerate(scene.path):
        if step.ok and step.move.function in functions:
            calls.setdefault(step.move.function, []).append(at)
    for name, made in sorted(calls.items(), key=lambda one: -one[1][-1]):
        steps = [scene.path[at] for at in made]
        function = functions[name]
        if len(steps) > 1:
            yield from _in_turn(steps, function, scene.task, made[-1])
        elif keys := _alike(function):
            values = [_given(steps[0])[key] for key in keys]
            nouns = frozenset(_noun(function.parameters[key]) for key in keys)
            order = _order(values, scene.task)
            yield _Row(tuple(values[at] for at in order), nouns, made[-1])
    for at, step in reversed(list(enumerate(scene.path))):
        if step.ok:
            yield from _lists(step, at)


def _lists(step: Step, last: int) -> Iterator[_Row]:
    """Yield the lists of names that a call answered."""
    response = step.response if isinstance(step.response, dict) else {}
    for name, told in response.items():
        if isinstance(told, list) and 1 < len(told) <= _LONGEST:
            values = tuple(normalise_value("name", one) for one in told if isinstance(one, str))
            if len(values) == len(told) and not any(map(_DIGIT.search, values)):
                noun = words(str(name)).rpartition(" ")[2].removesuffix("s")
                yield _Row(values, frozenset({noun}), last, listed=True)


def _in_turn(steps: Sequence[Step], function: Function, task: str, last: int) -> Iterator[_Row]:
    """Yield what calls of one function took in turn for the one parameter they differ in.

    Then what they answered, in the same order, under each name that they differ in.
    """
    given = [_given(step) for step in steps]
    varied = [key for key in given[0] if len({one.get(key, "") for one in given}) == len(given)]
    if len(varied) != 1:
        return
    key = varied[0]
    order = _order([one[key] for one in given], task)
    nouns = frozenset({_noun(function.parameters[key])})
    yield _Row(tuple(given[at][key] for at in order), nouns, last)
    told = [dict(news(steps[at])) for at in order]
    for name in told[0]:
        values = tuple(one.get(name, "") for one in told)
        if len({*values, ""}) == len(values) + 1:
            yield _Row(values, frozenset({words(name).rpartition(" ")[2]}), last)


def _alike(function: Function) -> list[str]:
    """Return the two parameters that must be given and take the same kind, [] for other ones."""
    required = [key for key, one in function.parameters.items() if one in function.api.required]
    kinds = {
        (value_kind(function.parameters[key], function.api), function.parameters[key].enum)
        for key in required
    }
    return required if len(required) == 2 and len(kinds) == 1 else []


def _order(values: Sequence[str], task: str) -> list[int]:
    """Return the numbers of values as the task tells them; as they are where it does not."""
    told = [re.search(rf"(?<!\w){re.escape(one)}(?!\w)", task, re.IGNORECASE) for one in values]
    places = [match.start() for match in told if match]
    numbers = list(range(len(values)))
    return sorted(numbers, key=places.__getitem__) if len(places) == len(values) else numbers


def _calls(step: Step, function: Function) -> bool:
    return step.move.function == function.name


def _noun(parameter: Parameter) -> str:
    return words(parameter.name).rpartition(" ")[2]


def _given(step: Step) -> dict[str, str]:
    return {name: str(value) for name, value in json.loads(step.move.arguments).items()}
