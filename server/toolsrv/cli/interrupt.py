"""Ctrl-C during asynchronous work: the first asks it to stop, the second ends the process.

The work gets ``GRACE_S`` seconds to hand over what it has; after that nobody waits for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

GRACE_S = 0.9
EXIT_CODE = 130


async def stoppable(
    work: Awaitable[T], *, ask: Callable[[], None], at_once: Callable[[], None]
) -> tuple[T | None, bool]:
    """Wait for ``work``; return its result and whether it was interrupted.

    The first SIGINT calls ``ask``; the result is ``None`` when the work does not end within
    ``GRACE_S`` after it. A second SIGINT calls ``at_once`` and ends the process with code 130.
    """
    loop = asyncio.get_running_loop()
    interrupted = asyncio.Event()

    def on_interrupt() -> None:
        if interrupted.is_set():
            at_once()
            os._exit(EXIT_CODE)
        interrupted.set()
        ask()

    loop.add_signal_handler(signal.SIGINT, on_interrupt)
    task = asyncio.ensure_future(work)
    watch = asyncio.create_task(interrupted.wait())
    try:
        await asyncio.wait({task, watch}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            await asyncio.wait({task}, timeout=GRACE_S)
        if task.done():
            return task.result(), interrupted.is_set()
        return None, True
    finally:
        watch.cancel()
        with contextlib.suppress(NotImplementedError):
            loop.remove_signal_handler(signal.SIGINT)
