"""Threads: blocking work beside the event loop, parts that are built once.

``in_thread`` uses daemon threads, because loading a model or building an index must never keep a
process alive that its user or its client wants to end (an executor's threads would). Idle ones are
used again: whoever starts a thread waits until it runs, and an event loop has no time for that.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from toolsrv_registry.errors import UsageError

T = TypeVar("T")


async def in_thread(work: Callable[[], T], name: str = "toolsrv-work") -> T:
    """Run ``work`` in a thread that does nothing else, and return its result or raise its error.

    When the waiting task is cancelled the thread runs on and its result is dropped.
    """
    return await start_in_thread(work, name)


def start_in_thread(work: Callable[[], T], name: str = "toolsrv-work") -> asyncio.Future[T]:
    """Start ``work`` in a thread that does nothing else, and return the future of its result.

    The future is done once the thread has ended its work, unless somebody cancels it before.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def finish(result: T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]  # None only where T allows it

    def run() -> None:
        result: T | None = None
        failure: BaseException | None = None
        try:
            result = work()
        except StopIteration as error:  # no future takes one
            failure = RuntimeError("the work raised StopIteration")
            failure.__cause__ = error
        except BaseException as error:  # noqa: BLE001 - handed over to the waiting task, whole
            failure = error
        with contextlib.suppress(RuntimeError):  # the loop may be gone: nobody waits any more
            loop.call_soon_threadsafe(finish, result, failure)

    _WORKERS.start(run, name)
    return future


IDLE_S = 10.0
"""Seconds after which a thread without work ends."""
MOST_IDLE = 8
_Work = tuple[Callable[[], None], str]


class Workers:
    """Daemon threads, one for each work that is under way, used again for ``IDLE_S`` seconds."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle = 0
        """Threads that wait for work, without those that work is on its way to."""
        self._queue: queue.SimpleQueue[_Work] = queue.SimpleQueue()

    def start(self, work: Callable[[], None], name: str) -> None:
        """Have work done at once, under the name; it must not raise."""
        with self._lock:
            waits = self._idle > 0
            self._idle -= waits
        if waits:
            self._queue.put((work, name))
        else:
            threading.Thread(target=self._serve, args=(work, name), name=name, daemon=True).start()

    def _serve(self, work: Callable[[], None], name: str) -> None:
        found: _Work | None = (work, name)
        while found is not None:
            work, threading.current_thread().name = found
            work()
            del work, found  # nothing of it is held while the thread waits
            found = self._next()

    def _next(self) -> _Work | None:
        """Wait for work; None when there was none for long, or enough threads wait."""
        with self._lock:
            if self._idle >= MOST_IDLE:
                return None
            self._idle += 1
        with contextlib.suppress(queue.Empty):
            return self._queue.get(timeout=IDLE_S)
        with self._lock:
            if self._idle:
                self._idle -= 1
                return None
        return self._queue.get()  # it is on its way


_WORKERS = Workers()


class Once(Generic[T]):
    """A part that is built on the first ``get``; a failed build is tried again next time."""

    def __init__(self, build: Callable[[], T]) -> None:
        self._build = build
        self._lock = threading.Lock()
        self._part: T | None = None
        self._ended = False

    def get(self) -> T:
        """Return the part; concurrent callers wait for the one that builds it.

        Raises:
            UsageError: it is closed for good.
        """
        with self._lock:
            if self._ended:
                raise UsageError("this toolbox is closed", hint="open a new one")
            if self._part is None:
                self._part = self._build()
            return self._part

    @property
    def built(self) -> bool:
        """Whether the part is there, so that ``get`` does not wait."""
        return self._part is not None

    def take(self, *, last: bool = False) -> T | None:
        """Return the part if it is built, and forget it; ``last``: it is never built again."""
        with self._lock:
            self._ended = self._ended or last
            part, self._part = self._part, None
            return part
