"""``toolsrv solve``: from a task to an answer with evidence, shown while it happens."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from toolsrv.cli import error_handler, prompting
from toolsrv.cli.options import example, json_option, solve_options
from toolsrv.cli.output import emit_json, note
from toolsrv.cli.prompting import read_text
from toolsrv.cli.session import Session, pass_session
from toolsrv.plain import clean_task
from toolsrv.signals import exit_code
from toolsrv_registry.errors import ToolsrvError

if TYPE_CHECKING:
    from toolsrv.cli.solve_view import LiveView
    from toolsrv.workbench import Workbench
    from toolsrv_runtime.calls.result import Consent
    from toolsrv_runtime.contract.hints import Question
    from toolsrv_runtime.outcome import Outcome
    from toolsrv_runtime.stop import Stop


@click.command(
    epilog=example(
        'toolsrv solve "What is the time difference between London and Sydney, '
        'and what is the complementary color of teal?"'
    )
)
@click.argument("task", required=False)
@solve_options
@click.option(
    "--answer-to",
    metavar="RUN_ID",
    help='TASK is the answer to the question of this run ("last" for the latest).',
)
@click.option(
    "--continue",
    "continues",
    metavar="RUN",
    help='Go on from this run ("last" for the latest): its answer and results are known. '
    "An interrupted one needs no TASK.",
)
@click.option("--quiet", "-q", is_flag=True, help="Show only the end, not the search.")
@click.option("--save-answer", type=click.Path(path_type=Path), metavar="FILE",
              help="Write the search as a ToolBench answer file.")  # fmt: skip
@json_option
@click.pass_context
@pass_session
def solve(
    session: Session,
    context: click.Context,
    /,
    task: str | None,
    answer_to: str | None,
    continues: str | None,
    quiet: bool,
    save_answer: Path | None,
    as_json: bool,
    category: str | None,
    **flags: Any,
) -> None:
    """Work on TASK until it has an answer with evidence; "-" reads the task from stdin.

    A call that may change something is shown and asked about on a terminal; elsewhere it is not
    made. A value that a call requires and the task does not say is asked for there; elsewhere the
    solve ends with the question, and --answer-to goes on with the answer.

    Exit codes: 0 answered or replied, 3 gave up, a value is missing or only a partial answer, 130
    interrupted (143 by SIGTERM, 129 by SIGHUP).
    """
    if task is None and not continues:
        raise click.MissingParameter(ctx=context, param_hint="'TASK'", param_type="argument")
    text = "" if task is None else clean_task(read_text() if task == "-" else task)
    if save_answer is not None:
        from toolsrv_runtime.files import check_writable

        save_answer = save_answer.expanduser()
        check_writable(save_answer)
    bench = session.workbench(**flags)
    strategy = bench.settings.strategy
    if flags["chains"] is not None and strategy != "cot":
        note(f"note: --chains does nothing with the strategy {strategy}; it is for --strategy cot")
    if bench.settings.adapter is not None:
        from toolsrv.cli.model_create import merge_first
        from toolsrv.model_loading import check_model

        check_model(bench.settings)
        merge_first(bench.settings)
    work = _Solve(bench, quiet=quiet, save=save_answer)
    solving = work.run(text, category, answer_to or "", continues or "", as_json=as_json)
    outcome = asyncio.run(solving)
    if work.fault is not None:
        context.exit(error_handler.FAULT)
    context.exit(
        error_handler.DONE if outcome.status in {"answered", "replied"} else error_handler.NO_ANSWER
    )


class _Solve:
    """One solve on the terminal. ``fault`` is why its answer file was not written."""

    def __init__(self, bench: Workbench, *, quiet: bool, save: Path | None) -> None:
        from toolsrv.cli.solve_view import LiveView
        from toolsrv_runtime.stop import Stop

        self._bench = bench
        self._save = save
        self.fault: ToolsrvError | None = None
        self._stop: Stop = Stop()
        self._view: LiveView = LiveView(bench.options().limits, quiet=quiet)
        bench.progress = self._view.building

    async def run(
        self, task: str, category: str | None, answer_to: str, continues: str, *, as_json: bool
    ) -> Outcome:
        """Solve and report; an interrupted solve ends the process, with what there is."""
        from toolsrv.cli.interrupt import stoppable

        with self._view:
            outcome, interrupted = await stoppable(
                self._work(task, category, answer_to, continues),
                ask=self._ask,
                at_once=self._view.close,
            )
            if outcome is not None:
                self._view.finish(outcome.usage)
        if outcome is None:
            code = exit_code(interrupted)
            error_handler.report_error(
                error_handler.ErrorReport(code, "interrupted before there was anything"), as_json
            )
            _leave(interrupted)
        self._report(outcome, as_json)
        if self.fault is not None:  # stdout has its one document already
            error_handler.report_error(
                error_handler.ErrorReport(error_handler.FAULT, self.fault.message, self.fault.hint),
                as_json=False,
            )
        if interrupted:
            _leave(interrupted)
        return outcome

    async def _work(
        self, task: str, category: str | None, answer_to: str, continues: str
    ) -> Outcome:
        from toolsrv.threads import in_thread
        from toolsrv.toolbox import AsyncToolbox

        self._view.phase("opening the catalog and loading the model")
        asks = prompting.can_ask()
        async with AsyncToolbox.from_workbench(self._bench) as toolbox:
            outcome = await toolbox.solve(
                task,
                category=category,
                answer_to=answer_to,
                continues=continues,
                on_event=self._view.on_event,
                stop=self._stop,
                confirm=self._consent if asks else None,
                ask_value=self._value if asks else None,
            )
            if (path := self._save) is not None:
                await in_thread(lambda: self._write(path, outcome))
            return outcome

    def _report(self, outcome: Outcome, as_json: bool) -> None:
        """Print the outcome, and where the whole of it is or why it was not kept."""
        if as_json:
            emit_json(outcome.model_dump(mode="json"))
        else:
            from toolsrv.cli.solve_view import show_outcome

            show_outcome(outcome)
        if not outcome.run_id:
            return
        if not as_json:
            note(f"the whole search: toolsrv run show {outcome.run_id}")
        if outcome.status == "needs_input":
            if as_json:
                note(outcome.reason)
            note(f'to go on: toolsrv solve --answer-to {outcome.run_id} "ANSWER"')

    async def _consent(self, wanted: Consent) -> bool:
        """Ask the person at this terminal."""
        with self._view.paused():
            return await prompting.ask_consent(wanted)

    async def _value(self, wanted: Question) -> str | None:
        """Ask the person at this terminal."""
        with self._view.paused():
            return await prompting.ask_value(wanted)

    def _write(self, path: Path, outcome: Outcome) -> None:
        """Write the answer file; what prevents it is kept, so that the answer is shown."""
        from toolsrv_registry.functions import FunctionList
        from toolsrv_runtime.toolbench.answer_writer import answer_of, write_answer

        try:
            literal = outcome.format.startswith("toolllama")  # as that model saw them
            apis = [self._bench.api(one) for one in outcome.candidates]
            offered = FunctionList(apis, literal=literal)
            prompts = self._bench.prompts()
            functions = offered.to_json(finish=prompts.finish)
            tools = offered.tool_list_block()
            answer = answer_of(
                outcome,
                functions,
                tools=tools,
                words=prompts.words,
                faithful=self._bench.is_faithful,
            )
            write_answer(path, answer)
        except ToolsrvError as error:
            self.fault = error

    def _ask(self, number: int) -> None:
        again = "; press Ctrl-C again to leave at once" if number == signal.SIGINT else ""
        self._view.say(f"stopping{again}", "yellow")
        self._stop.set()


def _leave(number: int) -> NoReturn:
    """End an interrupted process now, whatever threads still do."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(exit_code(number))
