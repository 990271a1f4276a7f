"""The load on a world: requests on time, errors counted, silent clients beside; run for real."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator

import pytest
from click.testing import CliRunner

from toolsrv_lab.bench import bench
from toolsrv_lab.bench.world import LoadPlan, LoadTally, run_load

REQUEST = b"POST /%d HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"
REPLY = b"HTTP/1.1 %d Said\r\nContent-Length: 2\r\n\r\nok"


def wrong(status: int, body: bytes) -> str:
    return "" if (status, body) == (200, b"ok") else f"status {status}"


@contextlib.asynccontextmanager
async def server(*, status: int = 200, drop_every: int = 0) -> AsyncIterator[tuple[int, list[int]]]:
    """Answer requests, every n-th with the end of the connection; let go of the silent at once."""
    asked: list[int] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, TimeoutError, ConnectionError):
            while True:
                async with asyncio.timeout(0.2):
                    head = await reader.readuntil(b"\r\n\r\n")
                asked.append(int(head[6:].split(b" ")[0]))
                if drop_every and len(asked) % drop_every == 0:
                    break
                writer.write(REPLY % status)
        writer.close()

    running = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with running:
        yield running.sockets[0].getsockname()[1], asked


def loaded(
    plan: LoadPlan, *, status: int = 200, drop_every: int = 0
) -> tuple[LoadTally, list[int]]:
    async def work() -> tuple[LoadTally, list[int]]:
        async with server(status=status, drop_every=drop_every) as (port, asked):
            requests = [REQUEST % number for number in range(7)]
            return await run_load("127.0.0.1", port, requests, plan, wrong), asked

    return asyncio.run(work())


def test_every_request_is_sent_once_and_timed_from_when_it_was_due() -> None:
    tally, asked = loaded(LoadPlan(rate=100, seconds=0.5, connections=4, silent=0))
    assert len(tally.latencies) == 50
    assert sorted(asked) == sorted(number % 7 for number in range(50))
    assert tally.seconds >= 0.45
    assert min(tally.latencies) >= 0
    assert not tally.errors


def test_silent_clients_come_again_when_they_are_let_go() -> None:
    tally, _ = loaded(LoadPlan(rate=50, seconds=1, connections=2, silent=5))
    assert tally.let_go >= 5
    assert not tally.errors


def test_wrong_replies_and_lost_connections_are_counted() -> None:
    tally, _ = loaded(LoadPlan(rate=100, seconds=0.1, connections=2, silent=0), status=503)
    assert tally.errors == {"status 503": 10}
    tally, _ = loaded(LoadPlan(rate=100, seconds=0.1, connections=1, silent=0), drop_every=5)
    assert tally.errors.total() == 2
    assert len(tally.latencies) == 8


@pytest.mark.nightly
def test_a_world_is_measured_as_a_process() -> None:
    words = ["world", "--seconds", "0.2", "--rate", "20", "--silent", "3", "--json"]
    result = CliRunner().invoke(bench, words, catch_exceptions=False)
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert found["figures"]["answered"]["median"] == 4
    assert found["figures"]["errors"]["median"] == 0
    assert found["figures"]["p99"]["median"] > 0
    assert found["options"]["mode"] == "replay"


def test_the_command_has_help_with_an_example() -> None:
    assert "toolsrv bench world" in CliRunner().invoke(bench, ["world", "--help"]).stdout
