"""Values told behind their parameter's own name: "season 42409", "page 2", "the folder f-220". Pure."""

from __future__ import annotations

import re

from toolsrv_registry.api import Parameter
from toolsrv_runtime.planner.reading.measures import unit_written
from toolsrv_runtime.values.facts import words

_MARKING_WORDS = "id ids identifier code number no num nr name key value text type date time the of"
_MARKS = frozenset(_MARKING_WORDS.split())
"""Words of a parameter's name that say no more than that it has a value."""

_VALUE = (
    r"(?:(?:ids?|identifier|code|numbers?|no\.?|nr\.?)\s*)?[#:=]?\s*[\"'“‘]?"
    r"([\w-]*\d[\w.-]*)(?=[\s,;:?!.)\"'”’]|$)(?![?!]\w)"
)


def labelled(parameter: Parameter, text: str) -> str:
    """Return the one value with a digit that ``text`` tells behind the parameter's name, "" for none.

    Only the last word of the name counts that is more than a mark: ``season`` of ``seasonId``. A
    name that is told with two values says nothing.
    """
    told = [word for word in words(parameter.name).split() if word not in _MARKS]
    if not told or len(told[-1]) < 3:
        return ""
    stem = re.escape(told[-1].removesuffix("s"))
    counted = r"(?<!\d )" if unit_written(told[-1]) else ""  # "3 hours 30 minutes" is no hour 30
    found = re.findall(rf"(?<![\w-]){counted}{stem}s?\s+{_VALUE}", text, re.IGNORECASE)
    values = {value.rstrip(".-") for value in found}
    return values.pop() if len(values) == 1 else ""
