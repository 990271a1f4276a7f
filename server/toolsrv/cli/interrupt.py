"""Ctrl-C and SIGTERM: work that stops stays stopped, and is told as interrupted.

During asynchronous work the first asks it to stop, the second ends the process. The work gets
``GRACE_S`` seconds to hand over what it has; after that nobody waits for it. An event loop that
something holds up for ``STUCK_S`` seconds more hears neither, and the process ends all the same.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
from collections.abc import Awaitable, Callable, Iterator
from types import FrameType
from typing import TypeVar

T = TypeVar("T")

GRACE_S = 0.9
STUCK_S = 3.0
EXIT_CODE = 130


async def stoppable(
    work: Awaitable[T], *, ask: Callable[[], None], at_once: Callable[[], None]
) -> tuple[T | None, bool]:
    """Wait for ``work``; return its result and whether it was interrupted.

    The first SIGINT or SIGTERM calls ``ask``; the result is ``None`` when the work does not end
    within ``GRACE_S`` after it. A second calls ``at_once`` and ends the process with code 130.
    """
    loop = asyncio.get_running_loop()
    interrupted = asyncio.Event()

    def on_interrupt() -> None:
        if interrupted.is_set():
            at_once()
            os._exit(EXIT_CODE)
        interrupted.set()
        ask()

    armed = False

    def on_signal(_signal: int, _frame: FrameType | None) -> None:
        nonlocal armed
        if not armed:  # else whoever keeps pressing Ctrl-C would put the end off
            armed = True
            signal.setitimer(signal.ITIMER_REAL, GRACE_S + STUCK_S)

    def on_stuck(_signal: int, _frame: FrameType | None) -> None:
        at_once()
        os._exit(EXIT_CODE)

    before = signal.signal(signal.SIGALRM, on_stuck)
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_interrupt)
        signal.signal(number, on_signal)  # the loop's own does nothing but wake it
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
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        with contextlib.suppress(NotImplementedError):
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Let a Ctrl-C in the block come out as KeyboardInterrupt, whatever a library makes of it.

    A KeyboardInterrupt that is raised while compiled code calls back into Python comes out of
    some libraries as an error of their own.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    asked = False

    def on_interrupt(_signal: int, _frame: FrameType | None) -> None:
        nonlocal asked
        asked = True
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield
    except Exception as error:
        if asked:
            raise KeyboardInterrupt from error
        raise
    finally:
        signal.signal(signal.SIGINT, before)
