"""Values of parameters that have a JSON Schema: taken as they are, or read so that they fit it.

A model often writes a number, a list or an object as text. Such a text is read only where the
schema does not take texts and the reading fulfils it. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from jsonschema import Draft202012Validator, ValidationError
from jsonschema.exceptions import best_match

from toolsrv_runtime.calls import numerals
from toolsrv_runtime.calls.by_type import WrongValueError, one_of, wrong
from toolsrv_runtime.calls.numerals import spell

_NAMES = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "a JSON object",
    "null": "null",
}


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
    found = _read(schema, value)  # the value itself where no reading fulfils the schema
    if error := best_match(Draft202012Validator(schema).iter_errors(found)):
        raise _problem(error)
    if in_json or not isinstance(value, str) or isinstance(found, bool | str | list | dict):
        return found
    return value if numerals.canonical(value) is None else found


def _read(schema: Mapping[str, Any], value: Any) -> Any:
    """Return the value, or the first reading of it that fulfils the schema."""
    validator = Draft202012Validator(schema)
    for one in chain((value,), _readings(schema, value)):
        if not validator.is_valid(one):
            continue
        if isinstance(one, float) and one.is_integer() and not validator.is_valid(one + 0.5):
            return int(one)  # 5.0 where only whole numbers are taken
        return one
    return value


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
        yield spell(value)
        yield _inside(schema, [value])
    elif isinstance(value, list | dict):
        yield _inside(schema, value)


def _inside(schema: Mapping[str, Any], value: list[Any] | dict[str, Any]) -> Any:
    """Return a list or an object with what is in it read by the schemas for that."""
    if isinstance(value, list):
        items = schema.get("items", {})
        return [_read(items, one) for one in value] if isinstance(items, dict) else value
    properties = schema.get("properties", {})
    return {name: _read(properties.get(name, {}), one) for name, one in value.items()}


def _listed(schema: Mapping[str, Any], text: str) -> Iterator[list[Any]]:
    """Yield the list that a text stands for: of one item, or of several between commas.

    Commas part numbers and allowed values only: other texts may hold some of their own.
    """
    items = schema.get("items", {})
    if not isinstance(items, dict) or not text.strip():
        return
    parts = [part.strip() for part in text.split(",")]
    if len(parts) == 1:
        yield [_read(items, text)]
    elif "enum" in items or "string" not in (_types(items) or ("string",)):
        yield [_read(items, part) for part in parts]


def _problem(error: ValidationError) -> WrongValueError:
    where = "".join(
        f"[{step}]" if isinstance(step, int) else f".{step}"[:80] for step in error.absolute_path
    )
    said = f"at {where.lstrip('.')} " if where else ""
    given: Any = error.instance
    named: Any = error.validator_value
    match error.validator:
        case "type":
            kinds = [named] if isinstance(named, str) else list(named)
            return WrongValueError(
                said + str(wrong(given, " or ".join(_NAMES.get(kind, kind) for kind in kinds)))
            )
        case "enum":
            return WrongValueError(said + str(wrong(given, one_of([spell(one) for one in named]))))
        case "required":
            missing = [name for name in named if name not in dict(given)]
            return WrongValueError(f"{said}lacks {', '.join(missing)[:200]}")
        case "anyOf":
            kinds = [kind for part in named for kind in _types(part)]
            wanted = " or ".join(dict.fromkeys(_NAMES.get(kind, kind) for kind in kinds))
            return WrongValueError(said + str(wrong(given, wanted or "what its schema describes")))
        case _:
            return WrongValueError(said + str(wrong(given, "what its schema describes")))
