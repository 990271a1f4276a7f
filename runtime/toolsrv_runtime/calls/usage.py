"""How many calls went to each host today, and when an API last answered: one SQLite file.

Counted across processes and restarts; a day is one of UTC. Every request over the network counts,
a repeated one too, before it is sent, so that a process that dies has not called for nothing.
Recordings, simulations and the catalog that ships never come here. A call that cannot be counted is
not made where a limit holds; elsewhere it is made, and the log says once that nothing is counted.
"""

from __future__ import annotations

import logging
import re
import sqlite3
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

from toolsrv_registry.database import Database
from toolsrv_registry.errors import ToolsrvError, UsageError
from toolsrv_runtime.calls.policy import Rule, canonical_host

USAGE_FILE = "usage.sqlite3"
"""The file's name in a data directory."""
KEPT_DAYS = 31
_MOST = 1_000_000_000
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
            limit = min(int(number), _MOST)
            name = place.strip()
            if not equals:
                every = limit
            elif name.lower().startswith(MCP_PREFIX):
                hosts[name.lower()] = limit
            else:
                rule = Rule.parse(f"ask * {name}")  # says what is wrong with a host
                if rule.port is not None or not (rule.host or rule.catalog):
                    raise UsageError(
                        f"{part[:80]!r}: a limit is a host's, whatever the port", hint=_FORM
                    )
                if rule.catalog:
                    catalogs[rule.catalog.lower()] = limit
                else:
                    hosts[rule.host] = limit
        return cls(every, hosts, catalogs)

    def of(self, host: str, catalog: str = "") -> int:
        """Return the limit of a host when it is called for a catalog."""
        known = self.hosts.get(canonical_host(host))
        return self.catalogs.get(catalog.lower(), self.every) if known is None else known


@dataclass(frozen=True, slots=True)
class Spent:
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
    def words(self) -> str:
        """The count in words: ``12 of 50 calls today, 38 left until 2026-11-28 00:00 UTC``."""
        if not self.limit:
            return f"{self.calls} calls today"
        until = f"{self.opens:%Y-%m-%d %H:%M} UTC"
        return f"{self.calls} of {self.limit} calls today, {self.left} left until {until}"


class Usage:
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

    def take(self, host: str, catalog: str = "") -> Spent | None:
        """Count one call to a host; return the count where the limit does not let it be made.

        Raises:
            ToolsrvError: a limit holds and the call cannot be counted.
        """
        limit = self._limits.of(host, catalog)
        try:
            return self._take(host, limit)
        except ToolsrvError as error:
            if limit:
                raise
            self._tell(error)
            return None

    def spent(self, host: str, catalog: str = "") -> Spent:
        """Return the count of a host as it stands; 0 calls where nothing can be read."""
        day, opens = self._day()
        rows = self._read("SELECT calls FROM days WHERE day = ? AND host = ?", [day, host])
        calls = rows[0]["calls"] if rows else 0
        return Spent(host, calls, self._limits.of(host, catalog), opens)

    def today(self) -> list[Spent]:
        """Return the counts of all hosts that were called today, most calls first."""
        day, opens = self._day()
        rows = self._read(
            "SELECT host, calls FROM days WHERE day = ? ORDER BY calls DESC, host", [day]
        )
        return [
            Spent(row["host"], row["calls"], self._limits.of(row["host"]), opens) for row in rows
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

    def _take(self, host: str, limit: int) -> Spent | None:
        day, opens = self._day()
        with self._open().write() as db:
            rows = db.execute(
                "SELECT calls FROM days WHERE day = ? AND host = ?", [day, host]
            ).fetchall()
            calls = int(rows[0]["calls"]) if rows else 0
            if limit and calls >= limit:
                return Spent(host, calls, limit, opens)
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
