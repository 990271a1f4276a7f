"""Values as an API takes them: as they are, or read so that they fit what is declared.

Of a JSON Schema: a model often writes a number, a list or an object as text. Such a text is read
only where the schema does not take texts and the reading fulfils it.

Of a type without a schema, as ToolBench's NUMBER, BOOLEAN and ARRAY: such a type is what a provider
picked from a list, and its APIs take what the provider's own default and description show: lists of
numbers and ZIP codes as NUMBER, ``checked`` as BOOLEAN, a word as OBJECT. So a text is sent as it is
written; only a plain misfit is refused. Pure.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from itertools import chain
from typing import Any

from toolsrv_registry import numerals
from toolsrv_registry.api import Parameter
from toolsrv_registry.numerals import spell
from toolsrv_registry.schema_view import CHOICES, alternatives
from toolsrv_runtime.calls.schema_check import (
    SchemaFault,
    fits_several,
    one_of,
    schema_fault,
    validator,
    wrong,
)

_WHOLE_LIMIT = 400
"""Digits of a whole number that is given with a fraction of zero."""
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


def as_declared(schema: Mapping[str, Any], value: Any, *, in_json: bool) -> Any:
    """Return a value as the schema takes it.

    Args:
        schema: JSON Schema 2020-12 without references.
        value: a JSON value.
        in_json: it goes into a JSON body, where the number 5 and the text "5" differ. Anywhere
            else a text that spells a number is kept as it is written.

    Raises:
        WrongValueError: it cannot be read so that it fulfils the schema; says where and why.
    """
    found = as_read(schema, value)  # the value itself where no reading fulfils the schema
    if fault := schema_fault(schema, found):
        raise WrongValueError(_meant(schema, value, fault).words())
    if in_json or not isinstance(value, str) or isinstance(found, bool | str | list | dict):
        return found
    return value if numerals.canonical(value) is None else found


def as_read(schema: Mapping[str, Any], value: Any) -> Any:
    """Return the value, or the first reading of it that fulfils the schema."""
    checked = validator(schema)
    given = [value]
    for error in checked.iter_errors(value):
        if fits_several(error):
            return value  # it is of the right kind: another reading would be another value
        given = []
    for one in chain(given, (one for one in _readings(schema, value) if checked.is_valid(one))):
        if isinstance(one, float) and one.is_integer() and _takes_whole_only(schema):
            return _whole(one)  # 5.0 where only whole numbers are taken
        return one
    return value


def _meant(schema: Mapping[str, Any], value: Any, fault: SchemaFault) -> SchemaFault:
    """Return what is wrong with the reading that has the right type, where there is one."""
    found = (schema_fault(schema, one) for one in _readings(schema, value))
    of_kind = (one for one in found if one is not None and not one.is_of_kind)
    return next(of_kind, fault) if fault.is_of_kind else fault


def _takes_whole_only(schema: Mapping[str, Any]) -> bool:
    kinds = _kinds(schema)
    return kinds is not None and "integer" in kinds and "number" not in kinds


def _kinds(schema: Mapping[str, Any]) -> set[str] | None:
    """Return the types that a schema takes, None where it does not say."""
    found: set[str] | None = set(_types(schema)) or None
    variants = (one for key in CHOICES for one in schema.get(key, ()))
    chosen = [_kinds(one) for one in variants]
    if chosen and None not in chosen:
        either = {kind for one in chosen for kind in one or ()}
        found = either if found is None else found & either
    for part in schema.get("allOf", ()):
        if (inner := _kinds(part)) is not None:
            found = inner if found is None else found & inner
    return found


def _whole(value: float) -> int | float:
    digits = Decimal(spell(value))
    return int(digits) if digits.adjusted() < _WHOLE_LIMIT else value


def _types(schema: Mapping[str, Any]) -> tuple[str, ...]:
    named = schema.get("type", ())
    return (named,) if isinstance(named, str) else tuple(named)


def _readings(schema: Mapping[str, Any], value: Any) -> Iterator[Any]:
    """Yield what a value may stand for: what says the same comes first."""
    if isinstance(value, str):
        yield from (
            one
            for one in (numerals.number(value), numerals.boolean(value), numerals.structure(value))
            if one is not None
        )
        lowered = value.lower()
        texts = [one for one in schema.get("enum", ()) if isinstance(one, str)]
        if len(alike := [one for one in texts if one.lower() == lowered]) == 1:
            yield alike[0]
        if (inner := numerals.structure(value)) is not None:
            yield _inside(schema, inner)
        yield from _listed(schema, value)
    elif isinstance(value, bool | int | float):
        if not {"integer", "number"} & (_kinds(schema) or set()):
            yield spell(value)
        yield _inside(schema, [value])
    elif isinstance(value, list | dict):
        yield from (_inside(one, value) for one in (schema, *alternatives(schema)))


def _inside(schema: Mapping[str, Any], value: list[Any] | dict[str, Any]) -> Any:
    """Return a list or an object with what is in it read by the schemas for that."""
    if isinstance(value, list):
        items = schema.get("items", {})
        return [as_read(items, one) for one in value] if isinstance(items, dict) else value
    properties: dict[str, Any] = {}
    for part in _parts(schema):
        properties = part.get("properties", {}) | properties
    return {name: as_read(properties.get(name, {}), one) for name, one in value.items()}


def _parts(schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return a schema and the parts that describe the same object."""
    inner = [one for one in schema.get("allOf", ()) if isinstance(one, dict)]
    return [schema, *(part for one in inner for part in _parts(one))]


def _listed(schema: Mapping[str, Any], text: str) -> Iterator[list[Any]]:
    """Yield the list that a text stands for: of one item, or of several between commas.

    Commas part numbers and allowed values only: other texts may hold some of their own.
    """
    items = schema.get("items", {})
    if not isinstance(items, dict) or not text.strip():
        return
    parts = [part.strip() for part in text.split(",")]
    if len(parts) == 1:
        yield [as_read(items, text)]
    elif "enum" in items or "string" not in (_types(items) or ("string",)):
        yield [as_read(items, part) for part in parts]


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
