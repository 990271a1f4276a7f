"""Fuse word and vector rankings of several parts of a text into one. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

# Reciprocal rank 1 / (K + rank). A small K lets the first few of each part count most, which is
# what brings every need of a task to the front. The cosine itself counts as well: it tells a
# clause that says something from one that finds its "best" API by chance. Weights and K were
# chosen on ToolBench's 617 development queries and the offline catalog's 24 development tasks.
_K = 3
_WORDS, _VECTORS, _COSINE = 0.35, 0.24, 0.41


@dataclass(frozen=True, slots=True)
class Candidate:
    """An API with its place in the rankings of the part that it fits best."""

    api_id: str
    score: float
    lexical_rank: int | None
    dense_rank: int | None
    similarity: float
    part: str


def fuse(
    parts: Sequence[str],
    lexical: Sequence[Sequence[str]],
    dense: Sequence[Sequence[tuple[str, float]]],
) -> list[Candidate]:
    """Return all ranked APIs, best first; equal scores keep the order of their ids.

    ``lexical`` and ``dense`` hold one ranking per part (``dense`` none at all when there is no
    vector index). A score in [0, 1] is the weighted sum of both reciprocal ranks within a part and
    the cosine with it; an API keeps its best part.
    """
    best: dict[str, Candidate] = {}
    for at, part in enumerate(parts):
        word_ranks = {api_id: rank for rank, api_id in enumerate(lexical[at], start=1)}
        near = dense[at] if dense else []
        vector_ranks = {api_id: rank for rank, (api_id, _) in enumerate(near, start=1)}
        cosines = dict(near)
        for api_id in word_ranks.keys() | vector_ranks.keys():
            words, vectors = word_ranks.get(api_id), vector_ranks.get(api_id)
            cosine = cosines.get(api_id, 0.0)
            score = _WORDS * _reciprocal(words) + _VECTORS * _reciprocal(vectors)
            score += _COSINE * min(max(cosine, 0.0), 1.0)
            if api_id not in best or score > best[api_id].score:
                best[api_id] = Candidate(api_id, score, words, vectors, cosine, part)
    return sorted(best.values(), key=lambda candidate: (-candidate.score, candidate.api_id))


def _reciprocal(rank: int | None) -> float:
    return 0.0 if rank is None else (_K + 1) / (_K + rank)
