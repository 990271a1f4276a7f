"""Arguments of one call, checked and turned into what the provider expects.

Pure: types come from the catalog entry, values from a model or a person, so nothing is trusted.
"""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from toolsrv_catalogs.offline.values.day import parse_date, parse_time
from toolsrv_registry import wellformed
from toolsrv_registry.api import Api, Parameter
from toolsrv_registry.errors import UsageError
from toolsrv_registry.functions import parameter_keys
from toolsrv_runtime.calls.body import too_deep
from toolsrv_runtime.errors import ArgumentError

VALUE_LIMIT = 20_000
"""Characters of one argument value; beyond it a call is refused, not cut."""

_KINDS = {list: "a list", str: "a string", bool: "a boolean", type(None): "null"}
_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0"})


def parse(text: str) -> dict[str, Any]:
    """Return the JSON object that ``text`` spells ("" is an empty one).

    Raises:
        ArgumentError: not JSON, or not an object; says where.
    """
    if not text.strip():
        return {}
    try:
        value = wellformed.loads(text)
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

    Accepts a parameter's key or its original name. Text that spells a number, a boolean, a date,
    a list or an object is taken as one where the API wants one; an empty optional value counts as
    absent. A default is sent only for a required parameter of an API whose description tells
    defaults from examples (OpenAPI's does); what ToolBench calls a default is an example.

    Raises:
        ArgumentError: parameters are unknown, missing, of another type, or not an allowed value;
            names every one of them.
    """
    keys = parameter_keys(api)
    originals = {parameter.name: parameter for parameter in keys.values()}
    bound: dict[str, Any] = {}
    problems: list[str] = []
    for name, value in arguments.items():
        parameter = keys.get(name) or originals.get(name)
        if parameter is None:
            problems.append(_unknown(name, list(keys)))
        elif fault := _fault(value):
            problems.append(f"the argument {parameter.key!r} {fault}")
            bound[parameter.name] = None
        elif parameter not in api.optional or value not in ("", None):
            try:
                bound[parameter.name] = _convert(parameter, value)
            except _WrongError as error:
                problems.append(str(error))
                bound[parameter.name] = None
    for parameter in api.required:
        if bound.get(parameter.name, "") != "":
            continue
        if parameter.place and parameter.default not in ("", None):
            bound[parameter.name] = _default(parameter)
        else:
            problems.append(f"the argument {parameter.key!r} is missing")
    for name, value in bound.items():  # defaults too, and what was written as JSON in a text
        if fault := _fault(value):
            problems.append(f"the argument {originals[name].key!r} {fault}")
    if problems:
        raise ArgumentError(f"{api.id}: {'; '.join(problems)}", hint=_wanted(api))
    return bound


def writable(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return those arguments that can be written as JSON, so that a refusal can be."""
    return {
        name: value for name, value in arguments.items() if not _fault(name) and not _fault(value)
    }


def _default(parameter: Parameter) -> Any:
    """Return a default in its declared type; as the API's own word where it does not fit it."""
    try:
        return _convert(parameter, parameter.default)
    except _WrongError:
        return parameter.default


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


class _WrongError(Exception):
    """A value does not fit its parameter."""


def _unknown(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    guess = f"; did you mean {near[0]!r}?" if near else ""
    return f"unknown argument {name[:80]!r}{guess}"


def _wanted(api: Api) -> str:
    shown = [p.key for p in api.required] + [f"{p.key} (optional)" for p in api.optional]
    return f"it takes: {', '.join(shown) or 'no arguments'}"


def _convert(parameter: Parameter, value: Any) -> Any:
    if isinstance(value, str) and len(value) > VALUE_LIMIT:
        raise _wrong(parameter, value, f"at most {VALUE_LIMIT} characters")
    kind = parameter.type.upper().partition(" ")[0]
    if convert := _CONVERTERS.get(kind):
        return convert(parameter, value)
    if isinstance(value, (dict, list)):
        raise _wrong(parameter, value, "text")
    if isinstance(value, bool):
        value = "true" if value else "false"
    elif not isinstance(value, str):
        value = "" if value is None else str(value)
    if parameter.enum and value not in parameter.enum:
        same = [allowed for allowed in parameter.enum if allowed.lower() == value.lower()]
        if not same:
            raise _wrong(parameter, value, f"one of {', '.join(parameter.enum)}")
        value = same[0]
    return value


def _number(parameter: Parameter, value: Any) -> int | float:
    if isinstance(value, str):
        text = value.strip().replace(",", "").removesuffix("%")
        try:
            value = int(text)
        except ValueError:
            try:
                value = float(text)
            except ValueError:
                raise _wrong(parameter, value, "a number") from None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _wrong(parameter, value, "a number")
    if isinstance(value, float) and not math.isfinite(value):
        raise _wrong(parameter, value, "a finite number")
    return value


def _boolean(parameter: Parameter, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    text = str(value).strip().lower()
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise _wrong(parameter, value, "true or false")


def _date(parameter: Parameter, value: Any) -> str:
    if value in ("", None):
        return ""
    try:
        return parse_date(str(value)).isoformat()
    except UsageError as error:
        raise _WrongError(f"the argument {parameter.key!r}: {error.message}") from None


def _time(parameter: Parameter, value: Any) -> str:
    if value in ("", None):
        return ""
    try:
        return parse_time(str(value)).strftime("%H:%M")
    except UsageError as error:
        raise _WrongError(f"the argument {parameter.key!r}: {error.message}") from None


def _array(parameter: Parameter, value: Any) -> list[Any]:
    """Take a list, JSON text of one, or values with commas between them."""
    if isinstance(value, str):
        text = value.strip()
        value = _json(text) if text.startswith("[") else [one.strip() for one in text.split(",")]
        value = [] if value == [""] else value
    elif isinstance(value, (int, float)):
        value = [value]
    if not isinstance(value, list):
        raise _wrong(parameter, value, "a list")
    return value


def _object(parameter: Parameter, value: Any) -> dict[str, Any]:
    found = _json(value) if isinstance(value, str) else value
    if not isinstance(found, dict):
        raise _wrong(parameter, value, "a JSON object")
    return found


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


_CONVERTERS: dict[str, Callable[[Parameter, Any], Any]] = {
    "NUMBER": _number,
    "INTEGER": _number,
    "BOOLEAN": _boolean,
    "DATE": _date,
    "TIME": _time,
    "ARRAY": _array,
    "OBJECT": _object,
}


def _wrong(parameter: Parameter, value: Any, wanted: str) -> _WrongError:
    return _WrongError(f"the argument {parameter.key!r} must be {wanted}, not {repr(value)[:80]}")
