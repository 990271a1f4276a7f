"""From a ranking to a list that a reader wants: needs covered, twins folded, tools together.

``named_first`` puts in front what the text calls by its full name; ``covering`` moves a few
candidates so that every need of a text has an API near the top; ``fold`` puts near-duplicates of
different providers under the best of them; ``grouped`` brings the hits of one tool together. Each
decides from the front of its list to the back, so that a longer list begins as a shorter one does
and pages fit together.

Pure; knows nothing about storage, nor how the candidates were ranked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

from toolsrv_registry.api import Api
from toolsrv_registry.fusion import Candidate
from toolsrv_registry.words import stems, words

# The heads of the list in which every need is looked for, one after the other.
_HEADS = (3, 5)
# A need without a place takes one from a part of the text that has this many, provided that it
# fits nearly as well (score) and at all (cosine, where it was measured). A clause may be mere talk:
# with weaker terms than these, covering lowers NDCG@5 on ToolBench's development queries.
_MANY = 3
_NEARLY = 0.8
_MEANT = 0.4

# Two texts are twins from this share of common words; a text of few words says too little.
_ALIKE = 0.9
_LEAST_WORDS = 6
_NAME_LIMIT = 80
_DESCRIPTION_LIMIT = 400

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Kept:
    """A candidate that stands in the list, and the ids of its twins that do not."""

    candidate: Candidate
    api: Api
    similar: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Sketch:
    """What of an API tells whether it is the twin of another."""

    tool: str
    named: frozenset[str]
    name: frozenset[str]
    text: str
    parameters: frozenset[str]


def named_first(ranked: Sequence[Candidate], named: Sequence[str], text: str) -> list[Candidate]:
    """Return the ranking led by the APIs (ids) that the text names in full, as the best of all."""
    if not named:
        return list(ranked)
    known = {one.api_id: one for one in ranked}
    best = max((one.score for one in ranked), default=1.0)
    first = []
    for api_id in named:
        one = known.get(api_id)
        if one is None or one.part != text:
            one = Candidate(api_id, best, None, None, one.similarity if one else 0.0, text)
        first.append(one._replace(score=best))
    return [*first, *(one for one in ranked if one.api_id not in named)]


def covering(ranked: Sequence[Candidate], parts: Sequence[str]) -> list[Candidate]:
    """Return the ranking with a place near the top for each need that deserves one.

    ``parts`` are the whole text and then its clauses. O(candidates x heads); the order is the
    ranking's but for the few that are moved.
    """
    found = list(ranked)
    if len(parts) < 2:
        return found
    best: dict[str, Candidate] = {}
    for candidate in found:
        best.setdefault(candidate.part, candidate)
    for head in _HEADS:
        if head >= len(found):
            break
        taken = Counter(candidate.part for candidate in found[:head])
        for part in parts[1:]:
            if part in best and not taken[part]:
                _place(found, best[part], head, taken)
    return found


def _place(found: list[Candidate], wanted: Candidate, head: int, taken: Counter[str]) -> None:
    """Put a candidate at the end of the head for one of a part that has many, if it may."""
    out = next((i for i in range(head - 1, 0, -1) if taken[found[i].part] >= _MANY), None)
    if out is None or wanted.score < _NEARLY * found[out].score:
        return
    if wanted.dense_rank is not None and wanted.similarity < _MEANT:
        return
    found.remove(wanted)
    given = found.pop(out)
    found.insert(head - 1, wanted)
    found.insert(head, given)
    taken[given.part] -= 1
    taken[wanted.part] += 1


class Fold:
    """Takes candidates in order and keeps those that are not the twin of an earlier one.

    A twin serves the same part of the text, says the same in nearly the same words and takes
    parameters of the same names, and belongs to another tool; within a tool only exact copies
    are twins. An API whose tool is named by a word of the ``text`` that the other's is not named
    by, and that the API itself does not say, stays: "Cricket API" and "Football API" describe their
    matches alike, but every tool's random joke is a joke. O(kept) per candidate.
    """

    def __init__(self, text: str = "") -> None:
        self._asked = stems(words(text))
        self._kept: list[tuple[Candidate, Api, _Sketch, list[str]]] = []

    def __len__(self) -> int:
        return len(self._kept)

    def add(self, candidate: Candidate, api: Api) -> None:
        """Keep a candidate, or fold it into its twin."""
        sketch = self._sketch(api)
        for other, _, known, similar in self._kept:
            if other.part == candidate.part and _twins(known, sketch):
                similar.append(candidate.api_id)
                return
        self._kept.append((candidate, api, sketch, []))

    def kept(self) -> list[Kept]:
        """Return what was kept, in order."""
        return [Kept(one, api, tuple(similar)) for one, api, _, similar in self._kept]

    def _sketch(self, api: Api) -> _Sketch:
        about = (api.description or api.tool_description)[:_DESCRIPTION_LIMIT]
        named = _name_stems(api.tool) & self._asked
        if named:
            named -= stems([*_name_words(api.name), *words(about)])
        return _Sketch(
            tool=api.id.rpartition("/")[0],
            named=named,
            name=_name_words(api.name),
            text=about.lower(),
            parameters=frozenset(
                one.name.lower() for group in (api.required, api.optional) for one in group
            ),
        )


def fold(ranked: Iterable[Candidate], apis: Mapping[str, Api], text: str = "") -> list[Kept]:
    """Return the candidates whose API is known, twins folded."""
    folder = Fold(text)
    for candidate in ranked:
        if candidate.api_id in apis:
            folder.add(candidate, apis[candidate.api_id])
    return folder.kept()


def grouped(items: Iterable[Item], key: Callable[[Item], str]) -> list[list[Item]]:
    """Return the items in groups of one key, groups and members in the order of first sight."""
    groups: dict[str, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return list(groups.values())


@lru_cache(maxsize=8_192)
def _name_words(name: str) -> frozenset[str]:
    return frozenset(words(name[:_NAME_LIMIT]))


@lru_cache(maxsize=8_192)
def _name_stems(name: str) -> frozenset[str]:
    return stems(_name_words(name))


def _twins(one: _Sketch, other: _Sketch) -> bool:
    """Say whether ``other`` is a twin of ``one``, which came first."""
    if not other.named <= one.named or one.parameters != other.parameters:
        return False
    if one.tool == other.tool:
        return one.name == other.name and one.text == other.text
    if one.name != other.name:
        return one.text == other.text and len(one.text.split()) >= _LEAST_WORDS
    mine, others = set(one.text.split()), set(other.text.split())
    if len(mine) + len(one.name) + len(one.parameters) < _LEAST_WORDS:
        return False
    common = len(mine & others)
    return common >= _ALIKE * (len(mine) + len(others) - common)
