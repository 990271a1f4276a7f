"""A fresh process that imports a large catalog, builds its index or searches it.

``python -m toolsrv_lab.bench.catalog_probe`` reads a ``Work`` from stdin and prints one JSON object
with seconds and MiB. Run by ``toolsrv bench catalog`` and ``toolsrv bench growth``.
"""

from __future__ import annotations

import time

_BEGAN = time.perf_counter()

import importlib  # noqa: E402 - the clock comes first
import json  # noqa: E402
import os  # noqa: E402
import sys  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import TYPE_CHECKING, Any, Literal  # noqa: E402

from pydantic import BaseModel, ConfigDict  # noqa: E402

if TYPE_CHECKING:  # what loads them is timed
    from toolsrv_registry.api import Catalog
    from toolsrv_registry.encoder import Encoder, Vectors

HEAVY = ("chromadb", "tokenizers", "numpy", "rapidfuzz")
NAME = "measured"
_SEARCHED = 20


class Work(BaseModel):
    """One stage on one data folder.

    ``base`` is a data folder with the index of the catalog itself: with it, vectors of copies are
    made from its vectors instead of being encoded.
    """

    model_config = ConfigDict(frozen=True)

    stage: Literal["import", "build", "search"]
    folder: Path
    catalog: Path
    copies: int = 1
    seed: int = 0
    base: Path | None = None
    queries: tuple[str, ...] = ()


def main() -> int:
    """Measure and print."""
    work = Work.model_validate_json(sys.stdin.read())
    stages = {"import": importing, "build": building, "search": searching}
    print(json.dumps(stages[work.stage](work)))
    return 0


def importing(work: Work) -> dict[str, Any]:
    """Read the catalog from its source and store it; then its copies, made apart from the clock."""
    from toolsrv_catalogs.importer import read_catalog  # noqa: PLC0415 - timed
    from toolsrv_catalogs.offline import load_offline_catalog  # noqa: PLC0415 - timed
    from toolsrv_registry.registry import Registry  # noqa: PLC0415 - timed

    imported = _since()
    reading = read_catalog(work.catalog, name=NAME)
    read = _since()
    changed = 0
    with Registry.open(work.folder, [load_offline_catalog()]) as registry:
        changed += _stored(registry.store.put_catalog(reading.catalog, hold=True))
        stored = _since()
        copying = 0.0
        for copy in _copies(reading.catalog, work):
            began = time.perf_counter()
            changed += _stored(registry.store.put_catalog(copy))
            copying += time.perf_counter() - began
        apis = registry.store.stats().apis
    return {
        "imports": imported,
        "read": read - imported,
        "store": stored - read + copying,
        "apis": apis,
        "changed": changed,
    }


def building(work: Work) -> dict[str, Any]:
    """Build the index and say how long it took; ``peak`` is the memory then."""
    from toolsrv_lab.bench.report import memory  # noqa: PLC0415 - timed
    from toolsrv_registry.registry import Registry  # noqa: PLC0415 - timed

    _load()
    encoder = None if work.base is None else _noisy(work, work.base)
    with Registry.open(work.folder, encoder=encoder) as registry:
        registry.index.encoder.digest  # noqa: B018 - read before the clock starts
        began = time.perf_counter()
        status = registry.index.build()
        seconds = time.perf_counter() - began
    return {"build": seconds, "documents": status.apis, "peak": memory(os.getpid()).peak}


def searching(work: Work) -> dict[str, Any]:
    """Open, search, and say how long each took; ``found`` counts beyond imports."""
    _load()
    from toolsrv_lab.bench.report import memory  # noqa: PLC0415 - timed
    from toolsrv_registry.registry import Registry  # noqa: PLC0415 - timed

    imported = _since()
    with Registry.open(work.folder) as registry:
        search = registry.retriever.search
        first = search("the first search loads what searching needs")
        found = _since()
        seconds: list[float] = []
        resident = None
        for number, text in enumerate(work.queries):
            began = time.perf_counter()
            search(text, 5)
            seconds.append(time.perf_counter() - began)
            if number + 1 == _SEARCHED:
                resident = memory(os.getpid()).resident
        after = memory(os.getpid()).resident
    return {
        "imports": imported,
        "found": found - imported,
        "degraded": first.degraded,
        "searches": seconds,
        "resident": after if resident is None else resident,
        "resident_after": after,
    }


def _stored(changes: Any) -> int:
    return len(changes.added) + len(changes.changed) + len(changes.removed)


def _copies(catalog: Catalog, work: Work) -> list[Catalog]:
    from toolsrv_lab.bench.copies import copy_of, pool  # noqa: PLC0415 - not timed

    words = pool(catalog) if work.copies > 1 else []
    return [copy_of(catalog, number, words, work.seed) for number in range(2, work.copies + 1)]


def _noisy(work: Work, base: Path) -> Encoder:
    """Return an encoder that makes the copies' vectors from those in the base folder's index."""
    from toolsrv_catalogs.importer import read_catalog  # noqa: PLC0415 - not timed
    from toolsrv_lab.bench.copies import NoisyEncoder, originals  # noqa: PLC0415 - not timed
    from toolsrv_registry.encoder import OnnxEncoder  # noqa: PLC0415 - not timed
    from toolsrv_registry.registry import Registry  # noqa: PLC0415 - not timed

    known: dict[str, Vectors] = {}
    with Registry.open(base) as registry:
        documents = registry.store.documents()
        vectors = registry.index.vectors([document.hash for document in documents])
        known = {document.text: vectors[document.hash] for document in documents}
    catalog = read_catalog(work.catalog, name=NAME).catalog
    texts: dict[str, str] = {}
    for copy in _copies(catalog, work):
        texts |= originals(catalog, copy)
    return NoisyEncoder(OnnxEncoder(), known, texts, work.seed)


def _load() -> None:
    from toolsrv_registry.onnx_runtime import onnxruntime  # noqa: PLC0415 - timed

    for name in HEAVY:
        importlib.import_module(name)
    onnxruntime()


def _since() -> float:
    return time.perf_counter() - _BEGAN


if __name__ == "__main__":
    sys.exit(main())
