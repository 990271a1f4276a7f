"""Limit the calls per host: a rate, concurrent calls, a daily quota, and a circuit breaker.

One ``HostLimiter`` belongs to one event loop. ``RateLimiter`` is pure: time comes in as a number of
seconds. ``CallUsage`` counts the calls of each UTC day in one SQLite file, across processes and
restarts; every network request counts before it is sent, a retried one too. Recordings, simulations
and the offline catalog are not counted. A call that cannot be counted is refused where a quota
holds. Knows nothing of requests.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Self

from toolsrv_registry.errors import ToolsrvError, UsageError
from toolsrv_registry.storage.database import Database
from toolsrv_runtime.calls.policy import PolicyRule, canonical_host
from toolsrv_runtime.errors import PolicyError

FIRST_PAUSE_S = 2.0
LONGEST_PAUSE_S = 60.0


class RateLimiter:
    """At most ``rate`` calls per second and host; 0 means no limit."""

    def __init__(self, rate: float) -> None:
        self._interval = 1 / rate if rate > 0 else 0.0
        self._next: dict[str, float] = {}

    @property
    def interval(self) -> float:
        """Least seconds between two calls to one host."""
        return self._interval

    def ready(self, host: str) -> float:
        """Return the time from which a host may be called."""
        return self._next.get(host, 0.0)

    def called(self, host: str, at: float) -> None:
        """Note a call."""
        self._next[host] = max(self.ready(host), at + self._interval)

    def pause(self, host: str, until: float) -> None:
        """Leave a host alone until then."""
        self._next[host] = max(self.ready(host), until)


def pause_seconds(headers: Mapping[str, str], tries: int, now: datetime) -> float:
    """Return how long to leave a host alone that said it is called too often.

    What it asks for, else twice as long with every try: 2, 4, 8 … seconds.
    """
    asked = retry_after_seconds(headers, now)
    return FIRST_PAUSE_S * (1 << min(tries, 10)) if asked is None else asked


def retry_after_seconds(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the seconds that a host asks for in ``Retry-After`` (seconds or an HTTP date).

    None without such a header, or with one that says no time.
    """
    asked = headers.get("retry-after", "").strip()
    if asked.isascii() and asked.isdigit():
        return float(asked[:9])
    try:
        when = parsedate_to_datetime(asked)
    except (ValueError, OverflowError):  # OverflowError for years and zones without end
        return None
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    return max(0.0, (when - now).total_seconds())


USAGE_FILE = "usage.sqlite3"
"""The file's name in a data directory."""
KEPT_DAYS = 31
MCP_PREFIX = "mcp:"
"""Before the name of an MCP server, which is counted as a host is."""
_FORM = "a number for every host, and HOST=NUMBER or catalog:NAME=NUMBER, with commas; 0: no limit"

log = logging.getLogger(__name__)


def utc_now() -> datetime:
    """Return the present moment in UTC."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class DailyLimits:
    """Calls per day and host; 0 for no limit. A host's own limit comes before its catalog's."""

    every: int = 0
    hosts: Mapping[str, int] = field(default_factory=dict)
    catalogs: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``500, api.example.com=50, catalog:toolbench=200``.

        Raises:
            UsageError: it is no such list.
        """
        every, hosts, catalogs = 0, dict[str, int](), dict[str, int]()
        for part in filter(None, (one.strip() for one in re.split(r"[,;\n]", text))):
            place, equals, number = part.rpartition("=")
            if not re.fullmatch(r"[0-9]{1,9}", number.strip()) or (equals and not place.strip()):
                raise UsageError(f"{part[:80]!r} is no limit of calls per day", hint=_FORM)
            limit = int(number)
            name = place.strip()
            if not equals:
                every = limit
            elif name.lower().startswith(MCP_PREFIX):
                hosts[name.lower()] = limit
            else:
                rule = PolicyRule.parse(f"ask * {name}")  # says what is wrong with a host
                if rule.port is not None or not (rule.host or rule.catalog):
                    raise UsageError(
                        f"{part[:80]!r}: a limit is a host's, whatever the port", hint=_FORM
                    )
                if rule.catalog:
                    catalogs[rule.catalog.lower()] = limit
                else:
                    hosts[rule.host] = limit
        return cls(every, hosts, catalogs)

    def limit_for(self, host: str, catalog: str = "") -> int:
        """Return the limit of a host when it is called for a catalog."""
        known = self.hosts.get(canonical_host(host))
        return self.catalogs.get(catalog.lower(), self.every) if known is None else known


@dataclass(frozen=True, slots=True)
class DailyCount:
    """The calls of a host on one day: ``calls`` of ``limit`` (0: no limit), until ``opens``."""

    host: str
    calls: int
    limit: int
    opens: datetime

    @property
    def left(self) -> int | None:
        """Calls that are left today, None without a limit."""
        return max(self.limit - self.calls, 0) if self.limit else None

    @property
    def describe(self) -> str:
        """The count in words: ``12 of 50 calls today, 38 left until 2026-11-28 00:00 UTC``."""
        if not self.limit:
            return f"{self.calls} calls today"
        until = f"{self.opens:%Y-%m-%d %H:%M} UTC"
        return f"{self.calls} of {self.limit} calls today, {self.left} left until {until}"


class CallUsage:
    """The counts of one data folder. Thread-safe; methods block for one small transaction."""

    def __init__(
        self,
        path: Path,
        limits: DailyLimits | None = None,
        *,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        """Take the file, which is opened with the first call, and the limits."""
        self._path = path
        self._limits = limits or DailyLimits()
        self._now = now
        self._database: Database | None = None
        self._lock = threading.Lock()
        self._told = False

    def take(self, host: str, catalog: str = "") -> DailyCount | None:
        """Count one call to a host; return the count where the limit does not let it be made.

        Raises:
            ToolsrvError: a limit holds and the call cannot be counted.
        """
        limit = self._limits.limit_for(host, catalog)
        try:
            return self._take(host, limit)
        except ToolsrvError as error:
            if limit:
                raise
            self._tell(error)
            return None

    def spent(self, host: str, catalog: str = "") -> DailyCount:
        """Return the count of a host as it stands; 0 calls where nothing can be read."""
        day, opens = self._day()
        rows = self._read("SELECT calls FROM days WHERE day = ? AND host = ?", [day, host])
        calls = rows[0]["calls"] if rows else 0
        return DailyCount(host, calls, self._limits.limit_for(host, catalog), opens)

    def today(self) -> list[DailyCount]:
        """Return the counts of all hosts that were called today, most calls first."""
        day, opens = self._day()
        rows = self._read(
            "SELECT host, calls FROM days WHERE day = ? ORDER BY calls DESC, host", [day]
        )
        return [
            DailyCount(row["host"], row["calls"], self._limits.limit_for(row["host"]), opens)
            for row in rows
        ]

    def succeeded(self, api_id: str) -> None:
        """Note that an API answered with success just now."""
        at = self._now().isoformat(timespec="seconds")
        try:
            with self._open().write() as db:
                db.execute(
                    "INSERT INTO successes (api_id, at) VALUES (?, ?)"
                    " ON CONFLICT (api_id) DO UPDATE SET at = excluded.at",
                    [api_id, at],
                )
        except ToolsrvError as error:
            self._tell(error)

    def last_successes(self, api_ids: Iterable[str]) -> dict[str, str]:
        """Return when each of some APIs last answered a live call (ISO 8601, UTC)."""
        known = [*api_ids]
        marks = ",".join("?" * len(known))
        rows = self._read(f"SELECT api_id, at FROM successes WHERE api_id IN ({marks})", known)  # noqa: S608 - marks alone
        return {row["api_id"]: row["at"] for row in rows}

    def close(self) -> None:
        """Close the file; it opens again when it is needed."""
        with self._lock:
            database, self._database = self._database, None
        if database is not None:
            database.close()

    def _take(self, host: str, limit: int) -> DailyCount | None:
        day, opens = self._day()
        with self._open().write() as db:
            rows = db.execute(
                "SELECT calls FROM days WHERE day = ? AND host = ?", [day, host]
            ).fetchall()
            calls = int(rows[0]["calls"]) if rows else 0
            if limit and calls >= limit:
                return DailyCount(host, calls, limit, opens)
            if not calls:
                oldest = (self._now() - timedelta(days=KEPT_DAYS)).date().isoformat()
                db.execute("DELETE FROM days WHERE day < ?", [oldest])
            db.execute(
                "INSERT INTO days (day, host, calls) VALUES (?, ?, 1)"
                " ON CONFLICT (day, host) DO UPDATE SET calls = calls + 1",
                [day, host],
            )
        return None

    def _day(self) -> tuple[str, datetime]:
        """Return today in UTC, and when it ends."""
        today = self._now().astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        return today.date().isoformat(), today + timedelta(days=1)

    def _read(self, sql: str, parameters: list[str]) -> list[sqlite3.Row]:
        if self._database is None and not self._path.exists():
            return []
        try:
            return self._open().read(sql, parameters)
        except ToolsrvError as error:
            self._tell(error)
            return []

    def _open(self) -> Database:
        with self._lock:
            if self._database is None:
                self._database = Database.open_to_read(self._path, (_create,))
            return self._database

    def _tell(self, error: ToolsrvError) -> None:
        if not self._told:
            self._told = True
            log.warning("calls are not counted: %s (%s)", error.message, error.hint)


def _create(connection: sqlite3.Connection) -> None:
    connection.execute(
        "CREATE TABLE days (day TEXT NOT NULL, host TEXT NOT NULL, calls INTEGER NOT NULL,"
        " PRIMARY KEY (day, host)) STRICT, WITHOUT ROWID"
    )
    connection.execute(
        "CREATE TABLE successes (api_id TEXT PRIMARY KEY, at TEXT NOT NULL) STRICT, WITHOUT ROWID"
    )


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
class Cooldown:
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


class HostLimiter:
    """The hosts that are called, and how they have behaved."""

    def __init__(
        self,
        limits: HostLimits | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        usage: CallUsage | None = None,
    ) -> None:
        """Take the limits; ``usage`` counts the calls of a day, None where nobody counts them."""
        self.usage = usage
        self._limits = limits or HostLimits()
        self._clock = clock
        self._pace = RateLimiter(self._limits.rate)
        self._hosts: dict[str, _Host] = {}

    def cooldown(self, host: str) -> Cooldown | None:
        """Return the rest that a host has now; None when it may be called."""
        known = self._hosts.get(host)
        if known is None:
            return None
        left = known.rests_until - self._clock()
        if left > 0:
            return Cooldown(left, known.asked)
        return Cooldown(0.0, asked=False) if known.tried and self._failing(known) else None

    @contextlib.contextmanager
    def attempt(self, host: str) -> Iterator[Cooldown | None]:
        """Hold a host for one call, repeats included; yields the rest that it has now.

        None lets the call through. After a rest that is one call: the others find the host at
        rest until it has told how it went, or has ended.
        """
        known, rest = self._host(host), self.cooldown(host)
        trying = rest is None and self._failing(known)
        known.tried = known.tried or trying
        known.users += 1
        try:
            yield rest
        finally:
            known.users -= 1
            known.tried = known.tried and not trying

    @contextlib.asynccontextmanager
    async def slot(self, host: str) -> AsyncIterator[None]:
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

    async def count(self, host: str, catalog: str) -> DailyCount | None:
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

    def record_outcome(self, host: str, *, failed: bool) -> None:
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

    def describe(self) -> str:
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
