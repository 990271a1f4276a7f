"""``toolsrv solve``: from a task to an answer with evidence, shown while it happens."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING, Any, NoReturn

import click

from toolsrv.cli import rim
from toolsrv.cli.options import example, json_option, solve_options
from toolsrv.cli.output import emit_json, read_stdin
from toolsrv.cli.session import Session, pass_session
from toolsrv.plain import clean_task

if TYPE_CHECKING:
    from toolsrv.cli.live import LiveView
    from toolsrv.workbench import Workbench
    from toolsrv_runtime.outcome import Outcome
    from toolsrv_runtime.solve import SolveOptions, Solver
    from toolsrv_runtime.stop import Stop


@click.command(
    epilog=example(
        'toolsrv solve "What is the time difference between London and Sydney, '
        'and what is the complementary color of teal?"'
    )
)
@click.argument("task")
@solve_options
@click.option("--quiet", "-q", is_flag=True, help="Show only the end, not the search.")
@json_option
@click.pass_context
@pass_session
def solve(
    session: Session,
    context: click.Context,
    /,
    task: str,
    quiet: bool,
    as_json: bool,
    category: str | None,
    **flags: Any,
) -> None:
    """Work on TASK until it has an answer with evidence; "-" reads the task from stdin.

    Exit codes: 0 answered, 3 gave up or only a partial answer, 130 interrupted.
    """
    text = clean_task(read_stdin() if task == "-" else task)
    bench = session.workbench(**flags)
    work = _Solve(bench, text, bench.options(category=category), quiet=quiet)
    outcome = asyncio.run(work.run(as_json=as_json))
    context.exit(rim.DONE if outcome.status == "answered" else rim.NO_ANSWER)


class _Solve:
    """One solve on the terminal."""

    def __init__(self, bench: Workbench, task: str, options: SolveOptions, *, quiet: bool) -> None:
        from toolsrv.cli.live import LiveView
        from toolsrv_runtime.stop import Stop

        self._bench = bench
        self._task = task
        self._options = options
        self._stop: Stop = Stop()
        self._view: LiveView = LiveView(options.limits, quiet=quiet)
        bench.progress = self._view.building

    async def run(self, *, as_json: bool) -> Outcome:
        """Solve and report; an interrupted solve ends the process, with what there is."""
        from toolsrv.cli.interrupt import stoppable

        with self._view:
            outcome, interrupted = await stoppable(
                self._work(), ask=self._ask, at_once=self._view.close
            )
            if outcome is not None:
                self._view.finish(outcome.usage)
        if outcome is None:
            rim.tell(rim.Ending(rim.INTERRUPTED, "interrupted before there was anything"), as_json)
            _leave()
        _report(outcome, as_json)
        if interrupted:
            _leave()
        return outcome

    async def _work(self) -> Outcome:
        from toolsrv.background import in_thread

        self._view.phase("opening the catalog and loading the model")
        solver: Solver = await in_thread(self._prepare)
        self._view.begin()
        try:
            return await solver.solve(
                self._task, self._options, on_event=self._view.on_event, stop=self._stop
            )
        finally:
            await self._bench.aclose()

    def _prepare(self) -> Solver:
        self._bench.check_category(self._options.category)
        return self._bench.solver()

    def _ask(self) -> None:
        self._view.say("stopping; press Ctrl-C again to leave at once", "yellow")
        self._stop.set()


def _report(outcome: Outcome, as_json: bool) -> None:
    if as_json:
        emit_json(outcome.model_dump(mode="json"))
        return
    from toolsrv.cli.report import show_outcome

    show_outcome(outcome)


def _leave() -> NoReturn:
    """End an interrupted process now, whatever threads still do."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(rim.INTERRUPTED)
