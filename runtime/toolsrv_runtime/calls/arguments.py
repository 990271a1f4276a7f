"""Arguments of one call, checked and turned into what the provider expects.

Pure: types come from the catalog entry, values from a model or a person, so nothing is trusted.
What is given is sent as it is given, or refused: a value is only ever spelled otherwise where
that says the same (``"5"`` for the number 5, an allowed value in another case).
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from typing import Any

from toolsrv_registry import wellformed
from toolsrv_registry.api import Api, Parameter, PlaceSchema
from toolsrv_registry.functions import parameter_keys
from toolsrv_registry.numerals import TwiceError, read
from toolsrv_registry.wellformed import too_deep
from toolsrv_runtime.calls.given_files import FILE_LIMIT, is_data_url
from toolsrv_runtime.calls.schema_check import schema_fault
from toolsrv_runtime.calls.schema_values import WrongValueError, as_declared, as_read, as_typed
from toolsrv_runtime.errors import ArgumentError

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
    bound: dict[str, Any] = {}
    problems: list[str] = []
    for name, value in arguments.items():
        parameter = originals.get(name) or keys.get(name) or api.other(name)
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


def writable(arguments: Mapping[str, Any]) -> dict[str, Any]:
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
            given[wire] = value if api.sends_json else as_read(parameter.json_schema or {}, value)
    if not given and not rule.required:
        return ""
    fault = schema_fault(rule.json_schema, given)
    if fault is None:
        return ""
    if not fault.path:
        return f"the {'input' if api.mcp else _PLACES[rule.place]} {fault.text}"
    return f"the argument {names.get(str(fault.path[0]), '')!r} {fault.words(1)}"


def _convert(api: Api, parameter: Parameter, value: Any) -> Any:
    """Return a value as it is sent. Raises WrongValueError."""
    for one in (parameter.name, value):
        _check(one)
    limit = _BYTES_LIMIT if is_data_url(value) else VALUE_LIMIT
    if isinstance(value, str) and len(value) > limit:
        raise WrongValueError(f"must be at most {limit} characters, not {value[:60]!r}…")
    if parameter.json_schema is None:
        return _check(as_typed(parameter, value))
    in_body = parameter.place in ("body", "payload")
    in_json = parameter.style == "json" or (in_body and api.sends_json)
    found = as_declared(parameter.json_schema, value, in_json=in_json)
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
    if not parameter.has_default:
        raise WrongValueError("is missing")
    value = (parameter.json_schema or {}).get("default", parameter.default)
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
