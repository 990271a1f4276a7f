"""Needs written one by one from API documents: ``data/needs.tsv``.

A line is an API's id, a tab and a need in a person's words, in which values of the API's
parameters are marked: ``{city=Lisbon}``, or ``{date=2024-05-03|May 3rd}`` where the person says it
otherwise than the API takes it. What a template cannot do is here: purposes told without the
document's words, data points asked for one by one, values in their natural place.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

MARK = re.compile(r"\{([^{}=|]+)=([^{}|]*)(?:\|([^{}]*))?\}")


@cache
def written() -> Mapping[str, tuple[str, ...]]:
    """Return API id -> its needs, marked."""
    found: dict[str, list[str]] = defaultdict(list)
    text = (files("toolsrv_lab.instructions") / "data" / "needs.tsv").read_text("utf-8")
    for line in text.splitlines():
        api_id, _, need = line.partition("\t")
        found[api_id].append(need)
    return {api_id: tuple(needs) for api_id, needs in found.items()}


def spoken(need: str) -> str:
    """Return a need as the person says it, without marks."""
    return MARK.sub(lambda match: match[2] if match[3] is None else match[3], need)


def arguments(need: str) -> dict[str, str]:
    """Return parameter -> value as the API takes it, of the values that a need states."""
    return {match[1]: match[2] for match in MARK.finditer(need)}
