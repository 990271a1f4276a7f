"""Waiting from the event loop: what is cancelled has ended when the waiting ends."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Coroutine
from typing import Any

import pytest

from toolsrv_runtime.agent.concurrency import run_in_thread, run_until_stopped
from toolsrv_runtime.contract.format import Interrupted
from toolsrv_runtime.stop import Stop


class Call:
    """A call that is cancelled, cleans up once the test lets it, and fails then."""

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.door = asyncio.Event()
        self.clean = False

    async def __call__(self) -> None:
        self.began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            await self.door.wait()
            self.clean = True
            raise RuntimeError("close failed") from None


def untold(main: Coroutine[Any, Any, None]) -> list[str]:
    """Run to the end; return what the loop tells of errors that nobody has looked at."""
    told: list[str] = []

    async def watched() -> None:
        handler = lambda _, context: told.append(context["message"])  # noqa: E731 - of one use
        asyncio.get_running_loop().set_exception_handler(handler)
        await main
        gc.collect()

    asyncio.run(watched())
    return told


def test_a_stopped_call_has_cleaned_up_when_the_wait_for_it_ends() -> None:
    async def main() -> None:
        call, stop = Call(), Stop()
        waiting = asyncio.ensure_future(run_until_stopped(call(), stop))
        await call.began.wait()
        stop.set()
        await call.cancelled.wait()
        call.door.set()
        with pytest.raises(Interrupted):
            await waiting
        assert call.clean

    assert untold(main()) == []


def test_a_call_whose_caller_is_cancelled_has_cleaned_up_too() -> None:
    async def main() -> None:
        call = Call()
        waiting = asyncio.ensure_future(run_until_stopped(call(), Stop()))
        await call.began.wait()
        waiting.cancel()
        await call.cancelled.wait()
        call.door.set()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert call.clean

    assert untold(main()) == []


def test_a_caller_that_is_cancelled_while_a_call_is_stopped_is_told_so() -> None:
    async def main() -> None:
        call, stop = Call(), Stop()
        waiting = asyncio.ensure_future(run_until_stopped(call(), stop))
        await call.began.wait()
        stop.set()
        await call.cancelled.wait()
        waiting.cancel()  # breaks the cleaning up off, as it would without us
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert not call.clean

    assert untold(main()) == []


def test_a_thread_is_waited_for_however_often_its_caller_is_cancelled() -> None:
    async def main() -> None:
        stop, began, door = Stop(), threading.Event(), threading.Event()

        def work() -> None:
            began.set()
            door.wait()
            raise RuntimeError("stopped")

        waiting = asyncio.ensure_future(run_in_thread(work, stop))
        await asyncio.to_thread(began.wait)
        left = []
        for _ in range(3):
            waiting.cancel()
            await asyncio.to_thread(bool)  # the loop takes several turns
            left.append(waiting.done())
        door.set()
        assert left == [False] * 3
        assert stop.is_set()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    assert untold(main()) == []


def test_what_a_thread_returns_or_raises_comes_out() -> None:
    async def main() -> None:
        assert await run_in_thread(lambda: 3, Stop()) == 3
        with pytest.raises(ZeroDivisionError):
            await run_in_thread(lambda: 1 // 0, Stop())

    assert untold(main()) == []
