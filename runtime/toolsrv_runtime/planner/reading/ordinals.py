"""Numbers that count a place: "how is 80th written out". Pure."""

from __future__ import annotations

import re

from toolsrv_registry.api import Api, Parameter
from toolsrv_runtime.planner.reading.wish import Wish

_ORDINAL = re.compile(r"(?<![\w.,])\d+(?:st|nd|rd|th)\b", re.IGNORECASE)
_DATE = re.compile(
    r"\s(?:of )?(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\b", re.IGNORECASE
)


def told(parameter: Parameter, _api: Api, wish: Wish) -> str:
    """Return the form "ordinal" where a part writes its number as one; a day of a month is none."""
    if "ordinal" not in parameter.enum:
        return ""
    found = [one for one in _ORDINAL.finditer(wish.part) if not _DATE.match(wish.part, one.end())]
    return "ordinal" if found else ""
