"""Calls of one model reply, started together.

The search acts on one call after the other, a node each. The further calls of a reply are started
with the first, and their results are taken as their nodes are reached. Nothing differs from calls
that are made in turn but the time: budget, policy and the limit of failures hold as they do there.

A call that is refused as if response text had led to it (it needs consent, or the policy blocks it)
is not sent: it is made when its node is reached, where a person can be asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from toolsrv_registry.api import Api
from toolsrv_runtime.calls.result import CallResult
from toolsrv_runtime.search.budget import Budget
from toolsrv_runtime.stop import Stop
from toolsrv_runtime.waiting import until_stopped

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


class TurnCalls:
    """Calls of one solve that were started before the search reached them; close it at the end.

    ``call`` makes one; ``chances`` returns how many calls of an API may fail before it is left alone.
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
        result = await until_stopped(_result(started.task), stop)
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
