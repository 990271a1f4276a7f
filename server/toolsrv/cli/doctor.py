"""``toolsrv doctor``: whether this installation works, and what to do where it does not."""

from __future__ import annotations

import click

from toolsrv.cli import rim
from toolsrv.cli.options import example, json_option, model_option, profile_option
from toolsrv.cli.output import emit_json, table
from toolsrv.cli.session import Session, pass_session


@click.command(epilog=example("toolsrv doctor"))
@model_option
@profile_option
@json_option
@click.pass_context
@pass_session
def doctor(
    session: Session,
    context: click.Context,
    /,
    model: str | None,
    profile: str | None,
    as_json: bool,
) -> None:
    """Look whether everything works; loads the model and lets it write for a second.

    Exit codes: 0 nothing failed, 1 something did.
    """
    from toolsrv.health import examine

    findings = examine(session.workbench(model=model, profile=profile))
    failed = any(one.state == "fail" for one in findings)
    if as_json:
        emit_json({"ok": not failed, "findings": [one.model_dump() for one in findings]})
    else:
        table(
            ("", "check", "found", "next"),
            [(one.state, one.check, one.found, one.next) for one in findings],
        )
    context.exit(rim.FAULT if failed else rim.DONE)
