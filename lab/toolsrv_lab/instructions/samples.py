"""Samples of APIs that are offered or needed together: one tool, one category, several."""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from toolsrv_registry.api import Api
from toolsrv_registry.errors import UsageError
from toolsrv_registry.words import content_words, stems

Kind = Literal["tool", "category", "collection"]
KINDS: tuple[Kind, ...] = ("tool", "category", "collection")

APIS_OF_ONE_TOOL = 10
APIS_OF_EACH = 3
TOOLS = (2, 5)
NEEDED = (2, 5)

_NEAR = 8  # a collection is drawn among so many nearest tools
_COMMON = 50  # a word of more tools than this says too little to link two of them

ToolKey = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Sample:
    """APIs that are offered together, tool by tool, and how they were drawn."""

    kind: Kind
    apis: tuple[Api, ...]

    @property
    def tools(self) -> list[ToolKey]:
        """(category, tool) of every tool, in the order of the APIs."""
        return list(dict.fromkeys((api.category, api.tool) for api in self.apis))

    def cut(self, most: int) -> Sample:
        """Return the sample with at most so many APIs of each tool."""
        taken: Counter[ToolKey] = Counter()
        kept = []
        for api in self.apis:
            taken[api.category, api.tool] += 1
            if taken[api.category, api.tool] <= most:
                kept.append(api)
        return Sample(self.kind, tuple(kept))


class Deck:
    """The tools of some APIs, ready to be sampled.

    Raises:
        UsageError: there is nothing to draw for any of the kinds.
    """

    def __init__(self, apis: Sequence[Api], kinds: Sequence[Kind] = KINDS) -> None:
        self._apis: dict[ToolKey, list[Api]] = defaultdict(list)
        for api in apis:
            self._apis[api.category, api.tool].append(api)
        self._categories: dict[str, list[ToolKey]] = defaultdict(list)
        for key in self._apis:
            self._categories[key[0]].append(key)
        self._words: dict[ToolKey, frozenset[str]] = {}
        self._holders: dict[str, list[ToolKey]] = {}
        if "collection" in kinds:
            self._read_words()
        self._leads = [(kind, key) for kind in kinds for key in self._apis if self._can(kind, key)]
        if not self._leads:
            raise UsageError(
                f"of {len(self._apis)} tools none can be sampled by {' or '.join(kinds)}",
                hint="import a catalog with more tools, or leave --kind out",
            )

    def __len__(self) -> int:
        """Return the number of samples in a round."""
        return len(self._leads)

    def samples(self, rounds: int, seed: int) -> Iterator[Sample]:
        """Yield ``rounds`` times every tool of every kind, in a drawn order."""
        for turn in range(rounds):
            order = list(self._leads)
            random.Random(f"{seed}/{turn}").shuffle(order)
            for kind, key in order:
                rng = random.Random(f"{seed}/{turn}/{kind}/{key[0]}/{key[1]}")
                yield self._sample(kind, key, rng)

    def _sample(self, kind: Kind, lead: ToolKey, rng: random.Random) -> Sample:
        if kind == "tool":
            return Sample(kind, self._some(lead, APIS_OF_ONE_TOOL, rng))
        if kind == "category":
            partners = [key for key in self._categories[lead[0]] if key != lead]
        else:
            partners = self._near(lead)
        rng.shuffle(partners)
        tools = [lead, *partners[: rng.randint(*TOOLS) - 1]]
        rng.shuffle(tools)
        chosen = [api for key in tools for api in self._some(key, APIS_OF_EACH, rng)]
        return Sample(kind, tuple(chosen))

    def _some(self, key: ToolKey, most: int, rng: random.Random) -> tuple[Api, ...]:
        apis = self._apis[key]
        return tuple(rng.sample(apis, min(most, len(apis))))

    def _can(self, kind: Kind, key: ToolKey) -> bool:
        if kind == "tool":
            return True
        if kind == "category":
            return len(self._categories[key[0]]) > 1
        return any(
            other[0] != key[0] for word in self._words[key] for other in self._holders.get(word, ())
        )

    def _read_words(self) -> None:
        holders: dict[str, list[ToolKey]] = defaultdict(list)
        for key, apis in self._apis.items():
            text = " ".join([key[1], apis[0].tool_description[:600], *(api.name for api in apis)])
            self._words[key] = stems(content_words(text))
            for word in self._words[key]:
                holders[word].append(key)
        most = min(_COMMON, max(2, len(self._apis) // 3))
        self._holders = {word: held for word, held in holders.items() if 1 < len(held) <= most}

    def _near(self, lead: ToolKey) -> list[ToolKey]:
        """Return the tools of other categories that share the most telling words with one."""
        score: dict[ToolKey, float] = defaultdict(float)
        for word in sorted(self._words[lead]):
            held = self._holders.get(word, ())
            for other in held:
                if other[0] != lead[0]:
                    score[other] += math.log(len(self._apis) / len(held))
        weighed = {key: value / math.sqrt(len(self._words[key])) for key, value in score.items()}
        return sorted(weighed, key=lambda key: (-weighed[key], key))[:_NEAR]


def needed(sample: Sample, rng: random.Random) -> list[Api]:
    """Return APIs of a sample that one task needs: one to five, of two tools where it has two."""
    by_tool: dict[ToolKey, list[Api]] = defaultdict(list)
    for api in sample.apis:
        by_tool[api.category, api.tool].append(api)
    least = 1 if sample.kind == "tool" else NEEDED[0]
    size = min(rng.randint(least, NEEDED[1]), len(sample.apis))
    first = [rng.choice(by_tool[key]) for key in rng.sample(list(by_tool), min(2, len(by_tool)))]
    rest = [api for api in sample.apis if api not in first]
    chosen = [*first, *rng.sample(rest, min(max(0, size - len(first)), len(rest)))]
    rng.shuffle(chosen)
    return chosen


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
