"""Example requests of APIs as vectors, and nearest neighbours of vectors.

Requests come from hand-written needs and errands. Vectors that a reader takes for one are no
neighbours.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from toolsrv_lab.card import library_versions
from toolsrv_lab.instructions.errands import errands, spoken, written
from toolsrv_registry.api import Api
from toolsrv_registry.documents import document_hash, document_text
from toolsrv_registry.encoder import Encoder, Progress
from toolsrv_registry.errors import DataError
from toolsrv_registry.similarity import spread_out, write_examples

Vectors = npt.NDArray[np.float32]

_NEIGHBOURS = 40
# Documents nearer than this are one API to a reader.
_SAME = 0.93
_BLOCK = 1_000


def neighbours(vectors: Vectors) -> list[list[int]]:
    """Return for each unit vector its nearest others, nearest first, without its equals.

    O(n²·d) in blocks: 16,463 documents take half a minute on two cores.
    """
    found: list[list[int]] = []
    wanted = min(_NEIGHBOURS + 20, len(vectors) - 1)
    for start in range(0, len(vectors), _BLOCK):
        scores = vectors[start : start + _BLOCK] @ vectors.T
        nearest = np.argpartition(-scores, wanted, axis=1)[:, :wanted]
        for row, some in enumerate(nearest):
            ordered = some[np.argsort(-scores[row, some], kind="stable")]
            near = [int(j) for j in ordered if j != start + row and scores[row, j] < _SAME]
            found.append(near[:_NEIGHBOURS])
    return found


EACH = 24
"""Requests kept of an API: with 12 the choice of a function was right a point less often."""


def make_examples(
    apis: Iterable[Api],
    encoder: Encoder,
    out: Path,
    *,
    each: int = EACH,
    progress: Progress | None = None,
) -> int:
    """Write the requests of ``apis`` that are known; return how many.

    Raises:
        DataError: None is known for any of them.
    """
    told = requests()
    known = {api.id: api for api in apis if told.get(api.id)}
    if not known:
        raise DataError(
            "no request is written for any of these APIs",
            hint="enable the catalog that ships: toolsrv catalog enable offline",
        )
    texts = [text for api_id in known for text in told[api_id]]
    vectors = encoder.encode(texts, progress=progress)
    kept, at = {}, 0
    for api_id, api in known.items():
        own = vectors[at : at + len(told[api_id])]
        at += len(own)
        kept[document_hash(document_text(api))] = own[spread_out(own, each)]
    count = sum(len(rows) for rows in kept.values())
    about = {
        "apis": len(kept),
        "requests": count,
        "each": each,
        "versions": library_versions("numpy"),
    }
    write_examples(out, kept, about, encoder.digest)
    return count


def requests() -> Mapping[str, Sequence[str]]:
    """Return API id -> what people said when they wanted it, each once."""
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for api_id, needs in written().items():
        found[api_id].update(dict.fromkeys(map(spoken, needs)))
    for errand in errands():
        for step in errand.steps:
            if step.api:
                found[step.api][step.words] = None
    return {api_id: tuple(texts) for api_id, texts in found.items()}
