"""The replay's part of ``toolsrv bench engine``: which models, and the tables."""

from __future__ import annotations

from pathlib import Path

from toolsrv_lab.bench.figures import significant
from toolsrv_lab.bench.replay import random_model
from toolsrv_lab.bench.replay.ways import WAYS, Measured, figures, measure
from toolsrv_lab.bench.report import number, table, tell
from toolsrv_lab.bench.scratch import scratch_folder
from toolsrv_registry.process import usable_cores
from toolsrv_runtime.gguf_models import SHIPPED_MODEL


def compare(
    model: Path | None,
    *,
    threads: int | None,
    solves: int,
    steps: int | None,
    random_weights: bool,
    vocabulary: Path | None,
) -> list[Measured]:
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
            tell("engine: building a model of random weights")
            random_model.build(path, vocabulary_of=vocabulary or model)
            models.append(path)
        return [measure(one, folder, threads=used, solves=solves, steps=steps) for one in models]


def show(found: list[Measured]) -> None:
    """Print for each model what every way cost, and the ratios that are aimed at."""
    for one in found:
        print_ways(one)
        ratios = [(name, number(significant(value))) for name, value in figures(one).items()]
        table((f"{one.model}: {one.distinct:,} distinct tokens", "value#"), ratios)


def print_ways(one: Measured) -> None:
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


def reused(one: Measured, way: str) -> float:
    """Return the tokens of all prompts and replies that a way did not evaluate."""
    return one.total - one.ways[way]["tokens"]
