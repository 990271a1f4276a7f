"""Concurrency of a solve: blocking work in threads, cancellation, and the calls of one reply.

The search acts on one call after the other, one node each. The further calls of a reply are started
with the first, and their results are taken when their nodes are reached. Budget, policy and the
limit of failures hold as for sequential calls. A call that needs consent, or that the policy blocks
because response text has entered the run, is not sent ahead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from toolsrv_registry.api import Api
from toolsrv_runtime.agent.state import Budget
from toolsrv_runtime.calls.result import CallResult
from toolsrv_runtime.contract.format import Interrupted
from toolsrv_runtime.stop import Stop

_T = TypeVar("_T")


async def run_in_thread(work: Callable[[], _T], stop: Stop) -> _T:
    """Run blocking work in a thread; if we are cancelled, stop it and wait for its end.

    However often we are cancelled: no thread can be left, it works with what the caller would let
    go of next. What it returns or raises then is dropped.
    """
    future = asyncio.get_running_loop().run_in_executor(None, work)
    if (cancelled := await _ended(future, stop.set)) is not None:
        raise cancelled
    return future.result()


async def run_until_stopped(work: Coroutine[Any, Any, _T], stop: Stop) -> _T:
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


async def gather_results(works: Iterable[Coroutine[Any, Any, _T]]) -> list[_T | BaseException]:
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


MakeCall = Callable[..., Coroutine[Any, Any, CallResult]]
"""``Caller.call``."""


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A call whose arguments fit its API. ``key`` is the same for the same call."""

    key: str
    api: Api
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Started:
    call: PlannedCall
    task: asyncio.Task[CallResult]

    def may_fail(self) -> bool:
        """Whether the call has not succeeded so far."""
        done = self.task.done() and not self.task.cancelled() and self.task.exception() is None
        return not (done and self.task.result().ok)


class ConcurrentCalls:
    """Calls of one solve that were started before the search reached them; close it at the end.

    ``call`` makes one; ``chances`` returns how many calls of an API may fail before it is left
    alone.
    """

    def __init__(self, call: MakeCall, budget: Budget, chances: Callable[[Api], int]) -> None:
        self._call = call
        self._budget = budget
        self._chances = chances
        self._started: dict[str, _Started] = {}

    def start(self, calls: Sequence[PlannedCall], running: Api | None = None) -> None:
        """Start the calls that may be made whatever comes of those before them.

        ``running`` is the API of a call that is being made besides. Of one API no more are under
        way than may fail, so that a call that failures before it would prevent is not made.
        """
        room = self._budget.calls_left
        for call in calls:
            if call.key in self._started:
                continue
            if room <= 0:
                break
            room -= 1  # for one that has to wait too: its turn comes before that of the next
            waiting = sum(
                one.call.api.id == call.api.id and one.may_fail() for one in self._started.values()
            )
            waiting += running is not None and running.id == call.api.id
            if waiting >= self._chances(call.api):
                continue
            self._budget.calls += 1
            self._budget.ahead += 1
            task = asyncio.ensure_future(self._call(call.api, call.arguments, tainted=True))
            self._started[call.key] = _Started(call, task)

    def holds(self, key: str) -> bool:
        """Whether a call was started and its result not taken."""
        return key in self._started

    async def take(self, key: str, stop: Stop) -> CallResult | None:
        """Wait for the result of a call; None where it was not started, or refused and not sent.

        Raises:
            Interrupted: ``stop`` was set first; the call is cancelled.
        """
        started = self._started.pop(key, None)
        if started is None:
            return None
        self._budget.ahead -= 1
        result = await run_until_stopped(_result(started.task), stop)
        if not result.refused:
            return result
        self._budget.calls -= 1
        return None

    async def close(self) -> None:
        """Cancel what is under way and wait until it has ended."""
        tasks = [one.task for one in self._started.values()]
        self._started.clear()
        self._budget.ahead -= len(tasks)  # several solves may share the budget
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _result(task: asyncio.Task[CallResult]) -> CallResult:
    return await task
