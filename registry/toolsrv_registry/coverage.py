"""A place among the first five for each thing that a text lists, if an API does it.

A ranking serves a text as a whole: three APIs of its easiest need come before the only one of
another. Here each listed need (``needs``) that no API of the first five serves is searched for
itself, and the best hit, if it is a good one, takes the place of the last of those that serve a
need which has another. What is searched, and how, is told from outside.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from toolsrv_registry.fusion import Candidate
from toolsrv_registry.lexicon import Lexicon
from toolsrv_registry.needs import needs

Floats = npt.NDArray[np.float32]

HEAD = 5
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


def listed_needs(parts: Sequence[str]) -> list[str]:
    """Return the needs to look after one by one; none where there is one, or the text is long.

    ``parts`` are the whole text and then its clauses, if there are several.
    """
    if len(parts[0].split(maxsplit=_MOST_WORDS)) > _MOST_WORDS:
        return []
    found = needs(parts[1:] or parts)
    return found if len(found) > 1 else []


def shares(
    lexicon: Lexicon, places: Sequence[int], head: Sequence[Candidate], wishes: Sequence[str]
) -> dict[str, Floats]:
    """Return for each API of the head its words for each need, as shares of the best API's.

    ``places`` are those of all candidates in the lexicon.
    """
    wanted = {candidate.api_id for candidate in head}
    words = lexicon.fit(wishes).words
    words = words / np.maximum(words.max(axis=1, keepdims=True), 1e-6)
    return {lexicon.ids[at]: words[:, at] for at in places if lexicon.ids[at] in wanted}


def covered(
    ranked: Sequence[Candidate],
    wishes: Sequence[str],
    shares: Mapping[str, Floats],
    search: Callable[[str], Sequence[Candidate]],
) -> list[Candidate]:
    """Return the ranking with a good hit of each need in its head, as far as there is room.

    ``shares`` is what ``shares`` returns of the head. The best of all keeps its place.
    """
    found = list(ranked)
    if len(found) <= HEAD:
        return found
    left = [at for at, need in enumerate(wishes) if not _served(at, need, found[:HEAD], shares)]
    for at in left[:_MOST_SEARCHES]:
        own = search(wishes[at])[:_LOOKED_AT]
        if own and _good(own[0]) and not _there(own, found[:HEAD]):
            _place(found, own[0], wishes, shares)
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


def _place(
    found: list[Candidate], wanted: Candidate, wishes: Sequence[str], shares: Mapping[str, Floats]
) -> None:
    """Put a hit at the end of the head for the last one whose need has another, if there is one."""
    serving = [_serving(one, wishes, shares) for one in found[:HEAD]]
    counted = Counter(serving)
    out = next((at for at in range(HEAD - 1, 0, -1) if counted[serving[at]] > 1), None)
    if out is None:
        return
    given = found.pop(out)
    found[:] = [one for one in found if one.api_id != wanted.api_id]
    found.insert(HEAD - 1, wanted)
    found.insert(HEAD, given)


def _serving(one: Candidate, wishes: Sequence[str], shares: Mapping[str, Floats]) -> str:
    """Return the need that a candidate serves; its part of the text where its words do not tell."""
    if one.part in wishes or one.api_id not in shares:
        return one.part
    best = int(shares[one.api_id].argmax())
    return wishes[best] if shares[one.api_id][best] >= _MAY_SERVE else one.part
