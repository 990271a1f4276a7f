"""Which APIs a task needs together: one tool, one category, or several (ToolLLM 2.2).

``groups`` deals the APIs like cards: every API comes once per round, so none is forgotten and
none is favoured. Seeded. The lists that ToolLLM offers a writing model are drawn in ``samples.py``.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence

from toolsrv_registry.api import Api

# Shares of one tool, one category, several categories; and how many needs a text has.
_KINDS = (("tool", 0.4), ("category", 0.3), ("any", 0.3))
_SIZES = {"tool": (1, 1, 1, 2, 2, 2, 3), "category": (2, 2, 3, 3, 4), "any": (2, 2, 3, 3, 4, 5)}


def groups(apis: Sequence[Api], rounds: int, rng: random.Random) -> Iterator[list[Api]]:
    """Yield groups of distinct APIs; each API leads one group per round."""
    by_tool: dict[tuple[str, str], list[Api]] = defaultdict(list)
    by_category: dict[str, list[Api]] = defaultdict(list)
    for api in apis:
        by_tool[api.category, api.tool].append(api)
        by_category[api.category].append(api)
    for _ in range(rounds):
        order = list(apis)
        rng.shuffle(order)
        for first in order:
            kind = rng.choices([name for name, _ in _KINDS], [share for _, share in _KINDS])[0]
            size = rng.choice(_SIZES[kind])
            if kind == "tool":
                pool: Sequence[Api] = by_tool[first.category, first.tool]
            elif kind == "category":
                pool = by_category[first.category]
            else:
                pool = apis
            yield _group(first, pool, by_tool, size, rng)


def _group(
    first: Api,
    pool: Sequence[Api],
    by_tool: dict[tuple[str, str], list[Api]],
    size: int,
    rng: random.Random,
) -> list[Api]:
    chosen = {first.id: first}
    for _ in range(4 * size):
        if len(chosen) >= size:
            break
        # A tool that is used is often used twice.
        last = next(reversed(chosen.values()))
        siblings = by_tool[last.category, last.tool]
        other = rng.choice(siblings if rng.random() < 0.3 else pool)
        chosen.setdefault(other.id, other)
    members = list(chosen.values())
    rng.shuffle(members)
    return members
