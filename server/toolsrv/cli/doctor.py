"""``toolsrv doctor``: whether this installation works, and what to do where it does not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from toolsrv.cli import error_handler
from toolsrv.cli.options import example, json_option, model_option, profile_option
from toolsrv.cli.output import emit_json, table
from toolsrv.cli.session import Session, pass_session
from toolsrv.plain import plain
from toolsrv_registry.errors import DataError

if TYPE_CHECKING:
    from toolsrv.health import Finding


@click.command(epilog=example("toolsrv doctor"))
@model_option
@profile_option
@click.option("--no-try", is_flag=True, help="Start no server as clients start it.")
@json_option
@click.pass_context
@pass_session
def doctor(
    session: Session,
    context: click.Context,
    /,
    model: str | None,
    profile: str | None,
    no_try: bool,
    as_json: bool,
) -> None:
    """Check the installation and registered clients; the model writes for a second.

    The MCP server is started as each registered client starts it, and its tools are listed. That
    also keeps its first answers, which the next start gives at once.

    Exit codes: 0 nothing failed, 1 something did.
    """
    from toolsrv.cli.connect import own_start, this_machine
    from toolsrv.health import Finding, examine, examine_clients

    findings = examine(session.workbench(model=model, profile=profile))
    if said := session.load().note:
        todo = "remove them from the file, the shell or the client's entry"
        findings.insert(0, Finding(check="settings", state="warn", found=said, next=todo))
    try:
        findings += examine_clients(own_start(session), this_machine(), tries=not no_try)
    except DataError as error:
        findings.append(Finding(check="server", state="fail", found=error.message, next=error.hint))
    problems = [one for one in findings if one.state != "ok"]
    failed = any(one.state == "fail" for one in findings)
    if as_json:
        emit_json(
            {
                "ok": not failed,
                "findings": [one.model_dump() for one in findings],
                "problems": [
                    {"number": number, "check": one.check, "state": one.state, "fix": one.next}
                    for number, one in enumerate(problems, 1)
                ],
            }
        )
    else:
        _show(findings, problems)
    context.exit(error_handler.FAULT if failed else error_handler.DONE)


def _show(findings: Sequence[Finding], problems: Sequence[Finding]) -> None:
    """Print the findings as a table, and the problems below it by number, each with its fix."""
    table(("", "check", "found"), [(one.state, one.check, one.found) for one in findings])
    for number, one in enumerate(problems, 1):
        what = "failed" if one.state == "fail" else "warning"
        click.echo(plain(f"{number}. {one.check} ({what}): {one.found}"))
        if one.next:
            click.echo(plain(f"   fix: {one.next}"))
    more = [one for one in findings if one.state == "ok" and one.next]
    for one in more:
        click.echo(plain(f"{one.check}: {one.next}"))
    if not problems:
        click.echo("no problem found")
