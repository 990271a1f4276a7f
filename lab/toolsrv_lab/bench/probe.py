"""A fresh process that opens a registry, searches, and says what each part took.

``python -m toolsrv_lab.bench.probe FOLDER QUERIES SEED`` prints one JSON object: seconds since
this module began for each stage, and the memory then. Run by ``toolsrv bench search``.
"""

from __future__ import annotations

import time

_BEGAN = time.perf_counter()

import importlib  # noqa: E402 - the clock comes first
import json  # noqa: E402
import os  # noqa: E402
import sys  # noqa: E402
from collections.abc import Sequence  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

HEAVY = ("chromadb", "tokenizers", "numpy")


def main(arguments: Sequence[str]) -> int:
    """Measure and print."""
    folder, count, seed = Path(arguments[0]), int(arguments[1]), int(arguments[2])
    print(json.dumps(probe(folder, count, seed)))
    return 0


def probe(folder: Path, count: int, seed: int) -> dict[str, Any]:
    """Return the seconds of each stage and of each search, and the memory in MiB.

    ``imported``, ``opened``, ``indexed`` and ``found`` count from the beginning of this process's
    own code; ``found_at`` is the system's monotonic clock at the same moment as ``found``;
    ``documents`` is how many texts the index holds.
    """
    from toolsrv_registry.onnx_runtime import onnxruntime  # noqa: PLC0415 - timed

    for name in HEAVY:
        importlib.import_module(name)
    onnxruntime()
    from toolsrv_catalogs.offline import load_offline_catalog  # noqa: PLC0415 - timed
    from toolsrv_lab.bench.report import memory  # noqa: PLC0415 - timed
    from toolsrv_lab.bench.texts import queries  # noqa: PLC0415 - timed
    from toolsrv_registry.registry import Registry  # noqa: PLC0415 - timed

    imported = _since()
    catalog = load_offline_catalog()
    with Registry.open(folder, [catalog]) as registry:
        opened = _since()
        before = memory(os.getpid())
        status = registry.ensure_index()
        indexed = _since()
        search = registry.retriever.search
        first = search("the first search loads what searching needs")
        found, found_at = _since(), time.monotonic()
        seconds = []
        for text in queries(catalog.apis, count, seed):
            began = time.perf_counter()
            search(text, 5)
            seconds.append(time.perf_counter() - began)
        after = memory(os.getpid())
    return {
        "imported": imported,
        "opened": opened,
        "indexed": indexed,
        "found": found,
        "found_at": found_at,
        "documents": status.apis,
        "degraded": first.degraded,
        "searches": seconds,
        "resident_before": before.resident,
        "resident": after.resident,
        "peak": after.peak,
    }


def _since() -> float:
    return time.perf_counter() - _BEGAN


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
