"""Waiting from the event loop: for blocking work in a thread, for a call, no longer than wanted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar

from toolsrv_runtime.formats.base import Interrupted
from toolsrv_runtime.stop import Stop

_T = TypeVar("_T")


async def off_loop(work: Callable[[], _T], stop: Stop) -> _T:
    """Run blocking work in a thread; if we are cancelled, stop it and wait for its end.

    However often we are cancelled: no thread can be left, it works with what the caller would let
    go of next. What it returns or raises then is dropped.
    """
    future = asyncio.get_running_loop().run_in_executor(None, work)
    if (cancelled := await _ended(future, stop.set)) is not None:
        raise cancelled
    return future.result()


async def until_stopped(work: Coroutine[Any, Any, _T], stop: Stop) -> _T:
    """Await work, but no longer than ``stop`` allows.

    Work that is cancelled, here or because we are, has cleaned up when this ends; what it returns
    or raises then is dropped.

    Raises:
        Interrupted: ``stop`` was set first; the work is cancelled.
    """
    task = asyncio.ensure_future(work)
    try:
        while not task.done():
            await asyncio.wait({task}, timeout=0.1)
            if not task.done() and stop.is_set():
                raise Interrupted
        return task.result()
    finally:
        task.cancel()
        if (cancelled := await _ended(task, task.cancel)) is not None:
            raise cancelled


async def gathered(works: Iterable[Coroutine[Any, Any, _T]]) -> list[_T | BaseException]:
    """Await all works at the same time; return what each returned or raised, in their order.

    If we are cancelled all are, and have ended when this does.
    """
    tasks = [asyncio.ensure_future(work) for work in works]

    def cancel() -> None:
        for task in tasks:
            task.cancel()

    cancelled = None
    for task in tasks:
        cancelled = await _ended(task, cancel) or cancelled
    if cancelled is not None:
        raise cancelled
    return await asyncio.gather(*tasks, return_exceptions=True)


async def _ended(
    future: asyncio.Future[Any], at_cancel: Callable[[], object]
) -> asyncio.CancelledError | None:
    """Wait for a future that goes on when we are cancelled; return our cancellation, if any.

    ``at_cancel`` is called for each. The future's own error counts as seen.
    """
    cancelled = None
    while not future.done():
        try:
            await asyncio.wait({future})
        except asyncio.CancelledError as error:
            cancelled = error
            at_cancel()
    if not future.cancelled():
        future.exception()
    return cancelled
