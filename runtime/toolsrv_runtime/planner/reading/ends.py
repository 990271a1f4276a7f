"""Functions that take a first and a last day, and functions that count from a day. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from toolsrv_registry.api import Api, Parameter
from toolsrv_runtime.values import kinds
from toolsrv_runtime.values.facts import words

_START = re.compile(r"\b(?:start|from|begin\w*|first|earlier)\b")
_END = re.compile(r"\b(?:end|to|until|finish|last|second|later)\b")


def roles(api: Api) -> Mapping[str, Parameter]:
    """Return the required first and last day of a function by "start" and "end"; none without both."""
    found = {_role(one): one for one in _dates(api)}
    return found if len(_dates(api)) == 2 and found.keys() == {"start", "end"} else {}


def counted_from(api: Api) -> Parameter | None:
    """Return the one day that a function counts a required number from; None where it does not."""
    dates = _dates(api)
    numbers = [one for one in api.required if kinds.value_kind(one, api) == "number"]
    return dates[0] if len(dates) == len(numbers) == 1 else None


def _dates(api: Api) -> list[Parameter]:
    return [one for one in api.required if kinds.value_kind(one, api) == "date"]


def _role(parameter: Parameter) -> str:
    name = words(parameter.name)
    return "start" if _START.search(name) else "end" if _END.search(name) else ""
