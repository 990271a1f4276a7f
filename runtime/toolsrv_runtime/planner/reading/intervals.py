"""Musical intervals as semitones: "up a fifth" is 7 of them, "a minor third down" -3. Pure."""

from __future__ import annotations

import re

from toolsrv_registry.api import Api, Parameter
from toolsrv_runtime.planner.reading.wish import Wish
from toolsrv_runtime.values.facts import words

_SEMITONES = {
    "second": {"minor": 1, "": 2, "major": 2},
    "third": {"minor": 3, "": 4, "major": 4},
    "fourth": {"": 5, "perfect": 5, "augmented": 6},
    "fifth": {"diminished": 6, "": 7, "perfect": 7, "augmented": 8},
    "sixth": {"minor": 8, "": 9, "major": 9},
    "seventh": {"minor": 10, "": 11, "major": 11},
    "octave": {"": 12, "perfect": 12},
    "tritone": {"": 6},
    "half step": {"": 1},
    "semitone": {"": 1},
    "whole step": {"": 2},
    "whole tone": {"": 2},
}
_SAID = re.compile(
    r"\b(?P<before>up|down|above|below|higher|lower)?(?:\s+by)?\s*\b(?:a|an|one)\s+"
    r"(?:(?P<kind>minor|major|perfect|augmented|diminished)\s+)?"
    rf"(?P<name>{'|'.join(_SEMITONES)})\b(?!\s+(?:chord|scale|string|fret|note|of|time))"
    r"(?:\s+(?P<behind>up|down|above|below|higher|lower))?",
    re.IGNORECASE,
)
_DOWN = frozenset({"down", "below", "lower"})


def told(parameter: Parameter, _api: Api, wish: Wish) -> str:
    """Return the one interval that a part tells, in semitones, for a number of them; else ""."""
    if "semitones" not in words(parameter.name).split():
        return ""
    found = {_read(match) for match in _SAID.finditer(wish.part)}
    return found.pop() if len(found) == 1 else ""


def _read(match: re.Match[str]) -> str:
    size = _SEMITONES[match["name"].lower()].get((match["kind"] or "").lower())
    ways = {(match[one] or "").lower() for one in ("before", "behind")}
    return "" if size is None else f"{-size if ways & _DOWN else size}"
