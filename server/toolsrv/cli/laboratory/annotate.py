"""``toolsrv lab annotate``: tasks solved and kept as ToolBench answer files.

The work is done by ``toolsrv_lab.annotation``.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from toolsrv.cli.interrupt import interruptible
from toolsrv.cli.laboratory.scale import Scale, scale_options
from toolsrv.cli.options import (
    FiniteRange,
    GivenPath,
    engine_model_option,
    example,
    json_option,
    model_option,
    threads_option,
)
from toolsrv.cli.output import Bar, emit_json, note
from toolsrv.cli.session import Session, pass_session
from toolsrv_registry.errors import UsageError

if TYPE_CHECKING:
    from toolsrv.workbench import Workbench
    from toolsrv_lab.annotation.annotators import Annotator
    from toolsrv_lab.annotation.assignments import Assignment
    from toolsrv_lab.annotation.pipeline import Report
    from toolsrv_lab.execution import Backend
    from toolsrv_runtime.toolbench.answer_files import Answer

_COUNT = 100
_OFFERED, _WORKERS = 9, 4
_NOTE_SECONDS = 20.0


@click.command(
    epilog=example(
        "toolsrv lab annotate --errands --count 20 --out answers",
        "toolsrv lab annotate --tasks instructions.jsonl --teacher engine --out answers",
    )
)
@click.option("--out", type=GivenPath(), required=True, metavar="DIR",
              help="Folder of answer files; run it again after a stop and it goes on.")  # fmt: skip
@click.option("--count", type=click.IntRange(1),
              help=f"At most so many tasks. [default: all of a file or of the errands, else {_COUNT}]")  # fmt: skip
@click.option("--catalog", "catalogs", metavar="NAME", multiple=True,
              help="Only APIs of this catalog; may be given several times. [default: the enabled ones]")  # fmt: skip
@click.option("--tasks", type=GivenPath(), metavar="FILE",
              help="Instructions (lab instructions, ToolBench), or tasks with their calls.")  # fmt: skip
@click.option("--errands", is_flag=True, help="The whole tasks that come with the laboratory.")
@click.option("--teacher", type=click.Choice(["oracle", "engine"]), default="oracle",
              show_default=True, help="Who solves: the oracle knows the calls, an engine does not.")  # fmt: skip
@model_option
@engine_model_option
@click.option("--mistakes", type=FiniteRange(0, 1), default=0.3, show_default=True,
              help="Share of the steps at which the oracle errs, or an API fails.")  # fmt: skip
@click.option("--width", type=click.IntRange(1, 8), default=2, show_default=True,
              help="Branches tried below one node.")  # fmt: skip
@click.option("--depth", type=click.IntRange(3, 96), default=12, show_default=True,
              help="Most nodes on one path; a call takes three.")  # fmt: skip
@click.option("--candidates", type=click.IntRange(1, 32), help="APIs offered in a task.")
@click.option("--max-seconds", type=float, help="Time for one task.")
@threads_option
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True)
@scale_options
@json_option
@pass_session
def annotate(
    session: Session,
    /,
    out: Path,
    count: int | None,
    catalogs: tuple[str, ...],
    tasks: Path | None,
    errands: bool,
    teacher: str,
    mistakes: float,
    scale: Scale,
    as_json: bool,
    **flags: Any,
) -> None:
    """Solve tasks by tree search with a teacher and keep each search as a ToolBench answer file.

    Tasks are composed from needs that were written for the APIs, unless --tasks or --errands says
    otherwise. The catalog that ships is called for real, other APIs are played. `toolsrv lab
    convert` turns the folder into training data.
    """
    if tasks is not None and errands:
        raise UsageError("--tasks and --errands are two sources of tasks", hint="give one of them")
    if teacher == "oracle" and flags["model"]:
        raise UsageError("the oracle asks no model", hint="add --teacher engine")
    bench = session.workbench(**flags)
    scale.check(bench.settings if teacher == "engine" else None)
    work = _Work(bench, teacher, mistakes, catalogs)
    path = tasks.expanduser() if tasks else None
    limit = count or (None if tasks or errands else _COUNT)
    settings = {"teacher": teacher, "source": _source(path, errands=errands)}
    settings |= {name: flags[name] for name in ("width", "depth", "candidates", "seed")}
    assignments = work.tasks(path, flags["seed"], errands=errands)
    report = work.run(assignments, limit, out.expanduser(), scale, settings)
    if as_json:
        emit_json({"folder": str(out)} | settings | report.model_dump(mode="json"))
        return
    _show_annotation(report, out, flags["seed"])


def _source(path: Path | None, *, errands: bool) -> str:
    """Return what tells one source of tasks from another."""
    if path is None:
        return "errands" if errands else "needs"
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise UsageError(
            f"cannot read {path}: {error.strerror or error}", hint="name a file with --tasks"
        ) from error


def _backend(
    teacher: str, mistakes: float, catalogs: tuple[str, ...], bench: Workbench
) -> Backend[Assignment, Answer]:
    from toolsrv_lab.annotation.pipeline import Workplace, catalog_names, usable_apis

    names = catalog_names(bench.registry(), catalogs)
    apis = usable_apis(bench.registry(), names)
    return Workplace(_annotator(bench, teacher, mistakes), bench.searchable(), names, apis).open


def _annotator(bench: Workbench, teacher: str, mistakes: float) -> Annotator:
    from toolsrv_lab.annotation.annotators import EngineAnnotator, OracleAnnotator

    options = bench.options(strategy="dfsdt")
    if teacher == "engine":
        from toolsrv_runtime.models.openai.chat import OpenAIChat

        engine, profile = bench.model()
        name = engine.models if isinstance(engine, OpenAIChat) else ""
        return EngineAnnotator(engine, profile, options, name=name)
    offered = options.candidates or _OFFERED
    return OracleAnnotator(options, mistakes=mistakes, offered=offered)


class _Work:
    """One annotation on the terminal."""

    def __init__(
        self,
        bench: Workbench,
        teacher: str,
        mistakes: float,
        catalogs: tuple[str, ...],
    ) -> None:
        from toolsrv_lab.annotation.pipeline import catalog_names, usable_apis

        self._bench = bench
        self._teacher = teacher
        self._mistakes = mistakes
        self._catalogs = catalog_names(bench.registry(), catalogs)
        self._apis = usable_apis(bench.registry(), self._catalogs)
        self._told = time.monotonic()

    def tasks(self, path: Path | None, seed: int, *, errands: bool) -> Iterator[Assignment]:
        """Return the tasks of a file, the errands, or tasks made of needs."""
        from toolsrv_lab.annotation.assignments import from_errands, from_needs, read_assignments

        if path is not None:
            return read_assignments(path, self._apis)
        if errands:
            return from_errands(self._apis, seed)
        return from_needs(list(self._apis.values()), seed)

    def run(
        self,
        tasks: Iterator[Assignment],
        count: int | None,
        out: Path,
        scale: Scale,
        settings: Mapping[str, Any],
    ) -> Report:
        """Solve what the folder lacks."""
        from toolsrv_lab.annotation.pipeline import (
            CODEC,
            AnswerFolder,
            annotate,
            fitting_assignments,
        )

        annotator = _annotator(self._bench, self._teacher, self._mistakes)
        taken, left_out = fitting_assignments(tasks, annotator, count)
        mistakes = self._mistakes if self._teacher == "oracle" else None
        told = {"model": annotator.name, "mistakes": mistakes, "catalogs": self._catalogs}
        with (
            AnswerFolder(out, f"DFS_woFilter_w{settings['width']}", {**settings, **told}) as folder,
            Bar("annotating", "tasks") as bar,
            interruptible(),
        ):
            self._bench.searchable()  # its index is built before workers read it
            backend = partial(_backend, self._teacher, self._mistakes, tuple(self._catalogs))
            oracle = self._teacher == "oracle"
            pool = scale.pool(self._bench, backend, CODEC, default=_WORKERS if oracle else 1)
            show = partial(self._progress, bar)
            try:
                return asyncio.run(
                    annotate(taken, folder, annotator.name, pool, left_out=left_out, progress=show)
                )
            except KeyboardInterrupt:
                note(f"what is done stays in {out}; the same command goes on after it")
                raise

    def _progress(self, bar: Bar, report: Report) -> None:
        bar.show(report.done, report.tasks)
        if time.monotonic() - self._told > _NOTE_SECONDS:
            self._told = time.monotonic()
            note(f"{report.done} of {report.tasks}: {_counts(report)}")


def _counts(report: Report) -> str:
    return f"{report.solved} solved, {report.gave_up} gave up, {report.failed} failed"


def _show_annotation(report: Report, out: Path, seed: int) -> None:
    """Print the summary on stdout; what is noteworthy on stderr."""
    for one in report.damaged:
        note(f"made again: {one.file}: {one.reason}")
    for reason, count in report.left_out.items():
        note(f"left out: {count} tasks: {reason}")
    before = f" ({report.there} were there)" if report.there else ""
    click.echo(
        f"{report.done} answers{before}, seed {seed}: {_counts(report)}; "
        f"next: toolsrv lab convert {out} --out training.json"
    )
