"""Letter case as people name it: "with capitals like in a book title". Pure."""

from __future__ import annotations

import re

from toolsrv_registry.api import Api, Parameter
from toolsrv_runtime.planner.reading.wish import Wish

_CASES = {
    "title": r"\b(?:as|like) (?:in |on )?an? (?:\w+ )?(?:title|headline)\b|\btitle[ -]?case\b"
    r"|\b(?:each|every) word(?:'s first letter)?\b[^.?!]{0,30}\b(?:capital\w*|big|large|upper)"
    r"|\b(?:capital\w*|big|upper\w*)\b[^.?!]{0,30}\b(?:each|every) word\b",
    "sentence": r"\bsentence[ -]?case\b|\b(?:ordinary|normal|regular|proper|plain) sentence\b"
    r"|\bonly the (?:very )?first letter\b",
}


def told(parameter: Parameter, _api: Api, wish: Wish) -> str:
    """Return the case that a part describes, "" for none; one that the parameter knows."""
    if not {"upper", "lower"} <= set(parameter.enum):
        return ""
    found = [case for case, said in _CASES.items() if re.search(said, wish.part, re.IGNORECASE)]
    return found[0] if len(found) == 1 and found[0] in parameter.enum else ""
