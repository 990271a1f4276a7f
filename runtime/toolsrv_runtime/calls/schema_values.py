"""Values of parameters that have a JSON Schema: taken as they are, or read so that they fit it.

A model often writes a number, a list or an object as text. Such a text is read only where the
schema does not take texts and the reading fulfils it. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from itertools import chain
from typing import Any

from toolsrv_registry.schema_view import CHOICES, alternatives
from toolsrv_runtime.calls import numerals
from toolsrv_runtime.calls.by_type import WrongValueError
from toolsrv_runtime.calls.numerals import spell
from toolsrv_runtime.calls.schema_check import SchemaFault, fits_several, schema_fault, validator

_WHOLE_LIMIT = 400
"""Digits of a whole number that is given with a fraction of zero."""


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
