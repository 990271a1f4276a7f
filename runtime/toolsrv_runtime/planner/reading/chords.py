"""Chord symbols: Bdim, F#m7, Ebmaj7, "C minor 7". The root is a note, what stands behind it names the kind. Pure."""

from __future__ import annotations

import re

from toolsrv_registry.api import Api, Parameter
from toolsrv_runtime.planner.reading.wish import Wish

_KINDS = {
    "m": "minor", "min": "minor", "maj": "major", "dim": "diminished", "°": "diminished",
    "aug": "augmented", "+": "augmented", "7": "dominant seventh", "maj7": "major seventh",
    "M7": "major seventh", "m7": "minor seventh", "min7": "minor seventh", "dim7": "diminished seventh",
    "sus2": "suspended second", "sus4": "suspended fourth", "6": "major sixth", "m6": "minor sixth",
}  # fmt: skip
_SPOKEN = {
    f"{kind} 7": name
    for kind, name in (
        ("minor", "minor seventh"), ("major", "major seventh"), ("dominant", "dominant seventh"),
        ("diminished", "diminished seventh"),
    )
}  # fmt: skip
_SUFFIX = "|".join(map(re.escape, sorted(_KINDS, key=len, reverse=True)))
_SYMBOL = re.compile(
    rf"(?<![\w#])([A-G](?:#|b|♯|♭)?)(?:({_SUFFIX})(?![\w#+])| ({'|'.join(_SPOKEN)})(?!\w))"
)


def told(parameter: Parameter, api: Api, wish: Wish) -> str:
    """Return the root or the kind that the one chord symbol of a part, or else the task, tells.

    For a function that takes both: a note, and a list of kinds with major and minor in it.
    """
    kinds = next((one for one in api.parameters if {"major", "minor"} <= set(one.enum)), None)
    texts = [set(_SYMBOL.findall(text)) for text in (wish.part, wish.task)] if kinds else []
    symbols = next((found for found in texts if len(found) == 1), None)
    if kinds is None or symbols is None:
        return ""
    root, suffix, spoken = map(str, symbols.pop())
    if parameter.name == "root":
        return root
    if parameter != kinds:
        return ""
    name = _KINDS[suffix] if suffix else _SPOKEN[spoken]
    short = name.removeprefix("dominant ")
    plain = {re.sub(r"[\s_-]+", " ", option.lower()): option for option in kinds.enum}
    return plain.get(name) or plain.get(suffix) or plain.get(short) or ""
