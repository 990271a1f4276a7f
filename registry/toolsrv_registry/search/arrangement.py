"""Arrangement of a ranking: cover listed subtasks, fold duplicates, group by tool.

Each subtask that a text lists gets a place near the top if an API serves it. APIs with nearly the
same name and description are folded into the first. Knows no indexes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from toolsrv_registry.api import Api
from toolsrv_registry.index.lexicon import Lexicon
from toolsrv_registry.search.clauses import subtasks
from toolsrv_registry.search.signals import Candidate
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


@dataclass(frozen=True, slots=True)
class ArrangedApi:
    """A candidate that stands in the list, and the ids of its twins that do not."""

    candidate: Candidate
    api: Api
    similar: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _ApiSketch:
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


def cover_parts(ranked: Sequence[Candidate], parts: Sequence[str]) -> list[Candidate]:
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
                _place_part(found, best[part], head, taken)
    return found


def _place_part(found: list[Candidate], wanted: Candidate, head: int, taken: Counter[str]) -> None:
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


class DuplicateFolder:
    """Takes candidates in order and keeps those that are not the twin of an earlier one.

    A twin serves the same part of the text, says the same in nearly the same words and takes
    parameters of the same names, and belongs to another tool; within a tool only exact copies
    are twins. An API whose tool is named by a word of the ``text`` that the other's is not named
    by, and that the API itself does not say, stays: "Cricket API" and "Football API" describe their
    matches alike, but every tool's random joke is a joke. O(kept) per candidate.
    """

    def __init__(self, text: str = "") -> None:
        self._asked = stems(words(text))
        self._kept: list[tuple[Candidate, Api, _ApiSketch, list[str]]] = []

    def __len__(self) -> int:
        return len(self._kept)

    def add(self, candidate: Candidate, api: Api) -> None:
        """Keep a candidate, or fold it into its twin."""
        sketch = self._sketch(api)
        for other, _, known, similar in self._kept:
            if other.part == candidate.part and _are_duplicates(known, sketch):
                similar.append(candidate.api_id)
                return
        self._kept.append((candidate, api, sketch, []))

    def kept(self) -> list[ArrangedApi]:
        """Return what was kept, in order."""
        return [ArrangedApi(one, api, tuple(similar)) for one, api, _, similar in self._kept]

    def _sketch(self, api: Api) -> _ApiSketch:
        about = (api.description or api.tool_description)[:_DESCRIPTION_LIMIT]
        named = _name_stems(api.tool) & self._asked
        if named:
            named -= stems([*_name_words(api.name), *words(about)])
        return _ApiSketch(
            tool=api.id.rpartition("/")[0],
            named=named,
            name=_name_words(api.name),
            text=about.lower(),
            parameters=frozenset(
                one.name.lower() for group in (api.required, api.optional) for one in group
            ),
        )


def fold_duplicates(
    ranked: Iterable[Candidate], apis: Mapping[str, Api], text: str = ""
) -> list[ArrangedApi]:
    """Return the candidates whose API is known, twins folded."""
    folder = DuplicateFolder(text)
    for candidate in ranked:
        if candidate.api_id in apis:
            folder.add(candidate, apis[candidate.api_id])
    return folder.kept()


@lru_cache(maxsize=8_192)
def _name_words(name: str) -> frozenset[str]:
    return frozenset(words(name[:_NAME_LIMIT]))


@lru_cache(maxsize=8_192)
def _name_stems(name: str) -> frozenset[str]:
    return stems(_name_words(name))


def _are_duplicates(one: _ApiSketch, other: _ApiSketch) -> bool:
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


Floats = npt.NDArray[np.float32]

COVERED_HEAD = 5
# A longer text has clauses for its needs, which the ranking looks at; searches for the things that
# its sentences list would cost a third more and bring nothing on ToolBench's development queries.
_MOST_WORDS = 25
_MOST_SEARCHES = 4
# An API serves a need with so much of the best API's words for it, and may serve it with so much.
_SERVES, _MAY_SERVE = 0.6, 0.3
# A good hit of a need: probably needed, and near by meaning where that was measured.
_GOOD, _NEAR = 0.25, 0.35
# Of a need's own hits those count as good as its best that have so much of its score.
_AS_GOOD, _LOOKED_AT = 0.75, 5


def listed_subtasks(parts: Sequence[str]) -> list[str]:
    """Return the needs to look after one by one; none where there is one, or the text is long.

    ``parts`` are the whole text and then its clauses, if there are several.
    """
    if len(parts[0].split(maxsplit=_MOST_WORDS)) > _MOST_WORDS:
        return []
    found = subtasks(parts[1:] or parts)
    return found if len(found) > 1 else []


def word_shares(
    lexicon: Lexicon, places: Sequence[int], head: Sequence[Candidate], wishes: Sequence[str]
) -> dict[str, Floats]:
    """Return for each API of the head its words for each need, as shares of the best API's.

    ``places`` are those of all candidates in the lexicon.
    """
    wanted = {candidate.api_id for candidate in head}
    words = lexicon.fit(wishes).words
    words = words / np.maximum(words.max(axis=1, keepdims=True), 1e-6)
    return {lexicon.ids[at]: words[:, at] for at in places if lexicon.ids[at] in wanted}


def cover_subtasks(
    ranked: Sequence[Candidate],
    wishes: Sequence[str],
    shares: Mapping[str, Floats],
    search: Callable[[str], Sequence[Candidate]],
) -> list[Candidate]:
    """Return the ranking with a good hit of each need in its head, as far as there is room.

    ``shares`` is what ``word_shares`` returns of the head. The best of all keeps its place.
    """
    found = list(ranked)
    if len(found) <= COVERED_HEAD:
        return found
    left = [
        at for at, need in enumerate(wishes) if not _served(at, need, found[:COVERED_HEAD], shares)
    ]
    for at in left[:_MOST_SEARCHES]:
        own = search(wishes[at])[:_LOOKED_AT]
        if own and _good(own[0]) and not _there(own, found[:COVERED_HEAD]):
            _place_subtask(found, own[0], wishes, shares)
    return found


def _served(at: int, need: str, head: Sequence[Candidate], shares: Mapping[str, Floats]) -> bool:
    return any(
        one.part == need or (one.api_id in shares and shares[one.api_id][at] >= _SERVES)
        for one in head
    )


def _good(hit: Candidate) -> bool:
    return hit.score >= _GOOD and (hit.dense_rank is None or hit.similarity >= _NEAR)


def _there(own: Sequence[Candidate], head: Sequence[Candidate]) -> bool:
    """Say whether the head has one of a need's good hits already."""
    here = {one.api_id for one in head}
    return any(one.api_id in here and one.score >= _AS_GOOD * own[0].score for one in own)


def _place_subtask(
    found: list[Candidate], wanted: Candidate, wishes: Sequence[str], shares: Mapping[str, Floats]
) -> None:
    """Put a hit at the end of the head for the last one whose need has another, if there is one."""
    serving = [_serving(one, wishes, shares) for one in found[:COVERED_HEAD]]
    counted = Counter(serving)
    out = next((at for at in range(COVERED_HEAD - 1, 0, -1) if counted[serving[at]] > 1), None)
    if out is None:
        return
    given = found.pop(out)
    found[:] = [one for one in found if one.api_id != wanted.api_id]
    found.insert(COVERED_HEAD - 1, wanted)
    found.insert(COVERED_HEAD, given)


def _serving(one: Candidate, wishes: Sequence[str], shares: Mapping[str, Floats]) -> str:
    """Return the need that a candidate serves; its part of the text where its words do not tell."""
    if one.part in wishes or one.api_id not in shares:
        return one.part
    best = int(shares[one.api_id].argmax())
    return wishes[best] if shares[one.api_id][best] >= _MAY_SERVE else one.part
