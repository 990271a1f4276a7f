"""Temperatures that an answer tells on two scales: ``feels_like_c`` and ``feels_like_f``. Pure.

A call that goes on with one takes the first; the other where the task wants that scale.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from toolsrv_runtime.values.facts import Fact, words

_WANTED = {
    scale: re.compile(
        rf"\b(?:in|into|to|as) (?:degrees? )?(?:°\s?{scale}|{scale}|{name})\b", re.IGNORECASE
    )
    for scale, name in (("c", "celsius|centigrade"), ("f", "fahrenheit"))
}


def taken_on(seen: Iterable[Fact], task: str) -> list[Fact]:
    """Return the facts of an answer without those that tell one before them on an unwanted scale."""
    told: set[str] = set()
    left = []
    for fact in seen:
        what, _, scale = words(fact[0]).rpartition(" ")
        if scale not in _WANTED or what not in told or _WANTED[scale].search(task):
            left.append(fact)
        if scale in _WANTED:
            told.add(what)
    return left
