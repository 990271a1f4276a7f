"""One real task through a registered entry: the server is started as the client starts it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from toolsrv.clients.handshake import session
from toolsrv.clients.started import Start
from toolsrv_registry.errors import DataError

TASK = "What is the complementary color of teal?"
"""Answered by the catalog that ships, without the network."""
CALL_S = 60.0
TASK_S = 300.0
WAIT_S = 20
_GOING = ("queued", "working")


def solve_through(start: Start, task: str, say: Callable[[str], None]) -> dict[str, Any]:
    """Return the ended run of a task: what ``solve_task`` or ``get_run`` said last. Blocks.

    Raises:
        DataError: the server fails, or the run does not end within ``TASK_S``.
    """
    end = time.monotonic() + TASK_S
    with session(start) as server:
        server.open("2025-11-25")
        run = server.call("solve_task", {"task": task, "wait_s": WAIT_S}, CALL_S)
        while run.get("status") in _GOING:
            if time.monotonic() > end:
                raise DataError(
                    f"the task is not done after {TASK_S:g} seconds",
                    hint="choose a smaller model: toolsrv setup --again model",
                )
            say(f"{run.get('status')}: {run.get('phase') or 'begun'}")
            asked = {"run_id": run.get("run_id"), "wait_s": WAIT_S}
            run = server.call("get_run", asked, CALL_S)
    return run
