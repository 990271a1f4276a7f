"""One way to write the recorded tree, in a process of its own; prints one JSON object.

``python -m toolsrv_lab.bench.replay.process WAY MODEL RECORDING THREADS [NUMBER]``, where
RECORDING is a file, or a comma-separated list of them. Run by ``toolsrv bench engine``.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from toolsrv_lab.bench.replay import llama_cpp_python, ours
from toolsrv_lab.bench.replay.tree import Recording
from toolsrv_lab.bench.report import memory


def main(arguments: Sequence[str]) -> int:
    """Measure and print."""
    way, model, paths, threads = arguments[0], Path(arguments[1]), arguments[2], int(arguments[3])
    number = int(arguments[4]) if len(arguments) > 4 else 0
    if way == "serve":
        llama_cpp_python.serve(model, Path(paths), threads=threads, port=number)
        return 0
    found = measure(way, model, [Path(one) for one in paths.split(",")], threads, number)
    found.setdefault("peak", memory(os.getpid()).peak)
    print(json.dumps(found))
    return 0


def measure(way: str, model: Path, paths: Sequence[Path], threads: int, number: int) -> Any:
    """Return the figures of one way."""
    if way == "server":
        return llama_cpp_python.replay_served(model, paths[0], threads=threads)
    recordings = [Recording.read(path) for path in paths]
    if way in ("scratch", "prefix"):
        return llama_cpp_python.replay(
            model, recordings[0], threads=threads, fresh=way == "scratch"
        )
    if way == "ours":
        return ours.replay(model, recordings, threads=threads)
    if way == "together":
        return ours.together(model, recordings, threads=threads)
    return ours.again(model, recordings, threads=threads, solves=number)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
