"""Comparison of the ways to write one recorded tree: measured, shown as tables and as bars.

Each way runs in a process of its own.
"""

from __future__ import annotations

import importlib.util
import io
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

from toolsrv_lab.bench.growth import write_picture
from toolsrv_lab.bench.replay import random_model
from toolsrv_lab.bench.replay.tree import Recording, record
from toolsrv_lab.bench.report import number, report_progress, significant, table
from toolsrv_lab.bench.scratch import scratch_folder
from toolsrv_lab.extras import load
from toolsrv_registry.errors import DataError, UsageError
from toolsrv_registry.host_resources import usable_cores
from toolsrv_runtime.gguf_models import SHIPPED_MODEL

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


class Measurement(BaseModel):
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


def measure_ways(
    model: Path, folder: Path, *, threads: int, solves: int, steps: int | None = None
) -> Measurement:
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
        report_progress(f"engine: {model.stem}: {label}")
        ways[way] = _run(way, model, trees[:1], threads)
    report_progress(f"engine: {model.stem}: {_PARALLEL} solves in a row and at once")
    together = _run("together", model, trees, threads)
    report_progress(f"engine: {model.stem}: {solves} solves, for the memory")
    again = _run("again", model, smalls, threads, solves)
    return Measurement(
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


def way_figures(found: Measurement) -> dict[str, float]:
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


def check(path: Path) -> None:
    """Raise UsageError when ``draw`` could not write ``path``; nothing was measured yet."""
    load("matplotlib")
    if path.suffix not in (".svg", ".png"):
        raise UsageError(
            f"{str(path)!r} is not the name of a picture", hint="end it in .svg or .png"
        )
    if not path.absolute().parent.is_dir():
        raise UsageError(
            f"there is no folder {str(path.absolute().parent)!r}", hint="make it first"
        )


def draw(found: Sequence[Measurement], path: Path) -> None:
    """Draw a row of two panels for each model."""
    matplotlib, module = load("matplotlib"), load("matplotlib.figure")
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "toolsrv"}):
        picture = module.Figure(figsize=(10, 2.6 * len(found)), layout="constrained")
        panels = picture.subplots(len(found), 2, squeeze=False)
        for row, one in zip(panels, found, strict=True):
            names = [WAYS[way] for way in one.ways]
            for axes, key, label in zip(
                row, ("cpu", "tokens"), ("processor seconds", "tokens evaluated"), strict=True
            ):
                bars = axes.barh(names, [way[key] for way in one.ways.values()], color="#1f6fb2")
                axes.bar_label(bars, fmt="{:,.4g}", padding=3)
                axes.set_title(f"{one.model}: {label}", fontsize=9)
                axes.invert_yaxis()
                axes.margins(x=0.2)
        buffer = io.BytesIO()
        picture.savefig(buffer, format=path.suffix[1:], metadata=_metadata(path))
    write_picture(path, buffer.getvalue())


def _metadata(path: Path) -> dict[str, None] | None:
    return {"Date": None} if path.suffix == ".svg" else None


def compare(
    model: Path | None,
    *,
    threads: int | None,
    solves: int,
    steps: int | None,
    random_weights: bool,
    vocabulary: Path | None,
) -> list[Measurement]:
    """Replay the tree on a model (default: the one that ships), and on random weights if asked.

    Raises:
        ModelError: a model cannot be loaded.
        DataError: a way to run it failed, or ``vocabulary`` is no GGUF file.
    """
    model = model or SHIPPED_MODEL
    used = threads or usable_cores()
    with scratch_folder() as folder:
        models = [model]
        if random_weights:
            path = folder / "random-150m.q8_0.gguf"
            report_progress("engine: building a model of random weights")
            random_model.build(path, vocabulary_of=vocabulary or model)
            models.append(path)
        return [
            measure_ways(one, folder, threads=used, solves=solves, steps=steps) for one in models
        ]


def show(found: list[Measurement]) -> None:
    """Print for each model what every way cost, and the ratios that are aimed at."""
    for one in found:
        print_ways(one)
        ratios = [(name, number(significant(value))) for name, value in way_figures(one).items()]
        table((f"{one.model}: {one.distinct:,} distinct tokens", "value#"), ratios)


def print_ways(one: Measurement) -> None:
    """Print a line for each way to write the tree."""
    rows: list[tuple[object, ...]] = []
    for way, label in WAYS.items():
        if way in one.skipped:
            rows.append((label, one.skipped[way], "", "", "", "", ""))
            continue
        cost = one.ways[way]
        rows.append(
            (
                label,
                number(significant(cost["seconds"])),
                number(significant(cost["cpu"])),
                f"{cost['tokens']:,.0f}",
                f"{reused(one, way):,.0f}",
                f"{cost['steps']:,.0f}",
                f"{cost['peak']:,.0f}",
            )
        )
    title = f"{one.model}, {one.steps} steps, {one.threads} threads"
    table(
        (title, "seconds#", "processor s#", "evaluated#", "reused#", "decodes#", "peak MiB#"), rows
    )


def reused(one: Measurement, way: str) -> float:
    """Return the tokens of all prompts and replies that a way did not evaluate."""
    return one.total - one.ways[way]["tokens"]
