"""Bind the arguments of one call: names, types, defaults and schemas, as the provider expects them.

Each value is coerced to its declared type or JSON Schema; a value that fits only in another
spelling is converted (``"5"`` to ``5``). Errors name the parameter and what it accepts. Pure.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from decimal import Decimal
from itertools import chain
from typing import Any

from toolsrv_registry import numerals, wellformed
from toolsrv_registry.api import Api, Parameter, PlaceSchema
from toolsrv_registry.functions import parameter_keys
from toolsrv_registry.names import readable_api_name
from toolsrv_registry.numerals import TwiceError, read, spell
from toolsrv_registry.schema_view import alternatives, kinds
from toolsrv_registry.wellformed import too_deep
from toolsrv_runtime.calls.schema_check import (
    SchemaFault,
    build_validator,
    list_choices,
    matches_several_variants,
    mismatch,
    schema_fault,
)
from toolsrv_runtime.calls.serialization import FILE_LIMIT, is_data_url
from toolsrv_runtime.errors import ArgumentError

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
    return WrongValueError(mismatch(value, wanted))


def convert_declared(schema: Mapping[str, Any], value: Any, *, in_json: bool) -> Any:
    """Return a value as the schema takes it.

    Args:
        schema: JSON Schema 2020-12 without references.
        value: a JSON value.
        in_json: it goes into a JSON body, where the number 5 and the text "5" differ. Anywhere
            else a text that spells a number is kept as it is written.

    Raises:
        WrongValueError: it cannot be read so that it fulfils the schema; says where and why.
    """
    found = coerce_to_schema(schema, value)  # the value itself where no reading fulfils the schema
    if fault := schema_fault(schema, found):
        raise WrongValueError(_intended_fault(schema, value, fault).message())
    if in_json or not isinstance(value, str) or isinstance(found, bool | str | list | dict):
        return found
    return value if numerals.canonical(value) is None else found


def coerce_to_schema(schema: Mapping[str, Any], value: Any) -> Any:
    """Return the value, or the first reading of it that fulfils the schema."""
    checked = build_validator(schema)
    given = [value]
    for error in checked.iter_errors(value):
        if matches_several_variants(error):
            return value  # it is of the right kind: another reading would be another value
        given = []
    for one in chain(given, (one for one in _readings(schema, value) if checked.is_valid(one))):
        if isinstance(one, float) and one.is_integer() and _takes_whole_only(schema):
            return _whole(one)  # 5.0 where only whole numbers are taken
        return one
    return value


def _intended_fault(schema: Mapping[str, Any], value: Any, fault: SchemaFault) -> SchemaFault:
    """Return what is wrong with the reading that has the right type, where there is one."""
    found = (schema_fault(schema, one) for one in _readings(schema, value))
    of_kind = (one for one in found if one is not None and not one.is_of_kind)
    return next(of_kind, fault) if fault.is_of_kind else fault


def _takes_whole_only(schema: Mapping[str, Any]) -> bool:
    types = kinds(schema)
    return "integer" in types and "number" not in types


def _whole(value: float) -> int | float:
    digits = Decimal(spell(value))
    return int(digits) if digits.adjusted() < _WHOLE_LIMIT else value


def _readings(schema: Mapping[str, Any], value: Any) -> Iterator[Any]:
    """Yield what a value may stand for: what says the same comes first.

    A schema that names no types demands something of each: a reading of another would evade that.
    """
    types = kinds(schema)
    if isinstance(value, list | dict):
        yield from (_inside(one, value) for one in (schema, *alternatives(schema)))
    elif types and isinstance(value, str):
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
    elif types and isinstance(value, bool | int | float):
        if not {"integer", "number"} & set(types):
            yield spell(value)
        yield _inside(schema, [value])


def _inside(schema: Mapping[str, Any], value: list[Any] | dict[str, Any]) -> Any:
    """Return a list or an object with what is in it read by the schemas for that."""
    if isinstance(value, list):
        items = schema.get("items", {})
        return [coerce_to_schema(items, one) for one in value] if isinstance(items, dict) else value
    properties: dict[str, Any] = {}
    for part in _parts(schema):
        properties = part.get("properties", {}) | properties
    return {name: coerce_to_schema(properties.get(name, {}), one) for name, one in value.items()}


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
        yield [coerce_to_schema(items, text)]
    elif "enum" in items or "string" not in (kinds(items) or ("string",)):
        yield [coerce_to_schema(items, part) for part in parts]


def coerce_to_type(parameter: Parameter, value: Any) -> Any:
    """Return a value that JSON can hold, neither empty nor null, as the API takes it.

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
        raise _wrong(value, list_choices(list(parameter.enum)))
    return same[0]


def _number(value: Any) -> int | float | str:
    if isinstance(value, str):
        plain = numerals.canonical(value)
        if plain is None and not any(character.isdigit() for character in value):
            raise _wrong(value, "a number")
        return value if plain is None else plain
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _wrong(value, "a number")
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


VALUE_LIMIT = 8_000_000
"""Characters of one argument value; beyond it a call is refused, not cut."""

_BYTES_LIMIT = 4 * FILE_LIMIT // 3 + 1_000
"""Of a ``data:`` URL."""

_PLACES = {"body": "body", "query": "query string"}
_KINDS = {list: "a list", str: "a string", bool: "a boolean", type(None): "null"}


def parse(text: str) -> dict[str, Any]:
    """Return the JSON object that ``text`` spells ("" is an empty one).

    Raises:
        ArgumentError: not JSON, or not an object; says where.
    """
    if not text.strip():
        return {}
    try:
        value = read(wellformed.json_text(text))
    except TwiceError as error:
        raise ArgumentError(
            f"the arguments have {str(error)[:80]!r} twice in one object",
            hint="give each name once",
        ) from None
    except (ValueError, RecursionError) as error:  # ValueError also for endless integers
        why = "too deep or too long"
        if isinstance(error, json.JSONDecodeError):
            why = f"{error.msg} at character {error.pos + 1}"
        raise ArgumentError(
            f"the arguments are not JSON: {why}",
            hint='write an object, for example \'{"city": "Oslo"}\'',
        ) from None
    if not isinstance(value, dict):
        kind = _KINDS.get(type(value), "a number")
        raise ArgumentError(
            f"the arguments are {kind}, not a JSON object",
            hint='write an object, for example \'{"city": "Oslo"}\'',
        )
    return value


def bind(api: Api, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments under the provider's names, in their declared types.

    Accepts a parameter's key or its original name. Where the entry has a JSON Schema every value
    must fulfil it, ``""`` and ``null`` included; a required one that is not given takes the
    schema's default, and never an example. Without one, as in ToolBench's entries, only a plain
    misfit is refused, an empty optional value counts as absent, and no default is sent: what
    ToolBench calls a default is an example.

    Where the body takes properties beside the named ones, unknown arguments are those.

    Raises:
        ArgumentError: parameters are unknown, missing, of another type, or not an allowed value;
            names every one of them.
    """
    keys = parameter_keys(api)
    originals = {parameter.name: parameter for parameter in keys.values()}
    key_of = {parameter.name: key for key, parameter in keys.items()}
    numbered = _numbered(api, arguments, keys.keys() | originals.keys())
    bound: dict[str, Any] = {}
    problems: list[str] = []
    for name, value in arguments.items():
        parameter = numbered.get(name) or originals.get(name) or keys.get(name) or api.other(name)
        if parameter is None:
            problems.append(_unknown(name, list(keys)))
            continue
        key = key_of.setdefault(parameter.name, name[:80])
        if parameter.name in bound:
            problems.append(f"the argument {key!r} is given twice")
        elif parameter.json_schema is not None or value not in ("", None):
            try:
                bound[parameter.name] = _convert(api, parameter, value)
            except WrongValueError as error:
                problems.append(f"the argument {key!r} {error}")
                bound[parameter.name] = None
    for parameter in api.required:
        if parameter.name in bound:
            continue
        try:
            bound[parameter.name] = _default(api, parameter)
        except WrongValueError as error:
            problems.append(f"the argument {key_of[parameter.name]!r} {error}")
    if not problems:
        problems += [one for rule in api.together if (one := _together(api, rule, bound, key_of))]
    if problems:
        raise ArgumentError(f"{api.id}: {'; '.join(problems)}", hint=_wanted(keys, api))
    return bound


def _numbered(api: Api, given: Mapping[str, Any], known: AbstractSet[str]) -> dict[str, Parameter]:
    """Return by ``id``, ``id_2`` … the parameters of one name in several places, the path's first.

    Entries of earlier versions had such names, and calls that were written for them still do. Empty
    unless a name is given that is no name of today's, nor a property of a body that takes any.
    """
    found: dict[str, Parameter] = {}
    if api.others is not None:
        return found
    in_order = sorted(api.parameters, key=lambda one: one.place != "path")
    taken = {one.wire or one.name for one in in_order}
    for shared in {one.wire for one in in_order if one.wire}:
        members = [one for one in in_order if shared in (one.wire, one.name)]
        earlier: dict[str, Parameter] = {}
        name, number = shared, 1
        for one in members:
            while number > 1 and name in taken:  # another argument had that name of its own
                number += 1
                name = f"{shared}_{number}"
            taken.add(name)
            earlier |= {name: one, readable_api_name(name): one}
            number += 1
            name = f"{shared}_{number}"
        if (earlier.keys() & given.keys()) - known:
            found |= earlier
    return found


def convert(api: Api, parameter: Parameter, value: Any) -> Any:
    """Return one value in its declared type, as ``bind`` does.

    Raises:
        ArgumentError: it is of another type, or cannot be written.
    """
    try:
        return _convert(api, parameter, value)
    except WrongValueError as error:
        hint = f"it is the value of {parameter.name[:80]!r}"
        raise ArgumentError(str(error), hint=hint) from None


def json_safe(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return those arguments that can be written as JSON, so that a refusal can be."""
    return {
        name: value for name, value in arguments.items() if not _fault(name) and not _fault(value)
    }


def _together(
    api: Api, rule: PlaceSchema, bound: Mapping[str, Any], key_of: Mapping[str, str]
) -> str:
    """Return why the arguments of one place do not fulfil their schema, ``""`` where they do."""
    described = {one.name: one for one in api.parameters}
    given: dict[str, Any] = {}
    names: dict[str, str] = {}
    for name, value in bound.items():
        parameter = described.get(name) or api.other(name)
        if parameter is not None and parameter.place == rule.place:
            wire = parameter.wire or name
            names[wire] = key_of[name]
            # A form has the texts that numbers were given as.
            given[wire] = (
                value if api.sends_json else coerce_to_schema(parameter.json_schema or {}, value)
            )
    if not given and not rule.required:
        return ""
    fault = schema_fault(rule.json_schema, given)
    if fault is None:
        return ""
    if not fault.path:
        return f"the {'input' if api.mcp else _PLACES[rule.place]} {fault.text}"
    return f"the argument {names.get(str(fault.path[0]), '')!r} {fault.message(1)}"


def _convert(api: Api, parameter: Parameter, value: Any) -> Any:
    """Return a value as it is sent. Raises WrongValueError."""
    for one in (parameter.name, value):
        _check(one)
    limit = _BYTES_LIMIT if is_data_url(value) else VALUE_LIMIT
    if isinstance(value, str) and len(value) > limit:
        raise WrongValueError(f"must be at most {limit} characters, not {value[:60]!r}…")
    if parameter.json_schema is None:
        return _check(coerce_to_type(parameter, value))
    if parameter.empty and value == "":
        return value
    in_body = parameter.place in ("body", "payload")
    in_json = parameter.style in ("json", "whole_json") or (in_body and api.sends_json)
    found = convert_declared(parameter.json_schema, value, in_json=in_json)
    if not in_json and _holds_null(found):
        raise WrongValueError("is or holds null, which only JSON can say; leave it out")
    return _check(found)


def _holds_null(value: Any) -> bool:
    if isinstance(value, dict | list):
        return any(map(_holds_null, value.values() if isinstance(value, dict) else value))
    return value is None


def _default(api: Api, parameter: Parameter) -> Any:
    """Return a default in its declared type; as the API's own word where it does not fit it.

    Raises WrongValueError where there is none.
    """
    if parameter.json_schema is None or not parameter.has_default:
        raise WrongValueError("is missing")
    value = parameter.json_schema["default"]
    try:
        return _convert(api, parameter, value)
    except WrongValueError:
        return _check(value)


def _check(value: Any) -> Any:
    """Return a value. Raises WrongValueError where it cannot be written."""
    if fault := _fault(value):
        raise WrongValueError(fault)
    return value


def _fault(value: Any) -> str:
    """Return why a value cannot be written as JSON in UTF-8, ``""`` when it can."""
    if too_deep([value]):  # all arguments together are one level more
        return "is nested too deeply"
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError:  # half a surrogate pair
        return "must be valid Unicode text"
    except ValueError:  # an integer of more than 4,300 digits, or NaN
        return "holds a number that cannot be written"
    except TypeError:
        return "is no JSON value"
    return ""


def _unknown(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    guess = f"; did you mean {near[0]!r}?" if near else ""
    return f"unknown argument {name[:80]!r}{guess}"


def _wanted(keys: Mapping[str, Parameter], api: Api) -> str:
    required = {parameter.name for parameter in api.required}
    shown = [
        key if parameter.name in required else f"{key} (optional)"
        for key, parameter in keys.items()
    ]
    return f"it takes: {', '.join(shown) or 'no arguments'}"
