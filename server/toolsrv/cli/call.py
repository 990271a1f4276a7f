"""``toolsrv call``: one call of one API."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import click

from toolsrv.cli import consent, rim
from toolsrv.cli.options import (
    example,
    json_option,
    mode_option,
    simulate_option,
    simulator_option,
)
from toolsrv.cli.output import console, emit_json, note
from toolsrv.cli.session import Session, pass_session
from toolsrv.cli.stdin import read_text
from toolsrv.plain import plain
from toolsrv_registry.errors import UsageError
from toolsrv_runtime.calls.arguments import parse

if TYPE_CHECKING:
    from toolsrv.workbench import Workbench
    from toolsrv_registry.api import Api
    from toolsrv_runtime.calls.caller import CallResult


@click.command(
    epilog=example(
        "toolsrv call Location/world_clock/time_difference "
        '\'{"from_city": "London", "to_city": "Sydney"}\''
    )
)
@click.argument("api_id", metavar="ID")
@click.argument("arguments", metavar="ARGUMENTS", default="{}")
@mode_option
@simulate_option
@simulator_option
@json_option
@click.pass_context
@pass_session
def call(
    session: Session,
    context: click.Context,
    api_id: str,
    arguments: str,
    mode: str | None,
    simulate: str | None,
    simulator: str | None,
    as_json: bool,
) -> None:
    """Call the API with this ID.

    ARGUMENTS is one JSON object; "-" reads it from stdin. Exit code 1 when the API does not
    answer with success, 2 when the call is refused before it is made. A call that may change
    something is shown and asked about on a terminal, and declined by any answer but yes; elsewhere
    it is refused, unless the setting "calls" allows it.
    """
    from toolsrv.views import call_view

    given = parse(read_text() if arguments == "-" else arguments)
    bench = session.workbench(mode=mode, simulate=simulate, simulator=simulator)
    result, left = asyncio.run(_call(bench, bench.api(api_id), given))
    if result.refused and not (as_json and result.consent):
        raise UsageError(result.error, hint=result.hint)
    if as_json:
        emit_json(call_view(result).model_dump(mode="json") | {"response": result.response})
    else:
        note(f"{result.api_id}: status {result.status}, {result.source}, {result.seconds:.2f} s")
        if left is not None and result.source == "live":
            note(f"{left} calls left to its host today (calls_per_day)")
        for name, value in result.headers.items():
            note(f"{name}: {plain(value)}")
        shown = result.response
        if not isinstance(shown, str):
            shown = json.dumps(shown, ensure_ascii=False, indent=2)
        if result.response not in ("", None):
            console().print(plain(shown), soft_wrap=True)
        if result.error:
            note(f"error: {result.error}")
        if result.error and result.hint:
            note(f"hint: {result.hint}")
    if not result.ok:
        context.exit(rim.USAGE if result.refused else rim.FAULT)


async def _call(
    bench: Workbench, api: Api, arguments: dict[str, Any]
) -> tuple[CallResult, int | None]:
    """Return what a call came to, and how many its host has left today (None: no limit)."""
    try:
        result = await _answered(bench, api, arguments)
        return result, bench.caller().calls_left(api)
    finally:
        await bench.aclose()


async def _answered(bench: Workbench, api: Api, arguments: dict[str, Any]) -> CallResult:
    from toolsrv_runtime.calls.result import declined

    result = await bench.caller().call(api, arguments)
    if result.consent is None or not consent.can_ask():
        return result
    if not await consent.asked(result.consent):
        return declined(result)
    return await bench.caller().call(api, arguments, consent=result.consent)
