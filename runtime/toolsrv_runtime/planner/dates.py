"""Dates of a call in the form that its parameters declare: "today" and "3 May 2027" as ISO 8601."""

from __future__ import annotations

import json

from toolsrv_catalogs.offline.values.day import parse_date
from toolsrv_registry.errors import UsageError
from toolsrv_registry.functions import Function


def iso_dates(function: Function, arguments: str) -> str:
    """Return the arguments, JSON text of an object, with the dates of DATE parameters written so.

    The small model copies the task's words, and a call sends what it is given. What is no date
    stays, for the API to refuse.
    """
    values = json.loads(arguments)
    for name, value in values.items():
        parameter = function.parameters.get(name)
        if parameter is None or not parameter.type.upper().startswith("DATE"):
            continue
        try:
            values[name] = parse_date(str(value)).isoformat()
        except UsageError:
            continue
    return json.dumps(values, ensure_ascii=False)
