"""``toolsrv bench engine``: how fast a model reads and writes, and how much a solve spares it.

Reading is measured on prompts that share nothing, writing on text that the grammar leaves free.
A recorded tree is written by this engine and by other ways to run the same model (``replay``).
What a solve spares comes from real solves: prompts that begin like an earlier one are not
evaluated again, and tokens that the grammar forces are not sampled.
"""

from __future__ import annotations

import asyncio
import collections
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from toolsrv_lab.bench.report import (
    Figure,
    Report,
    emit,
    emit_machine,
    example,
    figure,
    json_option,
    machine,
    model_option,
    report_progress,
    share,
    threads_option,
)
from toolsrv_registry.host_resources import usable_cores

if TYPE_CHECKING:  # the runtime is loaded by the command
    from toolsrv_lab.bench.parts import Parts
    from toolsrv_runtime.contract.models import Engine
    from toolsrv_runtime.outcome import Outcome, Usage

# No token of such a text is forced, and none may end it early.
_FREE = "start: /[a-z ]{2000}/"
_WRITTEN = 128
_READ_SHARE = 0.6


@click.command(epilog=example("toolsrv bench engine --runs 10"))
@model_option
@threads_option
@click.option(
    "--runs", type=click.IntRange(1, 1000), default=5, show_default=True, help="Repetitions."
)
@click.option(
    "--replay/--no-replay",
    default=True,
    show_default=True,
    help="Write a recorded tree in four ways: from scratch, by llama-cpp-python, its server, ours.",
)
@click.option(
    "--native/--no-native",
    default=None,
    help="Write a tree of calls in the model's own syntax, and read and write beside "
    "llama-cpp-python. [default: for chat models]",
)
@click.option(
    "--tasks",
    type=click.IntRange(0, 5),
    default=5,
    show_default=True,
    help="Tasks that are solved.",
)
@click.option(
    "--steps", type=click.IntRange(2, 21), help="Cut the recorded tree short. [default: 21]"
)
@click.option(
    "--solves",
    type=click.IntRange(2, 10_000),
    default=100,
    show_default=True,
    help="Small solves after which memory is looked at.",
)
@click.option("--random", is_flag=True, help="Replay also with 150 million random weights.")
@click.option(
    "--vocabulary",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="GGUF file whose vocabulary the random model gets. [default: the model's]",
)
@click.option(
    "--plot", type=click.Path(path_type=Path), metavar="PATH", help="Draw an SVG or PNG file."
)
@json_option
def engine(
    model: Path | None,
    threads: int | None,
    runs: int,
    replay: bool,
    native: bool | None,
    tasks: int,
    steps: int | None,
    solves: int,
    random: bool,
    vocabulary: Path | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Load the model, read and write with it, solve a handful of tasks, replay a tree."""
    from toolsrv_lab.bench.replay import comparison, random_model  # noqa: PLC0415 - heavy
    from toolsrv_lab.bench.replay.comparison import way_figures  # noqa: PLC0415 - heavy

    if plot is not None:
        comparison.check(plot)
    if vocabulary is not None:
        random_model.vocabulary(vocabulary)
    report = asyncio.run(measure(model, runs=runs, threads=threads, tasks=tasks))
    if native is None:
        native = report.options["profile"] == "chat"
    if native:
        from toolsrv_lab.bench.native import native_figures  # noqa: PLC0415 - heavy

        report.figures.update(native_figures(model, threads=threads, runs=runs))
    found = []
    if replay:
        found = comparison.compare(
            model,
            threads=threads,
            solves=solves,
            steps=steps,
            random_weights=random,
            vocabulary=vocabulary,
        )
        report.details["replay"] = [
            one.model_dump() | {"ratios": way_figures(one)} for one in found
        ]
    emit(report, as_json=as_json)
    if not as_json:
        comparison.show(found)
        emit_machine(report)
    if plot is not None and found:
        comparison.draw(found, plot)


async def measure(
    model: Path | None, *, runs: int, threads: int | None = None, tasks: int = 5
) -> Report:
    """Return what loading, reading, writing and solving took.

    Raises:
        ModelError: The file is missing, or not a model that can be run.
    """
    from toolsrv_lab.bench.parts import open_parts  # noqa: PLC0415 - heavy
    from toolsrv_lab.bench.texts import TASKS  # noqa: PLC0415 - light, but for this command only
    from toolsrv_runtime.solve import SolveOptions  # noqa: PLC0415 - heavy

    before = machine()
    report_progress(f"engine: loading the model, {runs} times")
    loads = [_load(model, threads) for _ in range(runs)]
    async with open_parts(model, threads=threads) as parts:
        report_progress("engine: reading and writing")
        texts = _texts(parts, runs)
        reads = [_read(parts.engine, text) for text in texts]
        writes = [_write(parts.engine, number) for number in range(runs)]
        outcomes = []
        for number, task in enumerate(TASKS[:tasks]):
            report_progress(f"engine: solving task {number + 1} of {tasks}")
            outcomes.append(await parts.solver.solve(task, SolveOptions()))
        name, context = parts.engine.name, parts.engine.context
        profile = parts.profile.format
    return Report(
        bench="engine",
        options={
            "model": name,
            "context": context,
            "threads": threads or usable_cores(),
            "runs": runs,
            "tasks": tasks,
            "profile": profile,
        },
        figures={
            "load": figure("load the model", "s", loads),
            "read": figure("prompt tokens read", "1/s", reads),
            "write": figure("tokens written in a grammar", "1/s", writes),
        }
        | (spared([outcome.usage for outcome in outcomes]) if outcomes else {}),
        details=_details(outcomes),
        machine=before,
    )


def spared(usages: Sequence[Usage]) -> dict[str, Figure]:
    """Return per solve: seconds, tokens, and the shares that were neither evaluated nor sampled."""
    return {
        "seconds": figure("solve", "s", [one.seconds for one in usages]),
        "prompt_tokens": figure(
            "tokens in all prompts of a solve", "", [one.prompt_tokens for one in usages]
        ),
        "evaluated_tokens": figure(
            "tokens evaluated in a solve", "", [one.evaluated_tokens for one in usages]
        ),
        "generated_tokens": figure(
            "tokens of all replies of a solve", "", [one.generated_tokens for one in usages]
        ),
        "prefix_reuse": figure(
            "prompt tokens that were shared prefix", "%", [reuse(one) for one in usages]
        ),
        "forced": figure(
            "reply tokens forced by the grammar",
            "%",
            [share(one.forced_tokens, one.generated_tokens) for one in usages],
        ),
    }


def reuse(usage: Usage) -> float | None:
    """Return how much of the prompts (%) was shared prefix, None when there were no prompts.

    ``evaluated_tokens`` counts those of the replies too, which no prompt has; the last one of a
    reply may not be among them, so the share is exact to a token or so a reply. Options that were
    scored count against it.
    """
    evaluated = max(0, usage.evaluated_tokens - usage.generated_tokens)
    return share(max(0, usage.prompt_tokens - evaluated), usage.prompt_tokens)


def _load(model: Path | None, threads: int | None) -> float:
    """Load the model and free it; return the seconds until it was usable."""
    from toolsrv_runtime.gguf_models import load_engine  # noqa: PLC0415 - heavy

    began = time.perf_counter()
    one, _ = load_engine(model, threads=threads)
    seconds = time.perf_counter() - began
    one.close()
    return seconds


def _texts(parts: Parts, count: int) -> list[str]:
    """Return texts of about the same many tokens that share no beginning."""
    from toolsrv_runtime.contract.models import Piece  # noqa: PLC0415 - as the engine

    words = " ".join(api.description for api in parts.apis.values())
    tokens = parts.engine.count((Piece(words[:4000]),))
    length = int(4000 * _READ_SHARE * min(parts.engine.context, 4096) / tokens)
    step = max(1, (len(words) - length) // count)
    return [f"{number} {words[number * step :][:length]}" for number in range(count)]


def _read(engine: Engine, text: str) -> float:
    """Return the prompt tokens read per second."""
    from toolsrv_runtime.contract.models import Piece  # noqa: PLC0415 - as the engine

    began = time.perf_counter()
    reply = engine.generate((Piece(text),), grammar=_FREE, max_tokens=1)
    return reply.evaluated / (time.perf_counter() - began)


def _write(engine: Engine, number: int) -> float:
    """Return the tokens written per second after a short prompt."""
    from toolsrv_runtime.contract.models import Piece  # noqa: PLC0415 - as the engine

    began = time.perf_counter()
    reply = engine.generate((Piece(f"{number} is"),), grammar=_FREE, max_tokens=_WRITTEN)
    return len(reply.tokens) / (time.perf_counter() - began)


def _details(outcomes: Sequence[Outcome]) -> dict[str, object]:
    usages = [outcome.usage for outcome in outcomes]
    return {
        "statuses": dict(collections.Counter(outcome.status for outcome in outcomes)),
        "prompt_tokens": sum(one.prompt_tokens for one in usages),
        "evaluated_tokens": sum(one.evaluated_tokens for one in usages),
        "generated_tokens": sum(one.generated_tokens for one in usages),
        "forced_tokens": sum(one.forced_tokens for one in usages),
    }
