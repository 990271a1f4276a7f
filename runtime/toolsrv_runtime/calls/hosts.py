"""How often a host is called: a rate, calls at a time and a day, a rest after many failures.

One ``Hosts`` belongs to one event loop. Knows nothing of requests; a call asks for its turn and
tells how it went.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field

from toolsrv_registry.errors import ToolsrvError
from toolsrv_runtime.calls.pace import LONGEST_PAUSE_S, Pace
from toolsrv_runtime.calls.usage import Spent, Usage
from toolsrv_runtime.errors import PolicyError

HOSTS_KEPT = 1_000


@dataclass(frozen=True, slots=True)
class HostLimits:
    """``rate`` calls per second (0: no limit) and ``at_once`` calls, per host.

    After ``failures`` failed calls in a row a host is left alone for ``rest_s`` seconds; then one
    call may try, and the others only once that one went well.
    """

    rate: float = 5.0
    at_once: int = 4
    failures: int = 5
    rest_s: float = 30.0


@dataclass(frozen=True, slots=True)
class Rest:
    """A host is left alone for ``seconds`` more: it asked for it, or it keeps failing.

    0 where the rest is over, and one call is trying whether the host answers again.
    """

    seconds: float
    asked: bool


@dataclass(slots=True)
class _Host:
    gate: asyncio.Semaphore
    line: asyncio.Lock = field(default_factory=asyncio.Lock)
    failures: int = 0
    rests_until: float = 0.0
    asked: bool = False
    tried: bool = False
    users: int = 0


class Hosts:
    """The hosts that are called, and how they have behaved."""

    def __init__(
        self,
        limits: HostLimits | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        usage: Usage | None = None,
    ) -> None:
        """Take the limits; ``usage`` counts the calls of a day, None where nobody counts them."""
        self.usage = usage
        self._limits = limits or HostLimits()
        self._clock = clock
        self._pace = Pace(self._limits.rate)
        self._hosts: dict[str, _Host] = {}

    def rest(self, host: str) -> Rest | None:
        """Return the rest that a host has now; None when it may be called."""
        known = self._hosts.get(host)
        if known is None:
            return None
        left = known.rests_until - self._clock()
        if left > 0:
            return Rest(left, known.asked)
        return Rest(0.0, asked=False) if known.tried and self._failing(known) else None

    @contextlib.contextmanager
    def visit(self, host: str) -> Iterator[Rest | None]:
        """Hold a host for one call, repeats included; yields the rest that it has now.

        None lets the call through. After a rest that is one call: the others find the host at
        rest until it has told how it went, or has ended.
        """
        known, rest = self._host(host), self.rest(host)
        trying = rest is None and self._failing(known)
        known.tried = known.tried or trying
        known.users += 1
        try:
            yield rest
        finally:
            known.users -= 1
            known.tried = known.tried and not trying

    @contextlib.asynccontextmanager
    async def turn(self, host: str) -> AsyncIterator[None]:
        """Wait until the host may be called, and hold a place at it.

        No place is taken in advance, so that who gives up waiting costs the others no time.
        """
        known = self._host(host)
        known.users += 1
        try:
            async with known.gate:
                async with known.line:
                    starts = max(self._clock(), self._pace.ready(host))
                    await asyncio.sleep(starts - self._clock())
                    self._pace.called(host, starts)
                yield
        finally:
            known.users -= 1

    async def count(self, host: str, catalog: str) -> Spent | None:
        """Count one call; return the day's count where its limit does not let the call be made.

        Raises:
            PolicyError: a limit holds and the call cannot be counted.
        """
        if self.usage is None:
            return None
        try:
            return await asyncio.to_thread(self.usage.take, host, catalog)
        except ToolsrvError as error:
            raise PolicyError(
                f"the call to {host} cannot be counted for its daily limit: {error.message}",
                hint=f"{error.hint}; or lift the limit: toolsrv config set calls_per_day 0",
            ) from error

    def tell(self, host: str, *, failed: bool) -> None:
        """Take in how a call went; a failure is one that speaks against the host."""
        known = self._host(host)
        known.failures = known.failures + 1 if failed else 0
        if self._failing(known):
            known.rests_until = self._clock() + self._limits.rest_s
            known.asked = False

    def pause(self, host: str, seconds: float) -> None:
        """Leave a host alone that asks for it, but never longer than ``LONGEST_PAUSE_S``."""
        known = self._host(host)
        known.rests_until = self._clock() + min(seconds, LONGEST_PAUSE_S)
        known.asked = True

    def terms(self) -> str:
        """Return the limits in words: ``5 calls a second and 4 at once``."""
        rate = f"{self._limits.rate:g} calls a second and " if self._limits.rate > 0 else ""
        return f"{rate}{self._limits.at_once} at once"

    def _failing(self, known: _Host) -> bool:
        return known.failures >= self._limits.failures

    def _host(self, host: str) -> _Host:
        if host not in self._hosts and len(self._hosts) >= HOSTS_KEPT:
            idle = [name for name, one in self._hosts.items() if not one.users]
            for name in idle[: HOSTS_KEPT // 2]:
                del self._hosts[name]
        return self._hosts.setdefault(host, _Host(asyncio.Semaphore(self._limits.at_once)))
