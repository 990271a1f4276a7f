"""The name under which a call is recorded: a hash over the API and what its arguments mean.

Two spellings of one call share it: values are bound to their declared types, defaults that the
catalog declares are filled in, and order does not count. Pure.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from toolsrv_registry.api import Api, Parameter
from toolsrv_registry.wellformed import too_deep
from toolsrv_runtime.calls import arguments as args
from toolsrv_runtime.errors import ArgumentError

_SIMPLER = "call it with simpler arguments"


def canonical(api: Api, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments as they count for the key, under the provider's names, sorted.

    Raises:
        ArgumentError: they do not fit the API.
    """
    values = args.bind(api, arguments)
    for parameter in api.optional:
        if parameter.name not in values and parameter.default not in ("", None):
            values |= _default(api, parameter)
    return {name: _plain(values[name]) for name in sorted(values)}


def call_key(api: Api, arguments: Mapping[str, Any]) -> str:
    """Return the key of a call, 64 hex digits.

    Arguments that do not fit the API have one too, over what they are as given: a recording of
    another program may hold such a call, and the error that came of it.

    Raises:
        ArgumentError: they are nested too deeply, or too long, to be looked at.
    """
    if too_deep(dict(arguments)):
        raise ArgumentError(f"{api.id}: the arguments are nested too deeply", hint=_SIMPLER)
    try:
        meant: Any = canonical(api, arguments)
    except ArgumentError:
        meant = {"unbound": _plain(dict(arguments))}
    try:
        text = json.dumps([api.id, meant], sort_keys=True, separators=(",", ":"))
    except ValueError as error:  # an endless integer
        raise ArgumentError(f"{api.id}: an argument is too long", hint=_SIMPLER) from error
    return hashlib.sha256(text.encode()).hexdigest()


def _default(api: Api, parameter: Parameter) -> dict[str, Any]:
    """Return a parameter's default, typed; nothing where it does not fit its own type."""
    alone = api.model_copy(update={"required": (), "optional": (parameter,)})
    try:
        return args.bind(alone, {parameter.name: parameter.default})
    except ArgumentError:
        return {}


def _plain(value: Any) -> Any:
    """Write 15.0 as 15 at any depth: JSON has one kind of number."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    return value
