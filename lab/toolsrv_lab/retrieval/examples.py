"""Example requests of APIs as vectors, from needs and errands that were written for them.

What ``toolsrv_registry.examples`` reads. Of the requests of one API those that lie far apart are
kept; the same texts and encoder give the same file.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from toolsrv_lab.instructions.errands import errands
from toolsrv_lab.instructions.written import spoken, written
from toolsrv_lab.versions import versions
from toolsrv_registry.api import Api
from toolsrv_registry.documents import document_hash, document_text
from toolsrv_registry.encoder import Encoder, Progress
from toolsrv_registry.errors import DataError
from toolsrv_registry.examples import spread, write_examples

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
        kept[document_hash(document_text(api))] = own[spread(own, each)]
    count = sum(len(rows) for rows in kept.values())
    about = {"apis": len(kept), "requests": count, "each": each, "versions": versions("numpy")}
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
