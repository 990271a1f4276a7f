"""Calls that a teacher may make for one step: the right one, others that do the same, a wrong one.

Arguments stand under the keys and in the types that the model is shown. Pure and seeded.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolsrv_lab.annotation.slips import Kind
from toolsrv_lab.twins import does_the_same
from toolsrv_registry.api import Api, Parameter
from toolsrv_registry.functions import Function

_WORD = re.compile(r"\w{3,}")
_NUMBER = re.compile(r"-?\d{1,15}(?:\.\d{1,15})?")


@dataclass(frozen=True, slots=True)
class Attempt:
    """One call: the function's name and its arguments as JSON text."""

    function: str
    arguments: str


def right(api: Api, values: Mapping[str, str], functions: Sequence[Function]) -> list[Attempt]:
    """Return the call of ``api`` (parameter name -> value), then those of APIs that do the same."""
    same = [one for one in functions if does_the_same(one.api, api)]
    same.sort(key=lambda one: one.api.id != api.id)
    return [Attempt(one.name, written(one, values)) for one in same]


def wrong(
    kind: Kind,
    api: Api,
    values: Mapping[str, str],
    functions: Sequence[Function],
    needed: Collection[str],
    words: str,
    rng: random.Random,
) -> Attempt | None:
    """Return a mistaken call instead of ``api``'s, None where there is none to make.

    ``needed`` are the ids of all APIs that the task needs, ``words`` those of the step.
    """
    if kind == "function":
        return _other_function(api, values, functions, needed)
    function = next((one for one in functions if one.api.id == api.id), None)
    if function is None:
        return None
    changed = dict(values)
    if kind == "missing":
        given = [one.name for one in api.required if one.name in values]
        if not given:
            return None
        del changed[rng.choice(given)]
    elif not _spoil(changed, words, rng):
        return None
    return Attempt(function.name, written(function, changed))


def written(function: Function, values: Mapping[str, str]) -> str:
    """Return values (parameter name -> text) as the JSON arguments of a function."""
    found = {
        key: _typed(parameter, values[parameter.name])
        for key, parameter in function.parameters.items()
        if parameter.name in values
    }
    return json.dumps(found, ensure_ascii=False)


def _other_function(
    api: Api, values: Mapping[str, str], functions: Sequence[Function], needed: Collection[str]
) -> Attempt | None:
    """Return a call of the nearest function that the task does not need."""
    others = [
        one for one in functions if one.api.id not in needed and not does_the_same(one.api, api)
    ]
    others.sort(key=lambda one: (one.api.category != api.category, one.api.tool != api.tool))
    if not others:
        return None
    left = list(values.values())
    taken: dict[str, str] = {}
    for parameter in others[0].parameters.values():
        if parameter.name in values:
            taken[parameter.name] = values[parameter.name]
        elif parameter in others[0].api.required and left:
            taken[parameter.name] = left.pop(0)
    return Attempt(others[0].name, written(others[0], taken))


def _spoil(values: dict[str, str], words: str, rng: random.Random) -> bool:
    """Give one argument another value: another argument's, or other words of the step."""
    if not values:
        return False
    name = rng.choice(sorted(values))
    right_one = values[name]
    others = sorted({value for value in values.values() if value != right_one})
    said = [word for word in _WORD.findall(words) if word.lower() not in right_one.lower()]
    pool = others or said
    if not pool:
        return False
    values[name] = rng.choice(pool)
    return True


def _typed(parameter: Parameter, value: str) -> Any:
    kind = parameter.type.strip().upper()
    if kind == "BOOLEAN" and value.lower() in {"true", "false"}:
        return value.lower() == "true"
    if kind == "NUMBER" and _NUMBER.fullmatch(value):
        return float(value) if "." in value else int(value)
    return value
