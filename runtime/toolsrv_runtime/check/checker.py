"""Run a check of APIs: calls within limits, verdicts, results kept in small batches, progress.

Several APIs are called at once, each host no faster than its rate. A transient fault is retried
before it counts, and a host that reports too many calls is left alone for as long as it asks. An
unreachable API is kept only once another host answers after it: when none does, the network is at
fault. Knows no files and no terminal: results go to ``keep``, progress to ``listen``.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import json
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal

from toolsrv_catalogs.text import clean
from toolsrv_registry.errors import BusyError, ToolsrvError
from toolsrv_registry.storage.health import HealthEntry, HealthStatus
from toolsrv_runtime.calls.rate_limits import LONGEST_PAUSE_S, RateLimiter, pause_seconds
from toolsrv_runtime.check.plan import CheckItem
from toolsrv_runtime.check.replies import SLOW_SECONDS, ApiReply, Backend, judge


@dataclass(slots=True)
class CheckProgress:
    """The running counts of a check.

    ``calls`` counts requests, those that were repeated too; ``done`` APIs with a verdict.
    ``busiest`` is the longest queue of one host, ``interval`` the least seconds between its calls.
    """

    total: int
    interval: float = 0.0
    calls: int = 0
    done: int = 0
    busiest: int = 0
    seconds: float = 0.0
    verdicts: Counter[HealthStatus] = field(default_factory=Counter)
    standings: Counter[str] = field(default_factory=Counter)

    def add(self, entry: HealthEntry) -> None:
        """Count a verdict."""
        self.done += 1
        self.verdicts[entry.verdict] += 1
        self.standings[entry.standing] += 1

    @property
    def rate(self) -> float:
        """APIs judged per second."""
        return self.done / self.seconds if self.seconds > 0 else 0.0

    @property
    def left_s(self) -> float | None:
        """Seconds left, ``None`` while nobody can know: by speed, and by the busiest host."""
        if not self.done or self.seconds <= 0:
            return None
        return max((self.total - self.done) / self.rate, self.busiest * self.interval)


BATCH = 16
FLUSH_S = 1.0
TELL_S = 0.1
UNREACHED_LIMIT = 20
"""So many calls in a row that reach nobody, at several hosts, end a check."""
EXCERPT_LIMIT = 200

Ended = Literal["complete", "stopped", "call_limit", "no_network"]


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """How a check runs. ``tries`` counts calls of one API; ``calls`` limits all of them."""

    rate: float = 1.0
    concurrency: int = 8
    tries: int = 2
    busy_tries: int = 3
    calls: int | None = None
    slow: float = SLOW_SECONDS


@dataclass(frozen=True, slots=True)
class CheckResult:
    """How a check ended; ``unconfirmed`` could not be reached, like everybody else then."""

    ended: Ended
    tally: CheckProgress
    entries: tuple[HealthEntry, ...]
    not_checked: dict[str, str]
    unconfirmed: tuple[str, ...]


@dataclass(slots=True)
class _Job:
    item: CheckItem
    calls: int = 0
    busy: int = 0


class Checker:
    """One check of a plan's items; ``run`` it once, ``stop`` it from the same event loop."""

    def __init__(
        self,
        items: Sequence[CheckItem],
        world: Backend,
        *,
        keep: Callable[[Sequence[HealthEntry]], None],
        rules: CheckOptions | None = None,
        listen: Callable[[CheckProgress], None] = lambda _: None,
        heard: Callable[[str, ApiReply], None] = lambda *_: None,
    ) -> None:
        """Take the plan.

        ``keep`` stores results, in a thread; ``listen`` hears the counts now and then and
        at the end, ``heard`` every reply that leads to a verdict.
        """
        self._world = world
        self._keep = keep
        self._rules = rules or CheckOptions()
        self._listen = listen
        self._heard = heard
        self._pace = RateLimiter(self._rules.rate)
        self.tally = CheckProgress(len(items), interval=self._pace.interval)
        self._queues: dict[str, deque[_Job]] = {}
        for item in items:
            self._queues.setdefault(item.host, deque()).append(_Job(item))
        self._hosts = len(self._queues)
        self._ready = [(0.0, place, host) for place, host in enumerate(self._queues)]
        self._order = self._hosts
        self._in_flight = 0
        self._changed = asyncio.Event()
        self._ended: Ended | None = None
        self._workers: list[asyncio.Task[None]] = []
        self._entries: list[HealthEntry] = []
        self._unsaved: list[HealthEntry] = []
        self._unreached: list[tuple[str, HealthEntry]] = []
        self._not_checked: dict[str, str] = {}
        self._saving = asyncio.Lock()
        self._started = time.monotonic()
        self._told = 0.0

    async def run(self) -> CheckResult:
        """Check everything; return when all is done or something ends it.

        Raises:
            ToolsrvError: the results cannot be kept.
        """
        self._started = time.monotonic()
        many = max(1, min(self._rules.concurrency, self.tally.total))
        self._workers = [asyncio.create_task(self._work()) for _ in range(many)]
        saver = asyncio.create_task(self._save_often())
        try:
            await asyncio.wait(self._workers, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            for task in (saver, *self._workers):
                task.cancel()
        for error in await asyncio.gather(saver, *self._workers, return_exceptions=True):
            if isinstance(error, Exception):
                raise error
        await self._save()
        self._told = 0.0
        self._tick()
        return CheckResult(
            self._ended or "complete",
            self.tally,
            tuple(self._entries),
            self._not_checked,
            tuple(entry.api_id for _, entry in self._unreached),
        )

    def stop(self, ended: Ended = "stopped") -> None:
        """End the check: calls in flight are given up, what is judged is kept."""
        if self._ended is None:
            self._ended = ended
            for worker in self._workers:
                worker.cancel()

    # --- the queue ----------------------------------------------------------------------------

    async def _work(self) -> None:
        while (job := await self._next()) is not None:
            try:
                await self._check(job)
            finally:
                self._in_flight -= 1
                self._changed.set()

    async def _next(self) -> _Job | None:
        """Return the next job that its host's pace allows; ``None`` when there is no more."""
        while self._ended is None and (self._ready or self._in_flight):
            if self._rules.calls is not None and self.tally.calls >= self._rules.calls:
                self._ended = "call_limit"
                break
            wait = self._settle()
            if wait is not None and wait <= 0:
                return self._take()
            self._changed.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._changed.wait()
        self._changed.set()
        return None

    def _settle(self) -> float | None:
        """Bring the host that may be called first to the front; return the seconds until then."""
        while self._ready:
            at, place, host = self._ready[0]
            ready = self._pace.ready(host)
            if ready <= at:
                return at - time.monotonic()
            heapq.heapreplace(self._ready, (ready, place, host))
        return None

    def _take(self) -> _Job:
        _, _, host = heapq.heappop(self._ready)
        queue = self._queues[host]
        job = queue.popleft()
        self._pace.called(host, time.monotonic())
        if queue:
            self._line_up(host)
        self._in_flight += 1
        self.tally.calls += 1
        job.calls += 1
        return job

    def _line_up(self, host: str) -> None:
        self._order += 1  # hosts that are ready take turns
        heapq.heappush(self._ready, (self._pace.ready(host), self._order, host))

    def _again(self, job: _Job, *, first: bool) -> None:
        queue = self._queues[job.item.host]
        if not queue:
            self._line_up(job.item.host)
        if first:
            queue.appendleft(job)
        else:
            queue.append(job)

    def _set_aside(self, host: str, why: str) -> None:
        """Leave out what is still queued for a host."""
        for job in self._queues[host]:
            self._not_checked[job.item.api.id] = why
            self.tally.total -= 1
        self._queues[host].clear()
        self._ready = [entry for entry in self._ready if entry[2] != host]
        heapq.heapify(self._ready)

    # --- one API ------------------------------------------------------------------------------

    async def _check(self, job: _Job) -> None:
        item, rules = job.item, self._rules
        try:
            reply = await self._world.ask(item.api, item.arguments)
        except ToolsrvError as error:  # the policy, or a default that its own type refuses
            self._not_checked[item.api.id] = error.message.removeprefix(f"{item.api.id}: ")
            self.tally.total -= 1
            return
        verdict = judge(
            reply.status,
            reply.seconds,
            reply.headers,
            reply.body,
            failure=reply.failure,
            method=item.api.method,
            slow=rules.slow,
        )
        if reply.source == "recorded":  # would say the same again
            self._conclude(item, verdict, reply)
        elif verdict is HealthStatus.RATE_LIMITED:
            self._pause(job, verdict, reply)
        elif _may_pass(verdict, reply.status) and job.calls - job.busy < rules.tries:
            self._again(job, first=False)
        else:
            self._conclude(item, verdict, reply)
        if len(self._unsaved) >= BATCH:
            await self._save_quietly()

    def _pause(self, job: _Job, verdict: HealthStatus, reply: ApiReply) -> None:
        """Leave the host alone for as long as it asks; give it up for now when that is long."""
        host = job.item.host
        seconds = pause_seconds(reply.headers, job.busy, datetime.now(UTC))
        job.busy += 1
        if seconds <= LONGEST_PAUSE_S and job.busy < self._rules.busy_tries:
            self._pace.pause(host, time.monotonic() + seconds)
            self._again(job, first=True)
            return
        self._conclude(job.item, verdict, reply)
        self._set_aside(host, f"{host} is called too often just now")

    def _conclude(self, item: CheckItem, verdict: HealthStatus, reply: ApiReply) -> None:
        entry = HealthEntry(
            api_id=item.api.id,
            content_hash=item.content_hash,
            checked_at=datetime.now(UTC).isoformat(timespec="seconds"),
            verdict=verdict,
            status=reply.status,
            seconds=round(reply.seconds, 3),
            guessed=item.guessed,
            source=reply.source,
            excerpt=excerpt(reply),
        )
        self._heard(item.api.id, reply)
        if reply.reached:
            self._settled([one for _, one in self._unreached] + [entry])
            self._unreached.clear()
        else:
            self._unreached.append((item.host, entry))
            hosts = {host for host, _ in self._unreached}
            if len(self._unreached) >= UNREACHED_LIMIT and len(hosts) >= min(3, self._hosts):
                self.stop("no_network")
        self._tick()

    def _settled(self, entries: Sequence[HealthEntry]) -> None:
        for entry in entries:
            self.tally.add(entry)
        self._entries.extend(entries)
        self._unsaved.extend(entries)

    def _tick(self) -> None:
        now = time.monotonic()
        if now - self._told < TELL_S:
            return
        self._told = now
        self.tally.seconds = now - self._started
        self.tally.busiest = max((len(queue) for queue in self._queues.values()), default=0)
        self._listen(replace(self.tally))

    # --- keeping ------------------------------------------------------------------------------

    async def _save_often(self) -> None:
        while True:
            await asyncio.sleep(FLUSH_S)
            try:
                await self._save_quietly()
            except ToolsrvError:  # the store cannot be written: no use in calling on
                self.stop()
                raise

    async def _save_quietly(self) -> None:
        """Keep what there is; while another process holds the store, keep it later."""
        with contextlib.suppress(BusyError):
            await self._save()

    async def _save(self) -> None:
        async with self._saving:
            batch = self._unsaved
            if not batch:
                return
            self._unsaved = []
            try:
                await asyncio.to_thread(self._keep, batch)
            except BaseException:
                self._unsaved = batch + self._unsaved
                raise


def _may_pass(verdict: HealthStatus, status: int) -> bool:
    return verdict in _PASSING or (verdict is HealthStatus.HTTP_ERROR and status >= 500)


_PASSING = frozenset(
    {HealthStatus.SLOW, HealthStatus.TIMED_OUT, HealthStatus.UNREACHABLE, HealthStatus.BROKEN}
)


def excerpt(reply: ApiReply) -> str:
    """Return the start of a reply, cleaned and on one line."""
    said: Any = reply.error if reply.failure or reply.body in (None, "") else reply.body
    text = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
    text = text[: 4 * EXCERPT_LIMIT].encode("utf-8", "replace").decode()  # no lone surrogates
    return " ".join(clean(text, len(text)).split())[:EXCERPT_LIMIT]
