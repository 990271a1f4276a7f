"""What a server bears: searches of many sessions, a queue of solves, growth; run for real, briefly."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator

import pytest
from click.testing import CliRunner

from toolsrv_lab.bench import bench
from toolsrv_lab.bench.server_load import QUEUED, WORKING
from toolsrv_lab.bench.world import LoadPlan, LoadTally, run_load

REQUEST = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"


@contextlib.asynccontextmanager
async def chunked(*pieces: bytes) -> AsyncIterator[int]:
    """Answer every request with a chunked body."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                for piece in (*pieces, b""):
                    writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                    await writer.drain()
        writer.close()

    running = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with running:
        yield running.sockets[0].getsockname()[1]


def test_a_chunked_reply_is_read_whole_and_the_connection_kept() -> None:
    bodies: list[bytes] = []

    def good(_status: int, body: bytes) -> str:
        bodies.append(body)
        return ""

    async def work() -> LoadTally:
        async with chunked(b"data: 1\r\n", b"\r\n\r\n", b"x" * 300) as port:
            plan = LoadPlan(rate=100, seconds=0.05, connections=1, silent=0)
            return await run_load("127.0.0.1", port, [REQUEST], plan, good)

    assert len(asyncio.run(work()).latencies) == 5
    assert bodies == [b"data: 1\r\n\r\n\r\n" + b"x" * 300] * 5


@pytest.mark.nightly
def test_load_queue_and_endurance_are_measured_on_servers() -> None:
    words = [
        *("server", "--part", "load", "--part", "queue", "--part", "endurance", "--json"),
        *("--rate", "4", "--sessions", "3", "--seconds", "1", "--calls", "20", "--solves", "2"),
    ]
    result = CliRunner().invoke(bench, words, catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    figures = found["figures"]
    for times in (1, 2, 4):
        assert figures[f"load_{times}x_errors"]["max"] == 0, found["details"]
        assert figures[f"load_{times}x_p50"]["max"] <= figures[f"load_{times}x_p99"]["max"]
    positions = found["details"]["queue"]["positions"]
    assert len(positions) == len(found["details"]["queue"]["statuses"]) == WORKING + QUEUED
    assert max(positions) > 1
    assert figures["queue_first"]["max"] <= figures["queue_last"]["max"]
    assert [row[0] for row in found["details"]["endurance"]["calls"]] == list(range(1, 21))
    assert figures["calls_handles_growth"]["max"] <= 2
    assert figures["solves_memory"]["max"] > 0
    assert found["options"] == {
        "rate": 4.0, "sessions": 3, "seconds": 1.0, "calls": 20, "solves": 2,
    }  # fmt: skip
