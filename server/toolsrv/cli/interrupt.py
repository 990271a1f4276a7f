"""Ctrl-C, SIGTERM and SIGHUP: cancel the work and exit with the code of the signal.

During asynchronous work the first asks it to stop, a second Ctrl-C ends the process. The work gets
``GRACE_S`` seconds to hand over what it has; after that nobody waits for it. An event loop that
something holds up for ``STUCK_S`` seconds more hears neither, and the process ends all the same.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from types import FrameType
from typing import TypeVar

from toolsrv.signals import Interrupted, active_signals, exit_code

T = TypeVar("T")

Arm = Callable[[float], object]
"""Sets a timer to so many seconds."""

GRACE_S = 0.9
STUCK_S = 3.0
AGAIN_S = 1.0
SAY_S = 1.0


async def stoppable(
    work: Awaitable[T], *, ask: Callable[[int], None], at_once: Callable[[], None]
) -> tuple[T | None, int]:
    """Wait for ``work``; return its result and the signal that interrupted it, 0 for none.

    The first SIGINT, SIGTERM or SIGHUP calls ``ask`` with its number; the result is ``None`` when
    the work does not end within ``GRACE_S`` after it. A further SIGINT calls ``at_once`` and ends
    the process; the others come twice without anybody's impatience, as from a closing terminal.
    """
    loop = asyncio.get_running_loop()
    interrupted = asyncio.Event()
    first = 0

    def on_interrupt(number: int) -> None:
        nonlocal first
        first = first or number
        if not interrupted.is_set():
            interrupted.set()
            ask(number)
        elif number == signal.SIGINT:
            at_once()
            os._exit(exit_code(number))

    def on_signal(number: int, _frame: FrameType | None) -> None:
        nonlocal first
        if not first:  # else whoever keeps pressing Ctrl-C would put the end off
            first = number
            arm(GRACE_S + STUCK_S)
        loop.call_soon_threadsafe(on_interrupt, number)

    arm, disarm = _timer(at_once, lambda: os._exit(exit_code(first)))
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, *active_signals())}
    for number in before:
        with contextlib.suppress(NotImplementedError):  # Windows' loops wake up without
            loop.add_signal_handler(number, _nothing)  # it wakes the loop
        signal.signal(number, on_signal)
    task = asyncio.ensure_future(work)
    watch = asyncio.create_task(interrupted.wait())
    try:
        await asyncio.wait({task, watch}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            await asyncio.wait({task}, timeout=GRACE_S)
        if task.done():
            return task.result(), first
        return None, first
    finally:
        watch.cancel()
        disarm()
        for number, handler in before.items():
            try:
                loop.remove_signal_handler(number)
            except NotImplementedError:
                signal.signal(number, handler)


def _nothing() -> None:
    pass


def _timer(
    say: Callable[[], object], leave: Callable[[], object]
) -> tuple[Arm, Callable[[], object]]:
    """Return what arms a timer that interrupts a stuck main thread, and what disarms it."""
    if sys.platform != "win32" and hasattr(signal, "SIGALRM"):
        before = signal.signal(signal.SIGALRM, lambda _signal, _frame: (say(), leave()))

        def disarm() -> None:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

        return lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds), disarm
    timers: list[threading.Timer] = []

    def start(seconds: float, *calls: Callable[[], object]) -> None:
        timer = threading.Timer(seconds, lambda: [call() for call in calls])
        timer.daemon = True
        timer.start()
        timers.append(timer)

    def arm(seconds: float) -> None:
        start(seconds, say, leave)
        start(seconds + SAY_S, leave)  # where the stuck thread holds a lock that ``say`` needs

    def cancel() -> None:
        for timer in timers:
            timer.cancel()

    return arm, cancel


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Let a Ctrl-C in the block come out as KeyboardInterrupt, whatever a library makes of it.

    A KeyboardInterrupt that is raised while compiled code calls back into Python comes out of
    some libraries as an error of their own. SIGTERM and SIGHUP do what Ctrl-C does.

    Raises:
        Interrupted: SIGTERM or SIGHUP ended the block.
    """
    with signals_as_ctrl_c(), _insisting():
        yield


@contextlib.contextmanager
def signals_as_ctrl_c() -> Iterator[None]:
    """Let SIGTERM and SIGHUP do in the block what Ctrl-C does there, so that it is left tidy.

    Raises:
        Interrupted: one of them ended it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    first, since = 0, 0.0

    def on_end(number: int, _frame: FrameType | None) -> None:
        nonlocal first, since
        if first and time.monotonic() < since + AGAIN_S:
            return  # a closing terminal sends two: the second would break into the tidying
        first, since = number, time.monotonic()
        if not callable(signal.getsignal(signal.SIGINT)):  # ignored, as behind a shell's &
            raise KeyboardInterrupt
        signal.raise_signal(signal.SIGINT)

    def on_late(number: int, _frame: FrameType | None) -> None:
        if time.monotonic() >= since + AGAIN_S:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)

    numbers = active_signals()
    for one in numbers:
        signal.signal(one, on_end)
    try:
        yield
    except KeyboardInterrupt as error:
        if first:
            raise Interrupted(first) from error
        raise
    finally:
        for one in numbers:  # the second of two may come when the block has ended already
            signal.signal(one, on_late if first else signal.SIG_DFL)


@contextlib.contextmanager
def _insisting() -> Iterator[None]:
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
