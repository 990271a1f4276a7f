"""``toolsrv bench world``: the API world under load, with silent clients beside it."""

from __future__ import annotations

import asyncio
import json

import click

from toolsrv_lab.bench.figures import Figure, figure, percentile
from toolsrv_lab.bench.load import Plan, Tally, load
from toolsrv_lab.bench.machine import machine
from toolsrv_lab.bench.report import Report, emit, emit_machine, example, json_option, tell
from toolsrv_lab.bench.scratch import scratch_folder
from toolsrv_lab.bench.world_process import WorldProcess
from toolsrv_registry.errors import DataError

_CITIES = ("London", "Sydney", "Tokyo", "Lima", "Oslo", "Cairo", "Paris", "Delhi", "Rome", "Berlin")


@click.command(epilog=example("toolsrv bench world --seconds 10"))
@click.option(
    "--rate", type=click.FloatRange(0.1, 10_000), default=200.0, show_default=True,
    help="Requests a second.",
)  # fmt: skip
@click.option(
    "--seconds", type=click.FloatRange(0.1, 86_400), default=60.0, show_default=True,
    help="How long.",
)  # fmt: skip
@click.option(
    "--silent", type=click.IntRange(0, 150), default=50, show_default=True,
    help="Clients that connect and never send.",
)  # fmt: skip
@click.option(
    "--connections", type=click.IntRange(1, 50), default=16, show_default=True,
    help="Connections that the requests share.",
)  # fmt: skip
@click.option(
    "--mode", type=click.Choice(["replay", "offline"]), default="replay", show_default=True,
    help="Recorded answers, or those of the catalog that ships.",
)  # fmt: skip
@json_option
def world(
    rate: float, seconds: float, silent: int, connections: int, mode: str, as_json: bool
) -> None:
    """Send requests to 'toolsrv world serve' at a fixed rate: latency and errors."""
    report = measure(Plan(rate, seconds, connections, silent), mode)
    emit(report, as_json=as_json)
    if not as_json:
        tell(f"errors: {report.details['errors'] or 'none'}")
        emit_machine(report)


def measure(plan: Plan, mode: str) -> Report:
    """Put a world under load; for a replay each call is recorded first.

    Raises:
        DataError: the world did not start, or answered wrongly before there was any load.
    """
    before = machine()
    with scratch_folder() as folder:
        if mode == "replay":
            tell("world: recording")
            with WorldProcess(folder, "record") as process:
                _warm(process)
        with WorldProcess(folder, mode) as process:
            _warm(process)
            tell(f"world: {plan.rate:g} requests/s for {plan.seconds:g} s")
            used = process.cpu_seconds()
            tally = asyncio.run(_load(process, plan))
            used = process.cpu_seconds() - used
            memory = process.memory()
            end_s = process.end()
    return Report(
        bench="world",
        options={
            "rate": plan.rate,
            "seconds": plan.seconds,
            "connections": plan.connections,
            "silent": plan.silent,
            "mode": mode,
        },
        figures=_figures(tally)
        | {
            "cpu": figure("server CPU per request", "ms", _each(1000 * used, tally)),
            "memory_peak": figure("memory peak", "MiB", [memory.peak]),
            "end": figure("SIGTERM to the end", "s", [end_s]),
        },
        details={"errors": dict(tally.errors), "let_go": tally.let_go},
        machine=before,
    )


def _warm(process: WorldProcess) -> None:
    """Make every call once, slowly: what loads on first use is loaded, what records is recorded."""
    tally = asyncio.run(_load(process, Plan(50, len(_calls()) / 50, 1, 0)))
    if tally.errors:
        raise DataError(
            f"the world answers wrongly without any load: {dict(tally.errors)}",
            hint="run 'toolsrv world serve' by hand to see why",
        )


async def _load(process: WorldProcess, plan: Plan) -> Tally:
    requests = [_request(process, call) for call in _calls()]
    return await load(process.host, process.port, requests, plan, _wrong)


def _figures(tally: Tally) -> dict[str, Figure]:
    ordered = sorted(1000 * one for one in tally.latencies)
    found = {"latency": figure("latency", "ms", ordered)}
    for percent in (50, 99, 99.9):
        value = [percentile(ordered, percent)] if ordered else []
        found[f"p{percent}"] = figure(f"latency, p{percent}", "ms", value)
    answered = len(ordered)
    rate = answered / tally.seconds if tally.seconds else None
    return found | {
        "answered": figure("requests answered", "", [answered]),
        "errors": figure("errors", "", [tally.errors.total()]),
        "rate": figure("answered a second", "1/s", [rate]),
    }


def _each(total: float, tally: Tally) -> list[float]:
    """Return a request's share of a total; nothing where none was answered or it is unknown."""
    return [total / len(tally.latencies)] if tally.latencies and total else []


def _calls() -> list[dict[str, str]]:
    """Return different calls of an API of the catalog that ships."""
    return [
        {"from_city": one, "to_city": other, "date": "2026-01-05"}
        for one in _CITIES
        for other in _CITIES
        if one != other
    ]


def _request(process: WorldProcess, arguments: dict[str, str]) -> bytes:
    """Return a whole request as StableToolBench's client sends it."""
    body = json.dumps(
        {
            "category": "Location",
            "tool_name": "world_clock_for_Location",
            "api_name": "time_difference",
            "tool_input": json.dumps(arguments),
            "strip": "truncate",
            "toolbench_key": process.token,
        }
    ).encode()
    head = (
        f"POST /virtual HTTP/1.1\r\nHost: {process.host}:{process.port}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def _wrong(status: int, body: bytes) -> str:
    if status != 200:
        return f"HTTP status {status}"
    found = json.loads(body)
    return "" if found["error"] == "" and found["response"] else str(found["error"])[:200]
