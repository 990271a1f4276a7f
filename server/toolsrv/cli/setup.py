"""``toolsrv setup``: the first five minutes, step by step."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING

import click

from toolsrv.cli import error_handler
from toolsrv.cli.options import example, json_option, not_empty
from toolsrv.cli.output import emit_json, note
from toolsrv.cli.session import Session, pass_session
from toolsrv.plain import plain
from toolsrv_registry.errors import ToolsrvError

if TYPE_CHECKING:
    from toolsrv.cli.setup_steps import Setup
    from toolsrv.setup.state import SetupState, StepName

_STEPS = ("machine", "model", "catalog", "keys", "policy", "clients", "task")


@click.command(
    epilog=example(
        "toolsrv setup",
        "toolsrv setup --yes --catalog none --client cursor",
        "toolsrv setup --undo",
    )
)
@click.option("--yes", is_flag=True, help="Ask nothing: take what is proposed, bring no model.")
@click.option("--model", metavar="NAME|FILE|URL", callback=not_empty,
              help="The model; a recommended one is brought.")  # fmt: skip
@click.option("--catalog", metavar="NAME|FILE|URL|none", callback=not_empty,
              help="A published catalog or an OpenAPI document.")  # fmt: skip
@click.option(
    "--mode", type=click.Choice(["live", "replay", "offline"]), help="How calls are made."
)
@click.option("--client", "clients", multiple=True, metavar="CLIENT", help="Register there.")
@click.option("--no-clients", is_flag=True, help="Register nowhere.")
@click.option("--task", callback=not_empty, help="The first task.")
@click.option("--again", multiple=True, type=click.Choice(_STEPS), help="Do a step once more.")
@click.option("--undo", is_flag=True, help="Undo what setup did, and end.")
@json_option
@click.pass_context
@pass_session
def setup(
    session: Session,
    context: click.Context,
    /,
    yes: bool,
    model: str | None,
    catalog: str | None,
    mode: str | None,
    clients: tuple[str, ...],
    no_clients: bool,
    task: str | None,
    again: tuple[StepName, ...],
    undo: bool,
    as_json: bool,
) -> None:
    """Set up toolsrv on this machine: model, catalog, keys, clients, and a first task.

    Steps that are done are not asked about again; one that failed or was broken off is. Everything
    that setup changes is written down in the data folder, and --undo takes it back. Keys are asked
    for at hidden prompts only.

    Exit codes: 0 all steps are done, 1 one failed.
    """
    from toolsrv.cli.connect import this_machine
    from toolsrv.cli.setup_steps import Setup, SetupAnswers, named_steps, refuse_without_person
    from toolsrv.setup.state import load_state

    answers = SetupAnswers(yes, model, catalog, mode, clients, no_clients, task)
    work = Setup(session, context, this_machine(), answers)
    state = load_state(work.data_dir)
    shown = contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext()
    if undo:
        with shown:
            said = _undo(work, state)
        if as_json:
            emit_json({"undone": said})
        return
    refuse_without_person(answers)
    with shown:
        failed = _work(work, state, {*again, *named_steps(answers)})
    if as_json:
        emit_json(
            {
                "ok": not failed,
                "steps": [{"step": name, "found": one.found} for name, one in state.steps.items()],
                "failed": failed,
                "run_id": work.run_id,
            }
        )
    context.exit(error_handler.FAULT if failed else error_handler.DONE)


def _work(work: Setup, state: SetupState, again: set[StepName]) -> dict[str, str]:
    """Do the steps that are not done, and keep each; return those that failed, with the reason."""
    from toolsrv.cli.setup_steps import STEPS
    from toolsrv.setup.state import CompletedStep, save_state

    failed: dict[str, str] = {}
    for number, (name, (title, step)) in enumerate(STEPS.items(), 1):
        head = f"{number}/{len(STEPS)} {title}"
        if name in state.steps and name not in again:
            click.echo(plain(f"{head}: done before: {state.steps[name].found}"), err=True)
            continue
        click.echo(head, err=True)
        try:
            done = step(work)
        except ToolsrvError as error:
            failed[name] = error.message
            note(f"   failed: {error.message}")
            note(f"   fix: {error.hint}")
            continue
        before = state.steps.get(name)
        undo = (*(before.undo if before else ()), *done.undo)
        state.steps[name] = CompletedStep(found=done.found, undo=tuple(dict.fromkeys(undo)))
        save_state(work.data_dir, state)
        click.echo(plain(f"   {done.found}"), err=True)
    if failed:
        note(f"go on with: toolsrv setup ({', '.join(failed)} failed)")
    else:
        note("all is set up; look closer with toolsrv doctor, undo with toolsrv setup --undo")
    return failed


def _undo(work: Setup, state: SetupState) -> list[str]:
    """Undo all changes, the last first; what cannot be undone stays written down."""
    from toolsrv.cli.catalog.changes import remove
    from toolsrv.setup.state import FILE, CompletedStep, Undoer, save_state

    undoer = Undoer(
        work.data_dir,
        work.config,
        work.machine,
        lambda name: work.context.invoke(remove, name=name, yes=True),
    )
    said, left = [], []
    for one in state.undoing():
        try:
            said.append(undoer.undo(one))
        except ToolsrvError as error:
            left.append(one)
            note(f"not undone: {one.kind} {one.name}: {error.message}; {error.hint}")
            continue
        note(said[-1])
    state.steps.clear()
    if left:
        state.steps["machine"] = CompletedStep(found="not undone yet", undo=tuple(reversed(left)))
        save_state(work.data_dir, state)
    else:
        (work.data_dir / FILE).unlink(missing_ok=True)
    if not said and not left:
        note("setup has changed nothing here")
    return said
