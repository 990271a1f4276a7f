"""``toolsrv bench world``: the API server under load at a fixed rate, beside silent clients.

A request is timed from the moment when it was due. The server is a process on a free loopback
port.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import re
import secrets
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Self

import click
import psutil

from toolsrv_lab.bench.report import (
    Figure,
    Memory,
    Report,
    emit,
    emit_machine,
    example,
    figure,
    json_option,
    machine,
    memory,
    percentile,
    report_progress,
)
from toolsrv_lab.bench.scratch import scratch_folder
from toolsrv_registry.errors import DataError

REPLY_LIMIT = 1 << 20
PATIENCE_S = 30.0
"""Seconds for one reply; then it counts as an error."""
_LEAD_S = 0.2

ReplyCheck = Callable[[int, bytes], str]
"""From a reply's status and body to what is wrong with it, "" for nothing."""


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """``rate`` requests a second for ``seconds`` over ``connections``; ``silent`` more say nothing."""

    rate: float
    seconds: float
    connections: int
    silent: int


@dataclass(slots=True)
class LoadTally:
    """What came of it: seconds of every answered request, errors by kind, silent clients let go."""

    latencies: list[float] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    let_go: int = 0
    seconds: float = 0.0


async def run_load(
    host: str,
    port: int,
    requests: Sequence[bytes],
    plan: LoadPlan,
    good: ReplyCheck,
) -> LoadTally:
    """Send whole requests (head and body), in turn."""
    tally = LoadTally()
    numbers = iter(range(round(plan.rate * plan.seconds)))
    quiet = [asyncio.create_task(_silent(host, port, tally)) for _ in range(plan.silent)]
    start = asyncio.get_running_loop().time() + _LEAD_S

    async def work() -> None:
        async with _Connection(host, port) as connection:
            for number in numbers:
                due = start + number / plan.rate
                await asyncio.sleep(due - asyncio.get_running_loop().time())
                wrong = await connection.ask(requests[number % len(requests)], good)
                if wrong:
                    tally.errors[wrong] += 1
                else:
                    tally.latencies.append(asyncio.get_running_loop().time() - due)

    try:
        await asyncio.gather(*(work() for _ in range(plan.connections)))
        tally.seconds = asyncio.get_running_loop().time() - start
    finally:
        for one in quiet:
            one.cancel()
        await asyncio.gather(*quiet, return_exceptions=True)
    return tally


class _Connection:
    """A kept connection; opened when it is needed, and again after an error."""

    def __init__(self, host: str, port: int) -> None:
        self._place = (host, port)
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._close()

    async def ask(self, request: bytes, good: ReplyCheck) -> str:
        """Send a request; return what is wrong with the reply."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                status, body = await self._exchange(request)
        except (OSError, EOFError, ValueError) as error:  # TimeoutError is an OSError
            self._close()
            return type(error).__name__
        return good(status, body)

    async def _exchange(self, request: bytes) -> tuple[int, bytes]:
        if self._streams is None:
            self._streams = await asyncio.open_connection(*self._place, limit=REPLY_LIMIT)
        reader, writer = self._streams
        writer.write(request)
        await writer.drain()
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        status = int(head.split(b" ", 2)[1])
        if b"\r\ntransfer-encoding: chunked\r\n" in head:
            return status, b"".join([piece async for piece in _chunks(reader)])
        length = head.partition(b"content-length:")[2].partition(b"\r\n")[0]
        return status, await reader.readexactly(int(length))

    def _close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


async def _chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Yield the pieces of a chunked body (RFC 9112 7.1), to its end."""
    while size := int(await reader.readuntil(b"\r\n"), 16):
        yield await reader.readexactly(size)
        await reader.readexactly(2)
    await reader.readuntil(b"\r\n")


async def _silent(host: str, port: int, tally: LoadTally) -> None:
    """Connect and send nothing; again each time that the server ends it."""
    for again in itertools.count():
        tally.let_go += bool(again)
        with contextlib.suppress(OSError):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                await reader.read()
            finally:
                writer.close()


_START_S = 120.0
_END_S = 20.0


class HttpProcess:
    """``toolsrv`` with a command that serves HTTP on ``data_dir``, with default settings.

    A context manager; ``host``, ``port`` and ``token`` are known inside the context.
    """

    host = "127.0.0.1"

    def __init__(self, data_dir: Path, *command: str) -> None:
        self.token = secrets.token_urlsafe(32)
        self._command = " ".join(command[:2])
        self._reading: threading.Thread | None = None
        self.port = 0
        environment = {k: v for k, v in os.environ.items() if not k.startswith("TOOLSRV_")}
        self._process = subprocess.Popen(  # noqa: S603 - our own program
            [
                *(sys.executable, "-m", "toolsrv", "--data-dir", str(data_dir)),
                *command,
                *("--port", "0"),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=environment | {"TOOLSRV_TOKEN": self.token},
        )

    def __enter__(self) -> Self:
        try:
            self.port = self._port()
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def memory(self) -> Memory:
        """Return the process's memory."""
        return memory(self.pid)

    def cpu_seconds(self) -> float:
        """Return the processor time that it has used, 0.0 where that cannot be known."""
        try:
            times = psutil.Process(self._process.pid).cpu_times()
        except psutil.Error:
            return 0.0
        return float(times.user + times.system)

    def end(self) -> float:
        """End it as a service manager does, by force where that is not enough; return seconds."""
        started = time.perf_counter()
        self._process.terminate()
        try:
            self._process.wait(timeout=_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._reading is not None:
            self._reading.join(_END_S)
        elif self._process.stderr is not None:
            self._process.stderr.close()
        return time.perf_counter() - started

    def _port(self) -> int:
        """Read what the process says of its address."""
        pipe = self._process.stderr
        if pipe is None:
            raise TypeError("the process has no stderr")
        said = b""
        patience = threading.Timer(_START_S, self._process.kill)
        patience.start()
        while not (found := re.search(rb"http://127\.0\.0\.1:(\d+)/", said)):
            line = pipe.readline()  # a pipe of Windows cannot be waited for with a time limit
            if not line:
                patience.cancel()
                lines = said.decode("utf-8", "replace").strip().splitlines()
                raise DataError(
                    f"the server did not start{f': {lines[0][:300]}' if lines else ''}",
                    hint=f"run 'toolsrv {self._command}' by hand to see why",
                )
            said += line
        patience.cancel()
        self._reading = threading.Thread(target=_drain, args=(pipe,), daemon=True)
        self._reading.start()
        return int(found[1])


def _drain(pipe: IO[bytes]) -> None:
    """Read a pipe to its end, so that whoever writes to it never waits."""
    with pipe:
        for _ in pipe:
            continue


class WorldProcess(HttpProcess):
    """A world on ``data_dir`` in a mode."""

    def __init__(self, data_dir: Path, mode: str) -> None:
        super().__init__(data_dir, "world", "serve", "--mode", mode)


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
    report = measure(LoadPlan(rate, seconds, connections, silent), mode)
    emit(report, as_json=as_json)
    if not as_json:
        report_progress(f"errors: {report.details['errors'] or 'none'}")
        emit_machine(report)


def measure(plan: LoadPlan, mode: str) -> Report:
    """Put a world under load; for a replay each call is recorded first.

    Raises:
        DataError: the world did not start, or answered wrongly before there was any load.
    """
    before = machine()
    with scratch_folder() as folder:
        if mode == "replay":
            report_progress("world: recording")
            with WorldProcess(folder, "record") as process:
                _warm(process)
        with WorldProcess(folder, mode) as process:
            _warm(process)
            report_progress(f"world: {plan.rate:g} requests/s for {plan.seconds:g} s")
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
    tally = asyncio.run(_load(process, LoadPlan(50, len(_calls()) / 50, 1, 0)))
    if tally.errors:
        raise DataError(
            f"the world answers wrongly without any load: {dict(tally.errors)}",
            hint="run 'toolsrv world serve' by hand to see why",
        )


async def _load(process: WorldProcess, plan: LoadPlan) -> LoadTally:
    requests = [_request(process, call) for call in _calls()]
    return await run_load(process.host, process.port, requests, plan, _wrong)


def _figures(tally: LoadTally) -> dict[str, Figure]:
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


def _each(total: float, tally: LoadTally) -> list[float]:
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
