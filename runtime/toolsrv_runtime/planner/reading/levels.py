"""The end of a scale that a document orders: "the toughest error level" of "L lowest to H highest". Pure."""

from __future__ import annotations

import re

from toolsrv_registry.api import Api, Parameter
from toolsrv_runtime.planner.reading.wish import Wish
from toolsrv_runtime.values.facts import words

_ORDERED = re.compile(
    r"\b(?P<least>\w+) (?:is )?(?:the )?(?:lowest|least|weakest|smallest) to "
    r"(?P<most>\w+) (?:is )?(?:the )?(?:highest|most|strongest|largest)\b"
)
_MOST = r"highest|strongest|toughest|sturdiest|most \w+|max(?:imum|imal)?|best|greatest|hardest|top"
_LEAST = r"lowest|weakest|least \w+|min(?:imum|imal)?|smallest|lightest|slightest"


def told(parameter: Parameter, _api: Api, wish: Wish) -> str:
    """Return the allowed value at that end of its scale that a part wants of a parameter; or ""."""
    ordered = _ORDERED.search(parameter.description) if parameter.enum else None
    if ordered is None:
        return ""
    named = "|".join(re.escape(one) for one in {*words(parameter.name).split(), "level"})
    found = {
        ordered[end]
        for end, said in (("most", _MOST), ("least", _LEAST))
        if re.search(rf"\b(?:{said}) (?:\w+[ -]){{0,2}}?(?:{named})\b", wish.part, re.IGNORECASE)
    }
    level = found.pop() if len(found) == 1 else ""
    return level if level in parameter.enum else ""
