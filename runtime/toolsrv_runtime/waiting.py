"""Waiting from the event loop: for blocking work in a thread, for a call, no longer than wanted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from toolsrv_runtime.formats.base import Interrupted
from toolsrv_runtime.stop import Stop

_T = TypeVar("_T")


async def off_loop(work: Callable[[], _T], stop: Stop) -> _T:
    """Run blocking work in a thread; if we are cancelled, stop it and wait for its end."""
    future = asyncio.get_running_loop().run_in_executor(None, work)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        stop.set()
        await asyncio.wait({future})
        future.exception()
        raise


async def until_stopped(work: Coroutine[Any, Any, _T], stop: Stop) -> _T:
    """Await work, but no longer than ``stop`` allows.

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
