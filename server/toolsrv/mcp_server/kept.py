"""Ended runs as the MCP server finds them again: in memory while it remembers, else on disk.

A handle is asked for whole: unlike on a person's own terminal, no beginning of it and no "last".
"""

from __future__ import annotations

import logging
from pathlib import Path

from toolsrv.background import in_thread
from toolsrv.earlier_runs import earlier_runs
from toolsrv.mcp_server.run_list import RunLine, run_lines
from toolsrv.response_page import ResponsePage, no_response, response_page
from toolsrv.run_record import RunRecord, record_of, response_text
from toolsrv.run_store import RUNS_FILE, RunRow, RunStore, keep_run
from toolsrv.runs import Run, Runs
from toolsrv_registry.errors import NotFoundError, UsageError
from toolsrv_runtime.contract.earlier import Earlier

log = logging.getLogger(__name__)
SEARCHED = 1_000
"""Kept runs that are looked through."""
RESPONSE_URI = "toolsrv://runs/{run_id}/responses/{node}{?offset,limit}"


class Kept:
    """The ended runs of one server, and of all before it in the same data folder."""

    def __init__(self, runs: Runs, folder: Path) -> None:
        self._runs = runs
        self._folder = folder

    def remembered(self, run_id: str) -> Run | None:
        """Return a run that this server has in memory, ended or not."""
        try:
            return self._runs.get(run_id)
        except NotFoundError:
            return None

    def position(self, run: Run) -> int:
        """Return how many runs must end before this one begins."""
        return self._runs.position(run)

    async def recent(self, limit: int, words: str = "") -> list[RunLine]:
        """Return live runs, then ended ones, the newest first; those whose task has all ``words``.

        Raises:
            DataError: The store cannot be used.
        """
        rows = await in_thread(self._rows)
        return run_lines(self._runs.all(), rows, words, limit)

    async def record(self, run_id: str) -> RunRecord:
        """Return an ended run.

        Raises:
            NotFoundError: No such run is kept.
            UsageError: The run has not ended.
            DataError: The store cannot be used.
        """
        run = self.remembered(run_id)
        if run is None:
            return await in_thread(lambda: self._stored(run_id))
        if run.live:
            raise UsageError(f"{run.id} has not ended yet", hint="wait for it with get_run")
        return record_of(run)

    async def earlier(self, run_id: str) -> tuple[Earlier, ...]:
        """Return a run, and those that it went on from, for a task that goes on from it.

        Raises:
            NotFoundError: No such run is kept.
            UsageError: The run has not ended, or found nothing.
            DataError: The store cannot be used.
        """
        await self.record(run_id)
        held = {run.id: record_of(run) for run in self._runs.all() if not run.live}

        def get(wanted: str) -> RunRecord:
            if wanted in held:
                return held[wanted]
            with RunStore.open_to_read(self._folder) as store:
                return store.whole(wanted)

        return await in_thread(lambda: earlier_runs(get, run_id))

    async def response(self, run_id: str, node: int, offset: int, limit: int) -> ResponsePage:
        """Return the response of a node's call, ``limit`` characters from ``offset`` on.

        Raises:
            NotFoundError: No such run, or the node made no call.
            UsageError: The run has not ended.
        """
        record = await self.record(run_id)
        if self.remembered(run_id) is None:
            return await in_thread(lambda: self._page(run_id, node, offset, limit))
        found = record.evidence(node)
        if found is None:
            raise no_response(record, node)
        text = response_text(found)
        part = text[offset : offset + limit]
        return response_page(run_id, node, found, part, offset, len(text), len(text))

    def _rows(self) -> list[RunRow]:
        if not (self._folder / RUNS_FILE).exists():
            return []
        with RunStore.open_to_read(self._folder) as store:
            return store.recent(SEARCHED)

    def _stored(self, run_id: str) -> RunRecord:
        with RunStore.open_to_read(self._folder) as store:
            return store.get(run_id, whole=True)

    def _page(self, run_id: str, node: int, offset: int, limit: int) -> ResponsePage:
        with RunStore.open_to_read(self._folder) as store:
            return store.response(run_id, node, offset=offset, limit=limit)


async def keep(run: Run, folder: Path, most: int) -> None:
    """Keep an ended run on disk; what prevents it goes to the log."""
    record = record_of(run)
    if warning := await in_thread(lambda: keep_run(folder, record, most)):
        log.warning(warning)
