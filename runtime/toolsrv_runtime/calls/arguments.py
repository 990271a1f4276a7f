"""Arguments of one call, checked and turned into what the provider expects.

Pure: types come from the catalog entry, values from a model or a person, so nothing is trusted.
"""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Mapping
from typing import Any

from toolsrv_registry.api import Api, Parameter
from toolsrv_registry.functions import parameter_keys
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
        value = json.loads(text)
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

    Accepts a parameter's key or its original name. Text that spells a number or a boolean is
    taken as one where the API wants one; an empty optional value counts as absent.

    Raises:
        ArgumentError: a parameter is unknown, missing, of another type, or not an allowed value.
    """
    keys = parameter_keys(api)
    originals = {parameter.name: parameter for parameter in keys.values()}
    bound: dict[str, Any] = {}
    for name, value in arguments.items():
        parameter = keys.get(name) or originals.get(name)
        if parameter is None:
            raise _unknown(api, name, list(keys))
        if parameter in api.optional and value in ("", None):
            continue
        bound[parameter.name] = _convert(api, parameter, value)
    for parameter in api.required:
        if bound.get(parameter.name, "") == "":
            raise ArgumentError(
                f"{api.id}: the argument {parameter.key!r} is missing",
                hint=_wanted(api),
            )
    return bound


def _unknown(api: Api, name: str, known: list[str]) -> ArgumentError:
    near = difflib.get_close_matches(name, known, n=1)
    guess = f"; did you mean {near[0]!r}?" if near else ""
    return ArgumentError(f"{api.id}: unknown argument {name[:80]!r}{guess}", hint=_wanted(api))


def _wanted(api: Api) -> str:
    shown = [p.key for p in api.required] + [f"{p.key} (optional)" for p in api.optional]
    return f"it takes: {', '.join(shown) or 'no arguments'}"


def _convert(api: Api, parameter: Parameter, value: Any) -> Any:
    if isinstance(value, str) and len(value) > VALUE_LIMIT:
        raise _wrong(api, parameter, value, f"at most {VALUE_LIMIT} characters")
    if isinstance(value, str) and any("\ud800" <= character <= "\udfff" for character in value):
        raise _wrong(api, parameter, value, "valid Unicode text")
    kind = parameter.type.upper()
    if kind == "NUMBER":
        return _number(api, parameter, value)
    if kind == "BOOLEAN":
        return _boolean(api, parameter, value)
    if isinstance(value, (dict, list)) and kind not in {"ARRAY", "OBJECT"}:
        raise _wrong(api, parameter, value, "text")
    if isinstance(value, bool):
        value = "true" if value else "false"
    elif not isinstance(value, (str, dict, list)):
        value = "" if value is None else str(value)
    if parameter.enum and value not in parameter.enum:
        same = [allowed for allowed in parameter.enum if allowed.lower() == str(value).lower()]
        if not same:
            raise _wrong(api, parameter, value, f"one of {', '.join(parameter.enum)}")
        value = same[0]
    return value


def _number(api: Api, parameter: Parameter, value: Any) -> int | float:
    if isinstance(value, str):
        text = value.strip().replace(",", "").removesuffix("%")
        try:
            value = int(text) if len(text) <= 300 else float(text)
        except ValueError:
            try:
                value = float(text)
            except ValueError:
                raise _wrong(api, parameter, value, "a number") from None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _wrong(api, parameter, value, "a number")
    if isinstance(value, float) and not math.isfinite(value):
        raise _wrong(api, parameter, value, "a finite number")
    return value


def _boolean(api: Api, parameter: Parameter, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    text = str(value).strip().lower()
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise _wrong(api, parameter, value, "true or false")


def _wrong(api: Api, parameter: Parameter, value: Any, wanted: str) -> ArgumentError:
    shown = repr(value)[:80]
    return ArgumentError(
        f"{api.id}: the argument {parameter.key!r} must be {wanted}, not {shown}",
        hint=_wanted(api),
    )
