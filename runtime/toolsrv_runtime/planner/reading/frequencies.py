"""How often a year something happens: "compounded monthly" is 12 times. Pure."""

from __future__ import annotations

import re

from toolsrv_registry.api import Api, Parameter
from toolsrv_runtime.planner.reading.wish import Wish
from toolsrv_runtime.values.facts import words

_TIMES = {
    "daily": 365, "every day": 365, "weekly": 52, "every week": 52, "monthly": 12, "every month": 12,
    "quarterly": 4, "every quarter": 4, "semi-annually": 2, "semiannually": 2, "half-yearly": 2,
    "twice a year": 2, "biannually": 2, "yearly": 1, "annually": 1, "once a year": 1, "every year": 1,
    "once every year": 1, "once per year": 1, "each year": 1, "once each year": 1,
}  # fmt: skip
_NAME = re.compile(r"(?:times|periods|payments|compoundings?|compounds) (?:per|a|in a) year")
_SAID = re.compile(
    rf"\b(?:compound\w*|capitali[sz]ed|credited|paid|added|interest)\b[^.?!;\d]{{0,24}}?\b({'|'.join(_TIMES)})\b"
    rf"|\b({'|'.join(_TIMES)}) (?:compound\w*|interest|capitali[sz]ation)\b",
    re.IGNORECASE,
)


def told(parameter: Parameter, _api: Api, wish: Wish) -> str:
    """Return the one frequency that a part, or else the task, tells, for such a parameter; or ""."""
    if not _NAME.search(words(parameter.name)):
        return ""
    for text in (wish.part, wish.task):
        found = {_TIMES[(match[1] or match[2]).lower()] for match in _SAID.finditer(text)}
        if found:
            return str(found.pop()) if len(found) == 1 else ""
    return ""
