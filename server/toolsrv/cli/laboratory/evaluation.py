"""Shared parts of ``toolsrv lab eval``: models by name, progress, files of a run, tables."""

from __future__ import annotations

import contextlib
import hashlib
import json
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

import click

from toolsrv.cli.options import adapter_option, faithful_options, profile_option, threads_option
from toolsrv.cli.output import Bar, console, note, table
from toolsrv_registry.errors import UsageError

if TYPE_CHECKING:
    from toolsrv.settings import Settings
    from toolsrv.workbench import Workbench
    from toolsrv_lab.evaluation.cells import Cell
    from toolsrv_lab.evaluation.statistics import Difference, Mean, PlottedRate, Share
    from toolsrv_lab.evaluation.strategies import Compared, SolvedFigures, Summary
    from toolsrv_lab.evaluation.toolbench_queries import QueryFigures
    from toolsrv_lab.retrieval.queries import Query
    from toolsrv_lab.solving import FaultyCaller
    from toolsrv_registry.api import Api
    from toolsrv_registry.registry import Registry
    from toolsrv_runtime.contract.models import ChatModel
    from toolsrv_runtime.outcome import Outcome
    from toolsrv_runtime.solve import Solver
    from toolsrv_runtime.stop import Stop
    from toolsrv_runtime.toolbench.answer_files import Answer

F = TypeVar("F", bound=Callable[..., Any])

BENCH_OPTIONS = ("seed", "threads", "profile", "adapter", "faithful", "faithful_in")
"""What ``solving_options`` adds; ``bench_options`` adds all but the last two."""


def bench_options(command: F) -> F:
    """Add the options that say how a model is run."""
    seed = click.option("--seed", type=int, help="Seed of the sampling, and of a draw.")
    for option in (adapter_option, profile_option, threads_option, seed):
        command = option(command)
    return command


def solving_options(command: F) -> F:
    """Add the options that say how a model is run in solves."""
    return bench_options(faithful_options(command))


LOG, REPORT, PLOT = "results.jsonl", "report.json", "solved.svg"
"""Files of an ``--out`` folder."""


def listed(values: Sequence[str]) -> list[str]:
    """Return the distinct names of an option given several times or with commas.

    Raises:
        UsageError: the option was given and names nothing.
    """
    names = (name.strip() for value in values for name in value.split(","))
    found = list(dict.fromkeys(name for name in names if name))
    if values and not found:
        raise UsageError(
            f"{values[0]!r} names nothing", hint="give a name, or several with commas between"
        )
    return found


def file_hash(path: Path) -> str:
    """Return a file's SHA-256. Raises UsageError where it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UsageError(
            f"cannot read {path}: {error.strerror or error}", hint="check the path"
        ) from error


def identity(settings: Settings) -> tuple[str, str]:
    """Return a model's name for people, and what tells it from others: a file's hash, an address."""
    from toolsrv.model_list import SHIPPED
    from toolsrv_runtime.gguf_models import SHIPPED_MODEL

    model = settings.model
    if isinstance(model, str):
        return model, model
    return SHIPPED if model is None else model.stem, file_hash(model or SHIPPED_MODEL)


def chat_model_of(bench: Workbench, *, free: bool = False) -> ChatModel:
    """Return the bench's model as a chat model, ``free`` of a grammar or held by it.

    Raises:
        UsageError: the model's format knows no conversations.
    """
    from toolsrv_runtime.contract.models import ChatModel

    model, profile = bench.model()
    if isinstance(model, ChatModel):
        return model
    from toolsrv_lab.evaluation.cells import chat_model

    return chat_model(model, profile, free=free)


def solver_on(bench: Workbench, caller: FaultyCaller, registry: Registry | None = None) -> Solver:
    """Return a solver on the bench's model that calls with ``caller``, as evaluations do.

    ``registry``, with its index, stands in for the bench's.
    """
    from toolsrv.calls.callable_apis import CallableRetriever
    from toolsrv_runtime.solve import Solver

    engine, profile = bench.model()
    return Solver(
        retriever=CallableRetriever(registry or bench.searchable()),
        engine=engine,
        profile=profile,
        caller=caller,
        prompts=bench.prompts() if profile.format == "toolllama" else None,
        fidelity=bench.fidelity(),
    )


def answer_of_solve(bench: Workbench, apis: Mapping[str, Api], outcome: Outcome) -> Answer:
    """Return the answer file of a solve on the bench's model, of ``apis`` by id."""
    from toolsrv_registry.functions import FunctionList
    from toolsrv_runtime.toolbench.answer_writer import answer_of

    literal = outcome.format.startswith("toolllama")  # as that model saw them
    offered = FunctionList([apis[one] for one in outcome.candidates], literal=literal)
    prompts = bench.prompts()
    return answer_of(
        outcome,
        offered.to_json(finish=prompts.finish),
        tools=offered.tool_list_block(),
        words=prompts.words,
        faithful=bench.is_faithful,
    )


def usable_queries(
    queries: Sequence[Query], apis: Mapping[str, Api]
) -> tuple[list[Query], dict[str, int]]:
    """Return the queries whose needed APIs the catalogs have, and why others are left out.

    Raises:
        UsageError: none is left.
    """
    from toolsrv_lab.evaluation import toolbench_queries

    found, left_out = toolbench_queries.usable_queries(queries, apis)
    for reason, count in left_out.items():
        note(f"note: {count} of {len(queries)} queries {reason}: left out")
    if not found:
        raise UsageError(
            "there is no query that needs APIs of the enabled catalogs",
            hint="import the catalog that they were written for: toolsrv catalog import PATH",
        )
    return found, left_out


def write_answer_file(place: Path, query_id: str, method: str, answer: Answer) -> None:
    """Write ``ID_METHOD.json`` into a folder, which pass-rate and win-rate read."""
    from toolsrv_registry.file_names import portable_name
    from toolsrv_runtime.toolbench.answer_writer import write_answer

    out_folder(place)
    number = portable_name(query_id.replace("/", "-").replace("_", "-"))
    write_answer(place / f"{number}_{method}.json", answer)


@overload
def out_folder(out: Path, option: str = "--out") -> Path: ...


@overload
def out_folder(out: Path | None, option: str = "--out") -> Path | None: ...


def out_folder(out: Path | None, option: str = "--out") -> Path | None:
    """Return the folder of an option, made where it is not there. Raises UsageError."""
    if out is None:
        return None
    folder = out.expanduser()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"cannot use the folder {folder}: {error.strerror or error}",
            hint=f"name another {option}",
        ) from error
    return folder


def write_report(folder: Path | None, document: Mapping[str, Any]) -> None:
    """Write ``report.json``: whole or not at all."""
    from toolsrv_runtime.files import open_atomic

    if folder is not None:
        text = json.dumps(document, indent=2, ensure_ascii=False, default=str)
        with open_atomic(folder / REPORT) as file:
            file.write(f"{text}\n".encode("utf-8", "backslashreplace"))


def plot(
    folder: Path | None,
    shares: Mapping[str, Mapping[str, PlottedRate]],
    title: str,
    marks: Mapping[str, float] | None = None,
    file: str = PLOT,
) -> None:
    """Draw ``file``; where matplotlib is not installed, say so instead."""
    from toolsrv_lab.evaluation.statistics import draw_shares

    if folder is None or not any(shares.values()):
        return
    try:
        draw_shares(shares, folder / file, title=title, marks=marks)
    except UsageError as error:
        note(f"note: no plot: {error.message} ({error.hint})")


def share_text(one: Share) -> str:
    """Return a share as ``12/40 = 30 (18-45)``, in per cent; empty for a share of nothing."""
    if not one.of:
        return ""
    return f"{one.count}/{one.of} = {100 * one.rate:.0f} ({100 * one.low:.0f}-{100 * one.high:.0f})"


def mean_text(one: Mean) -> str:
    """Return a mean to three digits."""
    return "" if one.mean is None else f"{one.mean:,.3g}"


def counts_text(counts: Mapping[str, int]) -> str:
    """Return counts as ``answered 12, partial 3``."""
    return ", ".join(f"{name} {count}" for name, count in counts.items())


@contextlib.contextmanager
def stop_on_interrupt() -> Iterator[Stop]:
    """Yield a stop that Ctrl-C, SIGTERM and SIGHUP set, for work that blocks in compiled code.

    An exception that a signal raises inside a callback of such code is lost; so the work ends by
    the stop, and the interruption is raised after it.

    Raises:
        KeyboardInterrupt: the block was interrupted; ``Interrupted`` for the other signals.
    """
    from toolsrv.cli.interrupt import signals_as_ctrl_c
    from toolsrv_runtime.stop import Stop

    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    with signals_as_ctrl_c():
        before = signal.signal(signal.SIGINT, lambda _number, _frame: stop.set())
        try:
            yield stop
        finally:
            signal.signal(signal.SIGINT, before)
        if stop.is_set():
            raise KeyboardInterrupt


class Progress:
    """Progress on stderr with the time left: a bar on a terminal, elsewhere a line each tenth.

    Results of an earlier run count as done and not for the pace.
    """

    def __init__(self, what: str, total: int) -> None:
        self._what = what
        self._total = total
        self._done = self._fresh = 0
        self._start = time.monotonic()
        self._bar = Bar(what, "tasks") if console(err=True).is_terminal else None

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.__enter__()
        return self

    def __exit__(self, *raised: object) -> None:
        if self._bar is not None:
            self._bar.__exit__(*raised)

    def step(self, fresh: bool) -> None:
        """Count one more task; ``fresh`` when it was worked on now."""
        self._done += 1
        self._fresh += fresh
        if self._bar is not None:
            self._bar.show(self._done, self._total)
        elif fresh and (self._tenth(self._done) > self._tenth(self._done - 1) or self._fresh == 1):
            note(f"{self._what}: {self._done} of {self._total}{self._left()}")

    def _tenth(self, done: int) -> int:
        return done * 10 // max(1, self._total)

    def _left(self) -> str:
        seconds = (time.monotonic() - self._start) / self._fresh * (self._total - self._done)
        if seconds < 1:
            return ""
        return f", {seconds / 60:.0f} min left" if seconds >= 90 else f", {seconds:.0f} s left"


_COSTS = ("replies", "calls", "tokens", "seconds")
_SHARES = {
    "functions": "right_functions",
    "arguments": "right_arguments",
    "answer": "right_answer",
    "solved": "solved",
    "gave up": "gave_up",
    "wrong claim": "wrong_claims",
}


def show(figures: Mapping[str, Mapping[str, Summary]], compared: Sequence[Compared]) -> None:
    """Print figures by strategy and kind, and how the strategies differ."""
    for name, kinds in figures.items():
        columns = ("kind", "tasks#", *(f"{column}#" for column in _SHARES))
        rows = [
            (kind, one.tasks, *(share_cell(getattr(one, key)) for key in _SHARES.values()))
            for kind, one in kinds.items()
        ]
        table(columns, rows, title=f"{name}: % of the tasks (95 % interval)")
    costs = [
        (name, kind, *(_cost(getattr(one, key)) for key in _COSTS))
        for name, kinds in figures.items()
        for kind, one in kinds.items()
    ]
    table(
        ("strategy", "kind", *(f"{key}#" for key in _COSTS)),
        costs,
        title="per task: mean (95 % interval), 95th percentile",
    )
    if compared:
        _differences(compared)


def _differences(compared: Sequence[Compared]) -> None:
    """Print a row for each measure and a column for each two strategies."""
    pairs = list(dict.fromkeys((one.first, one.second) for one in compared))
    cells = {(one.measure, one.first, one.second): one.difference for one in compared}
    rows = [
        (
            measure.replace("_", " ") + ("" if measure in _COSTS else ", points"),
            *(_difference(cells[measure, *pair], measure) for pair in pairs),
        )
        for measure in dict.fromkeys(one.measure for one in compared)
    ]
    columns = ("difference", *(f"{first} - {second}#" for first, second in pairs))
    table(columns, rows, title="on the same tasks (95 % interval)")


def share_cell(one: Share) -> str:
    """Return a share as ``72 (58-83)``, in per cent; empty for a share of nothing."""
    return f"{100 * one.rate:.0f} ({100 * one.low:.0f}-{100 * one.high:.0f})" if one.of else ""


def _cost(one: Mean) -> str:
    if one.mean is None or one.p95 is None:
        return ""
    if one.low is None or one.high is None:
        return f"{one.mean:,.3g}, {one.p95:,.3g}"
    return f"{one.mean:,.3g} ({one.low:,.3g}-{one.high:,.3g}), {one.p95:,.3g}"


def _difference(one: Difference, measure: str) -> str:
    if one.value is None:
        return ""
    if one.low is None or one.high is None:
        return f"{one.value:+,.3g}"
    if measure in _COSTS:
        return f"{one.value:+,.3g} ({one.low:+,.3g} to {one.high:+,.3g})"
    return f"{100 * one.value:+.0f} ({100 * one.low:+.0f} to {100 * one.high:+.0f})"


_ALL = "all"


def show_tasks(
    cells: Sequence[Cell],
    found: Mapping[Cell, Mapping[str, SolvedFigures]],
    compared: Sequence[Compared],
) -> None:
    """Print shares, then costs, of all cells; then how they differ from the first."""
    known = [cell for cell in cells if cell in found]
    table(
        ("model", "strategy + aids", "kind", "solved#", "calls#", "answer#", "unsupported#",
         "wrong#"),
        [
            (
                cell.model,
                cell.name,
                kind,
                share_text(one.solved),
                share_cell(one.right_calls),
                share_cell(one.right_answer),
                share_cell(one.wrong_claims),
                share_cell(one.wrong_answers),
            )
            for cell in known
            for kind, one in found[cell].items()
        ],
        title="% of the tasks (95 % interval)",
    )  # fmt: skip
    table(
        ("model", "strategy + aids", "statuses", "s#", "p95 s#", "generated#", "evaluated#",
         "replies#", "calls#"),
        [
            (
                cell.model,
                cell.name,
                counts_text(one.statuses),
                mean_text(one.seconds),
                "" if one.seconds.p95 is None else f"{one.seconds.p95:,.3g}",
                mean_text(one.generated),
                mean_text(one.evaluated),
                mean_text(one.replies),
                mean_text(one.calls),
            )
            for cell in known
            for one in (found[cell][_ALL],)
        ],
        title="means per task",
    )  # fmt: skip
    solved = [one for one in compared if one.measure == "solved"]
    if solved:
        table(
            ("cell", "less", "tasks#", "solved, points#"),
            [
                (
                    one.first,
                    one.second,
                    one.difference.pairs,
                    ""
                    if one.difference.value is None
                    else f"{100 * one.difference.value:+.0f} "
                    f"({100 * (one.difference.low or 0):+.0f} to "
                    f"{100 * (one.difference.high or 0):+.0f})",
                )
                for one in solved
            ],
            title="on the same tasks (95 % interval)",
        )


def show_queries(cells: Sequence[Cell], found: Mapping[Cell, Mapping[str, QueryFigures]]) -> None:
    """Print shares, then costs, of all cells."""
    known = [cell for cell in cells if cell in found]
    table(
        ("model", "strategy + aids", "set", "needed called#", "first relevant#", "offered#",
         "with invented#", "invented args#", "finished#"),
        [
            (
                cell.model,
                cell.name,
                name,
                share_text(one.needed_called),
                share_cell(one.first_relevant),
                share_cell(one.offered),
                share_cell(one.with_invented),
                share_cell(one.invented_arguments),
                share_cell(one.finished),
            )
            for cell in known
            for name, one in found[cell].items()
        ],
        title="% of the queries (95 % interval)",
    )  # fmt: skip
    table(
        ("model", "strategy + aids", "statuses", "s#", "generated#", "evaluated#", "calls#"),
        [
            (
                cell.model,
                cell.name,
                counts_text(one.statuses),
                mean_text(one.seconds),
                mean_text(one.generated),
                mean_text(one.evaluated),
                mean_text(one.calls),
            )
            for cell in known
            for one in (found[cell][_ALL],)
        ],
        title="means per query",
    )
