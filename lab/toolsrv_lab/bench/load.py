"""Load on an HTTP server: requests at a fixed rate, timed from when each was due.

A server that falls behind cannot hide it: a request that had to wait for a free connection counts
from the moment at which it should have been sent. Speaks HTTP by hand, so that the client costs
little of the machine that it measures. Knows nothing of what is served.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Self

REPLY_LIMIT = 1 << 20
PATIENCE_S = 30.0
"""Seconds for one reply; then it counts as an error."""
_LEAD_S = 0.2

Good = Callable[[int, bytes], str]
"""From a reply's status and body to what is wrong with it, "" for nothing."""


@dataclass(frozen=True, slots=True)
class Plan:
    """``rate`` requests a second for ``seconds`` over ``connections``; ``silent`` more say nothing."""

    rate: float
    seconds: float
    connections: int
    silent: int


@dataclass(slots=True)
class Tally:
    """What came of it: seconds of every answered request, errors by kind, silent clients let go."""

    latencies: list[float] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    let_go: int = 0
    seconds: float = 0.0


async def load(
    host: str,
    port: int,
    requests: Sequence[bytes],
    plan: Plan,
    good: Good,
) -> Tally:
    """Send whole requests (head and body), in turn."""
    tally = Tally()
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

    async def ask(self, request: bytes, good: Good) -> str:
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
        length = head.partition(b"content-length:")[2].partition(b"\r\n")[0]
        return int(head.split(b" ", 2)[1]), await reader.readexactly(int(length))

    def _close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


async def _silent(host: str, port: int, tally: Tally) -> None:
    """Connect and send nothing; again each time that the server ends it."""
    for again in itertools.count():
        tally.let_go += bool(again)
        with contextlib.suppress(OSError):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                await reader.read()
            finally:
                writer.close()
