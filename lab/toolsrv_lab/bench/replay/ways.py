"""Every way to write the recorded tree, measured one after the other, and what the figures say.

Processor seconds stand beside wall seconds: on a machine that does other things too only they
can be compared.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict

from toolsrv_lab.bench.replay.tree import Recording, record
from toolsrv_lab.bench.report import tell
from toolsrv_registry.errors import DataError

WAYS = {
    "scratch": "(a) every step from scratch",
    "prefix": "(b) create_completion",
    "server": "(c) llama-cpp-python's server",
    "ours": "(d) toolsrv",
}
_PARALLEL = 4
_SMALL_STEPS = 2
_TIMEOUT_S = 3600.0
_STREAM_BYTES = 256 << 20


class Measured(BaseModel):
    """One model's figures: ``ways`` by name (``skipped`` says why one is missing), and the rest.

    ``total`` counts the tokens of all prompts and replies, ``distinct`` those of the tree,
    ``written`` those of the replies; ``bytes`` is the file's size, ``bandwidth`` bytes/s.
    """

    model_config = ConfigDict(frozen=True)

    model: str
    bytes: int
    steps: int
    distinct: int
    total: int
    written: int
    threads: int
    ways: dict[str, dict[str, float]]
    skipped: dict[str, str]
    together: dict[str, float]
    memory: dict[str, float]
    bandwidth: float


def measure(
    model: Path, folder: Path, *, threads: int, solves: int, steps: int | None = None
) -> Measured:
    """Write the tree in every way; ``folder`` is for files between the processes.

    ``solves`` small trees are solved for the memory; ``steps`` cuts the tree short.

    Raises:
        ModelError: the model cannot be loaded.
        DataError: a way failed.
    """
    trees = _record(model, folder, steps=steps)
    smalls = _record(model, folder, steps=_SMALL_STEPS, prefix="small")
    recording = Recording.read(trees[0])
    ways: dict[str, dict[str, float]] = {}
    skipped: dict[str, str] = {}
    for way, label in WAYS.items():
        if way == "server" and (missing := _missing()):
            skipped[way] = f"{missing} is missing: pip install 'llama-cpp-python[server]'"
            continue
        tell(f"engine: {model.stem}: {label}")
        ways[way] = _run(way, model, trees[:1], threads)
    tell(f"engine: {model.stem}: {_PARALLEL} solves in a row and at once")
    together = _run("together", model, trees, threads)
    tell(f"engine: {model.stem}: {solves} solves, for the memory")
    again = _run("again", model, smalls, threads, solves)
    return Measured(
        model=model.stem,
        bytes=model.stat().st_size,
        steps=len(recording.steps),
        distinct=recording.distinct,
        total=sum(len(step.prompt) + len(step.reply) for step in recording.steps),
        written=sum(len(step.reply) for step in recording.steps),
        threads=threads,
        ways=ways,
        skipped=skipped,
        together=together,
        memory=again,
        bandwidth=bandwidth(threads),
    )


def figures(found: Measured) -> dict[str, float]:
    """Return what is aimed at, as ratios: see the keys.

    The floor of a decode is the time to read the weights once at the bandwidth measured here.
    """
    ours = found.ways["ours"]
    ratios = {
        "evaluated / distinct tokens": ours["tokens"] / found.distinct,
        "at once / in a row (wall)": found.together["at_once"] / found.together["row"],
        "at once / in a row (processor)": found.together["at_once_cpu"] / found.together["row_cpu"],
        "Python per written token, ms": ours["python_ms"],
        "memory after the solves - after 10, MiB": found.memory["end"] - found.memory["early"],
        "decode / floor": ours["decode_ms"] / (1000 * found.bytes / found.bandwidth),
    }
    for way in ("scratch", "prefix", "server"):
        if way in found.ways:
            other = found.ways[way]
            ratios[f"{WAYS[way]} / ours (wall)"] = other["seconds"] / ours["seconds"]
            ratios[f"{WAYS[way]} / ours (processor)"] = other["cpu"] / ours["cpu"]
    return ratios


def bandwidth(threads: int) -> float:
    """Return the bytes per second that ``threads`` threads read from memory, the best of three."""
    parts = np.array_split(np.ones(_STREAM_BYTES // 8), threads)
    best = 0.0
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(3):
            began = time.perf_counter()
            list(pool.map(np.add.reduce, parts))
            best = max(best, _STREAM_BYTES / (time.perf_counter() - began))
    return best


def _record(model: Path, folder: Path, *, steps: int | None, prefix: str = "tree") -> list[Path]:
    import llama_cpp  # noqa: PLC0415 - heavy

    from toolsrv_runtime.engine.context import open_model  # noqa: PLC0415 - heavy
    from toolsrv_runtime.engine.vocabulary import Vocabulary  # noqa: PLC0415 - heavy

    handle = open_model(model)
    try:
        vocabulary, paths = Vocabulary(handle), []
        for task in range(_PARALLEL):
            path = folder / f"{prefix}-{model.stem}-{task}.json"
            record(vocabulary, task=task, steps=steps).write(path)
            paths.append(path)
        return paths
    finally:
        llama_cpp.llama_model_free(handle)


def _missing() -> str:
    """Return the first module that the server needs and that is not installed, or ""."""
    needed = ("fastapi", "uvicorn", "sse_starlette", "starlette_context", "pydantic_settings")
    return next((name for name in needed if importlib.util.find_spec(name) is None), "")


def _run(
    way: str, model: Path, paths: Sequence[Path], threads: int, number: int = 0
) -> dict[str, float]:
    names = ",".join(map(str, paths))
    command = [sys.executable, "-m", "toolsrv_lab.bench.replay.process", way, str(model), names]
    done = subprocess.run(  # noqa: S603 - this interpreter, our arguments
        [*command, str(threads), str(number)],
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=_TIMEOUT_S,
        check=False,
    )
    if done.returncode != 0:
        said = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise DataError(
            f"{WAYS.get(way, way)} failed on {model.name!r}: {said[-1]}",
            hint="run it with another --model, or fewer --threads",
        )
    found: dict[str, Any] = json.loads(done.stdout)
    return {key: float(value) for key, value in found.items()}
