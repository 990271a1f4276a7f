"""The first or last day of a span that a call took: "which week is the closing date in". Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

_DAY = r"(?:date|day)\b"
_LAST = re.compile(rf"\b(?:closing|final|finishing|last|end(?:ing)?) {_DAY}", re.IGNORECASE)
_FIRST = re.compile(rf"\b(?:opening|starting|first|start) {_DAY}", re.IGNORECASE)


def told(part: str, spans: Iterable[Mapping[str, str]]) -> str:
    """Return the day of the only one of ``spans`` ("start" and "end") that a part names, else ""."""
    last, first = _LAST.search(part), _FIRST.search(part)
    known = {(one["start"], one["end"]) for one in spans if {"start", "end"} <= one.keys()}
    if len(known) != 1 or bool(last) == bool(first):
        return ""
    start, end = known.pop()
    return end if last else start
