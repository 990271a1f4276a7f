"""Instruction types and subsets of ToolBench's queries, by what a query's set or id says.

ToolBench's files name them G1 to G3, the paper I1 to I3; where a file says nothing of them, its own
set is the group.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from toolsrv_lab.evaluation.stable import name_of
from toolsrv_lab.evaluation.statistics import draw
from toolsrv_lab.retrieval.queries import Query

TYPES = ("I1", "I2", "I3")
SUBSETS = ("I1-Inst", "I1-Tool", "I1-Cat", "I2-Inst", "I2-Cat", "I3-Inst")
"""The six subsets of the paper's evaluation."""

_SAID = re.compile(
    r"(?<![A-Za-z0-9])[IG]([123])(?!\d)(?:[\s_.-]*(inst|tool|cat)[a-z]*)?", re.IGNORECASE
)


def subset_of(query: Query) -> str:
    """Return ``I2-Cat``, ``I2`` where nothing says which split, else the query's set."""
    return _said(query.set) or _said(query.query_id) or query.set


def subset_named(name: str) -> str:
    """Return the subset that a name of a set says, the name where it says none."""
    return _said(name) or name


def _said(text: str) -> str:
    found = _SAID.search(text)
    if found is None:
        return ""
    number, split = found.groups()
    return f"I{number}-{split.capitalize()}" if split else f"I{number}"


def type_of(subset: str) -> str:
    """Return the instruction type of a subset, the subset itself where it has none."""
    start = subset.partition("-")[0]
    return start if start in TYPES else subset


def draw_subsets(
    queries: Sequence[Query], limit: int | None, *, seed: int
) -> dict[str, list[Query]]:
    """Return at most ``limit`` queries of each subset, the paper's subsets first."""
    groups: dict[str, list[Query]] = {}
    for one in queries:
        groups.setdefault(subset_of(one), []).append(one)
    return {
        name: draw(groups[name], limit, seed=seed, key=name_of) for name in ordered(groups, SUBSETS)
    }


def ordered(names: Iterable[str], first: Sequence[str]) -> list[str]:
    """Return the names that there are: those of ``first`` in its order, then types, then others."""
    known = list(dict.fromkeys(names))
    heads = [one for one in (*first, *TYPES) if one in known]
    return [*dict.fromkeys(heads), *(one for one in known if one not in heads)]
