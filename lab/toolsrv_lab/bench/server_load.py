"""Parts of ``toolsrv bench server`` beyond the start: load, a full queue, endurance.

Load: searches offered at fixed rates by many sessions over HTTP. Queue: more solves at once than
work at a time. Endurance: many calls and solves in a row, with memory and file handles on the way.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

from toolsrv_lab.bench.report import Figure, figure, handles, percentile, report_progress, share
from toolsrv_lab.bench.stdio_server import NEW_ERA, OLD_ERA, ServerProcess
from toolsrv_lab.bench.texts import TASKS, queries
from toolsrv_lab.bench.world import HttpProcess, LoadPlan, LoadTally, run_load
from toolsrv_registry.errors import DataError

HASTY = b"ordered by the ranker alone"
"""In the notes of a search that left the matcher out, as the server is busy."""
REFUSED = b"the server is busy with other"
"""In the error of a search that was refused, as too many wait."""
TIMES = (1, 2, 4)
"""The offered rates, as multiples of the one that is asked for."""
WORKING, QUEUED = 4, 20
"""Solves that work at once by default, and those behind them."""
SAMPLES = 20
"""Looks at memory and handles during a part of the endurance, in equal distances."""
_QUERIES = 331
"""Not a multiple of the sessions, so that a session asks different things."""
_SETTLE_S = 2.0
_QUEUE_S = 600.0
_CITIES = ("Peru", "Japan", "Norway", "Egypt", "France", "India", "Italy", "Germany")
Figures = dict[str, Figure]


class SessionServer(HttpProcess):
    """An MCP server on HTTP, and requests of its sessions."""

    def __init__(self, data_dir: Path) -> None:
        super().__init__(data_dir, "serve", "--http")

    def request(self, number: int, method: str, session: str = "", /, **params: Any) -> bytes:
        """Return a whole request with its id, of a session where one is named."""
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        body = json.dumps(message).encode()
        lines = [
            "POST /mcp HTTP/1.1",
            f"Host: {self.host}:{self.port}",
            f"Authorization: Bearer {self.token}",
            "Accept: application/json, text/event-stream",
            "Content-Type: application/json",
            f"Content-Length: {len(body)}",
        ]
        if session:
            lines += [f"Mcp-Session-Id: {session}", f"Mcp-Protocol-Version: {OLD_ERA}"]
        return "\r\n".join([*lines, "", ""]).encode() + body

    async def open_session(self) -> str:
        """Open a session and return its id.

        Raises:
            DataError: the server gives none.
        """
        client = {"name": "toolsrv-bench", "version": "1"}
        hello = self.request(
            0, "initialize", protocolVersion=OLD_ERA, capabilities={}, clientInfo=client
        )
        reader, writer = await asyncio.open_connection(self.host, self.port)
        try:
            writer.write(hello)
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        finally:
            writer.close()
        for line in head.splitlines():
            name, _, value = line.partition(":")
            if name.lower() == "mcp-session-id":
                return value.strip()
        raise DataError(f"the server opened no session: {head.splitlines()[0]}")


class Searches(Sequence[bytes]):
    """Searches of sessions in turn, an endless list: no two have the same id."""

    def __init__(
        self, process: SessionServer, sessions: Sequence[str], texts: Sequence[str]
    ) -> None:
        self._process = process
        self._sessions = sessions
        self._texts = texts

    def __len__(self) -> int:
        return sys.maxsize

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | Sequence[bytes]:
        """Return the request of a number."""
        if isinstance(index, slice):
            return [self[one] for one in range(*index.indices(len(self)))]
        session = self._sessions[index % len(self._sessions)]
        query = {"query": self._texts[index % len(self._texts)]}
        return self._process.request(
            index, "tools/call", session, name="search_apis", arguments=query
        )


def load_figures(folder: Path, plan: LoadPlan) -> tuple[Figures, dict[str, Any]]:
    """Offer searches at one, two and four times a rate; return figures and the errors by kind.

    Each of ``plan.connections`` is a session of its own. A search is timed from when it was due.

    Raises:
        DataError: the server did not start, or does not answer a search without any load.
    """
    figures: Figures = {}
    errors: dict[str, Any] = {}
    with SessionServer(folder) as process:
        requests = asyncio.run(_searches(process, plan.connections))
        _search_all(process, requests, LoadPlan(20, 1, 1, 0))  # what a search needs is loaded
        for times in TIMES:
            offered = LoadPlan(plan.rate * times, plan.seconds, plan.connections, 0)
            report_progress(f"server: {offered.rate:g} searches/s for {offered.seconds:g} s")
            used, replies = process.cpu_seconds(), Replies()
            tally = asyncio.run(_run(process, requests, offered, replies))
            used = process.cpu_seconds() - used
            figures |= _tally_figures(f"{offered.rate:g}/s", times, tally, used, replies)
            errors[f"{offered.rate:g}/s"] = dict(tally.errors)
            time.sleep(_SETTLE_S)
        memory = process.memory()
        figures["load_memory"] = figure("memory after the load", "MiB", [memory.resident])
    return figures, errors


async def _searches(process: SessionServer, sessions: int) -> Searches:
    from toolsrv_catalogs.offline import load_offline_catalog  # noqa: PLC0415 - heavy

    ids = [await process.open_session() for _ in range(sessions)]
    return Searches(process, ids, queries(load_offline_catalog().apis, _QUERIES, 0))


async def _run(
    process: SessionServer, requests: Searches, plan: LoadPlan, replies: Replies
) -> LoadTally:
    return await run_load(process.host, process.port, requests, plan, replies.check)


def _search_all(process: SessionServer, requests: Searches, plan: LoadPlan) -> None:
    tally = asyncio.run(_run(process, requests, plan, Replies()))
    if tally.errors:
        raise DataError(
            f"the server does not answer a search: {dict(tally.errors)}",
            hint="try one with 'toolsrv search'",
        )


@dataclass(slots=True)
class Replies:
    """Replies that are looked through; ``hasty`` counts searches that left the matcher out."""

    hasty: int = 0

    def check(self, status: int, body: bytes) -> str:
        """Return what is wrong with a reply, "" for nothing."""
        if status != 200:
            return f"HTTP status {status}"
        if b'"isError":true' in body:
            return "busy" if REFUSED in body else "a tool error"
        self.hasty += HASTY in body
        return "" if b'"structuredContent":' in body else "no result"


def _tally_figures(
    rate: str, times: int, tally: LoadTally, cpu_s: float, replies: Replies
) -> Figures:
    ordered = sorted(1000 * one for one in tally.latencies)
    found = {}
    for percent in (50, 95, 99):
        value = [percentile(ordered, percent)] if ordered else []
        found[f"load_{times}x_p{percent}"] = figure(f"search at {rate}, p{percent}", "ms", value)
    answered = len(ordered) / tally.seconds if tally.seconds else None
    each = 1000 * cpu_s / len(ordered) if ordered and cpu_s else None
    hasty = share(replies.hasty, len(ordered))
    return found | {
        f"load_{times}x_max": figure(f"search at {rate}, slowest", "ms", ordered[-1:]),
        f"load_{times}x_rate": figure(f"answered at {rate}", "1/s", [answered]),
        f"load_{times}x_errors": figure(f"errors at {rate}", "", [tally.errors.total()]),
        f"load_{times}x_cpu": figure(f"CPU of a search at {rate}", "ms", [each]),
        f"load_{times}x_hasty": figure(f"without the matcher at {rate}", "%", [hasty]),
    }


def queue_figures(folder: Path) -> tuple[Figures, dict[str, Any]]:
    """Start more solves at once than work at a time; return how long they took, and positions.

    Raises:
        DataError: the server refused one, or one did not come to an end.
    """
    with ServerProcess(folder, era=NEW_ERA, patience_s=_QUEUE_S) as process:
        process.open()
        report_progress(f"server: {WORKING + QUEUED} solves at once")
        began = process.seconds()
        runs = [
            _view(process, "solve_task", task=TASKS[number % len(TASKS)], wait_s=0)
            for number in range(WORKING + QUEUED)
        ]
        positions = [int(one["queue_position"]) for one in runs]
        ends, statuses = [], []
        for one in runs:
            ended = _view(process, "get_run", run_id=one["run_id"], wait_s=_QUEUE_S / 2)
            if ended["status"] in {"queued", "working"}:
                raise DataError(f"a solve did not end within {_QUEUE_S / 2:g} s")
            ends.append(process.seconds() - began)
            statuses.append(str(ended["status"]))
    figures = {
        "queue_position": figure("place in the queue, the last solve's", "", [positions[-1]]),
        "queue_first": figure("the first solve's end", "s", ends[:1]),
        "queue_last": figure(f"the end of all {len(runs)} solves", "s", ends[-1:]),
    }
    return figures, {"positions": positions, "statuses": statuses}


@dataclass(frozen=True, slots=True)
class Sample:
    """Resident memory (MiB) and open handles of a process after ``count`` requests."""

    count: int
    memory: float | None
    handles: int | None


def endurance_figures(folder: Path, calls: int, solves: int) -> tuple[Figures, dict[str, Any]]:
    """Make calls and solves in a row on one server; return growth beyond the first quarter.

    Raises:
        DataError: the server ended or refused one.
    """
    with ServerProcess(folder, era=NEW_ERA, patience_s=_QUEUE_S) as process:
        process.open()
        _view(process, "solve_task", task=TASKS[0], wait_s=_QUEUE_S)

        def call(number: int) -> None:
            country = _CITIES[number % len(_CITIES)]
            arguments = {"id": "Data/country_facts/capital_city", "arguments": {"country": country}}
            _view(process, "call_api", **arguments)

        def solve(number: int) -> None:
            _view(process, "solve_task", task=TASKS[number % len(TASKS)], wait_s=_QUEUE_S)

        report_progress(f"server: {calls:,} calls in a row")
        called = list(_endured(process, call, calls))
        report_progress(f"server: {solves:,} solves in a row")
        solved = list(_endured(process, solve, solves))
    figures = _growth("calls", called) | _growth("solves", solved)
    rows = {"calls": called, "solves": solved}
    return figures, {
        name: [(one.count, one.memory, one.handles) for one in samples]
        for name, samples in rows.items()
    }


def _endured(process: ServerProcess, work: Callable[[int], None], count: int) -> Iterator[Sample]:
    step = max(1, count // SAMPLES)
    for number in range(count):
        work(number)
        if (number + 1) % step == 0:
            yield Sample(number + 1, process.memory().resident, handles(process.pid))


def _growth(what: str, samples: list[Sample]) -> Figures:
    """Return what a process grew by after the first quarter, in which caches fill."""
    if not samples:
        return {}
    first, last = samples[len(samples) // 4], samples[-1]
    known = first.memory is not None and last.memory is not None
    memory = [(last.memory or 0.0) - (first.memory or 0.0)] if known else []
    opened = (
        [last.handles - first.handles]
        if last.handles is not None and first.handles is not None
        else []
    )
    title = f"{last.count:,} {what} in a row"
    return {
        f"{what}_memory": figure(f"memory after {title}", "MiB", [last.memory]),
        f"{what}_memory_growth": figure(f"memory growth in {title}", "MiB", memory),
        f"{what}_handles": figure(f"file handles after {title}", "", [last.handles]),
        f"{what}_handles_growth": figure(f"growth of file handles in {title}", "", opened),
    }


def _view(process: ServerProcess, tool: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool and return its typed result.

    Raises:
        DataError: it is an error.
    """
    result = process.request("tools/call", name=tool, arguments=arguments)
    view = result.get("structuredContent")
    if result.get("isError") or not isinstance(view, dict):
        said = (result.get("content") or [{}])[0].get("text", "no result")
        raise DataError(f"{tool} failed: {str(said)[:300]}", hint="try it with 'toolsrv'")
    return view
