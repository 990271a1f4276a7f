"""Runs as tasks: a run's handle is its task's id, so that a lost client finds it again.

A run that this process has in memory, or one that is kept on disk, is a task whoever began it.
"""

from __future__ import annotations

from typing import Any

from toolsrv.mcp_server.call_resources import CallFiles
from toolsrv.mcp_server.following import run_result
from toolsrv.mcp_server.resources import EndedRuns
from toolsrv.mcp_server.tasks_extension import task_document, timestamp, wire
from toolsrv.runs.queue import Run, Runs
from toolsrv.runs.records import RunRecord, record_of
from toolsrv.views.runs import phase, record_view
from toolsrv_registry.errors import ToolsrvError


class RunTasks:
    """The runs of one server, and those that are kept, as tasks (``EarlierTasks``)."""

    def __init__(self, runs: Runs, kept: EndedRuns, files: CallFiles) -> None:
        """Take the runs, those that are kept, and the files that their calls brought."""
        self._runs = runs
        self._kept = kept
        self._files = files

    async def get(self, task_id: str) -> dict[str, Any] | None:
        """Return a run as a task; None where there is no such run."""
        run = self._kept.remembered(task_id)
        if run is not None:
            return self._live(run) if run.live else self._ended(record_of(run), run)
        try:
            record = await self._kept.record(task_id)
        except ToolsrvError:  # there is none, or the store cannot be read
            return None
        return self._ended(record)

    async def cancel(self, task_id: str) -> bool:
        """Ask a run to stop; an ended one stays as it is."""
        if self._kept.remembered(task_id) is not None:
            self._runs.cancel(task_id)
            return True
        return await self.get(task_id) is not None

    def _live(self, run: Run) -> dict[str, Any]:
        started = timestamp(run.started)
        message = phase(run, self._runs.position(run))
        return task_document(run.id, "working", started, started, message=message)

    def _ended(self, record: RunRecord, run: Run | None = None) -> dict[str, Any]:
        end = timestamp(record.ended)
        created = end if run is None else timestamp(run.started)
        if record.status == "cancelled":
            return task_document(record.id, "cancelled", created, end, message=_CANCELLED)
        document = task_document(record.id, "completed", created, end)
        view = self._files.of_run(record_view(record))
        return {**document, "result": wire(run_result(view))}


_CANCELLED = "stopped; get_run with this id has what was found until then"
