"""Values of parameters that have a type and no schema, as ToolBench's NUMBER, BOOLEAN and ARRAY.

Such a type is what a provider picked from a list, and its APIs take what the provider's own
default and description show: lists of numbers and ZIP codes as NUMBER, ``checked`` as BOOLEAN, a
word as OBJECT. So a text is sent as it is written; only a plain misfit is refused.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

from toolsrv_registry.api import Parameter
from toolsrv_runtime.calls import numerals
from toolsrv_runtime.calls.schema_check import one_of, wrong

_SPELLINGS = (
    ("1", "0"),
    ("True", "False"),
    ("TRUE", "FALSE"),
    ("yes", "no"),
    ("Yes", "No"),
    ("YES", "NO"),
    ("y", "n"),
    ("Y", "N"),
    ("on", "off"),
    ("On", "Off"),
    ("t", "f"),
    ("T", "F"),
)
"""How providers write true and false, where not as JSON does."""
_KNOWN = frozenset(word for pair in (*_SPELLINGS, ("true", "false")) for word in pair)


class WrongValueError(Exception):
    """A value does not fit its parameter; the message goes on after the parameter's name."""


def _wrong(value: Any, wanted: str) -> WrongValueError:
    return WrongValueError(wrong(value, wanted))


def as_typed(parameter: Parameter, value: Any) -> Any:
    """Return a value, neither empty nor null, as the API takes it.

    Raises:
        WrongValueError: it is of another type, or none of the allowed values.
    """
    match parameter.type.upper().partition(" ")[0]:
        case "NUMBER" | "INTEGER":
            return _number(value)
        case "BOOLEAN":
            return _boolean(parameter, value)
        case "ARRAY" | "OBJECT":
            return value
        case _:
            return _text(parameter, value)


def _text(parameter: Parameter, value: Any) -> str:
    if isinstance(value, dict | list):
        raise _wrong(value, "text")
    text = value if isinstance(value, str) else json.dumps(value)
    if not parameter.enum or text in parameter.enum:
        return text
    same = [allowed for allowed in parameter.enum if allowed.lower() == text.lower()]
    if not same:
        raise _wrong(value, one_of(list(parameter.enum)))
    return same[0]


def _number(value: Any) -> int | float | str:
    if isinstance(value, str):
        plain = numerals.canonical(value)
        if plain is None and not any(character.isdigit() for character in value):
            raise _wrong(value, "a number")
        return value if plain is None else plain
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _wrong(value, "a number")
    if isinstance(value, float) and not math.isfinite(value):
        raise _wrong(value, "a finite number")
    return value


def _boolean(parameter: Parameter, value: Any) -> bool | int | str:
    if isinstance(value, dict | list | float):
        raise _wrong(value, "true or false")
    told = numerals.boolean(value) if isinstance(value, str) else value
    if isinstance(told, bool):
        pair = _spelling(parameter)
        if pair:
            as_number = type(parameter.default) is int
            return int(told) if as_number else pair[not told]
        return value if isinstance(value, str) and value not in ("true", "false") else told
    shown = {str(parameter.default), *parameter.enum, *re.findall(r"\w+", parameter.description)}
    if isinstance(value, int | str) and (str(value) in shown or str(value).lower() in _KNOWN):
        return value
    raise _wrong(value, "true or false")


def _spelling(parameter: Parameter) -> tuple[str, str] | None:
    """Return how the provider writes true and false, by default, allowed values or description."""
    written = {str(parameter.default)} if parameter.default not in ("", None) else set()
    if isinstance(parameter.default, bool):
        written = set()
    for pair in _SPELLINGS:
        if written & set(pair) or set(pair) <= set(parameter.enum):
            return pair
    for one, other in _SPELLINGS:
        if _names_both(parameter.description, one, other):
            return one, other
    return None


def _names_both(text: str, one: str, other: str) -> bool:
    """Whether a description names two values as those that a parameter takes."""
    quote = r"['\"`]?"
    first, second = (rf"(?<![\w.-]){quote}{re.escape(word)}{quote}" for word in (one, other))
    between = r"\s*(?:or|/|\||,)\s*"
    either = rf"{first}{between}{second}(?![\w.])|{second}{between}{first}(?![\w.])"
    means = r"\s*[=:]"
    return re.search(either, text) is not None or all(
        re.search(rf"{word}{means}", text) for word in (first, second)
    )
