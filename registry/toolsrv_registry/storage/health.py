"""Which APIs answered when they were last called, and which are dead.

``HealthStatus`` is the result of one check, ``HealthStatus.standing`` what follows from it.
``Health`` keeps the latest check of every API. A check belongs to the content it was made of: once
an API's text changes it counts as never checked. Knows nothing of calls; ``toolsrv_runtime.check``
makes them.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Literal

from pydantic import BaseModel, ConfigDict

from toolsrv_registry.storage.database import CachedRead, Database

Standing = Literal["alive", "dead", "unknown"]


class HealthStatus(StrEnum):
    """What one check of an API found (the quality filter of the ToolLLM paper, A.1)."""

    OK = "ok"
    NOT_JSON = "not_json"
    """A success with text or data that is neither JSON nor HTML."""
    NO_DATA = "no_data"
    """JSON without a value in it: null, {}, []; true of some APIs at some times."""
    SLOW = "slow"
    EMPTY = "empty"
    HTML = "html"
    ERROR_TEXT = "error_text"
    """A success whose body says nothing but that something failed."""
    HTTP_ERROR = "http_error"
    """A status that says that the API, or the address, does not work."""
    BAD_REQUEST = "bad_request"
    """A status that blames the arguments."""
    UNAUTHORIZED = "unauthorized"
    NOT_SUBSCRIBED = "not_subscribed"
    RATE_LIMITED = "rate_limited"
    TIMED_OUT = "timed_out"
    UNREACHABLE = "unreachable"
    BROKEN = "broken"
    """A connection that ended without a whole HTTP response."""

    def standing(self, status: int = 0, *, guessed: bool = False) -> Standing:
        """Return what follows: dead APIs may be left out, unknown ones stay in.

        ``guessed`` says that an argument was our guess and not the provider's own example: then
        an answer that may be due to the arguments proves nothing.
        """
        if self in _ALIVE:
            return "alive"
        if self in _UNKNOWN or (guessed and self._blames_arguments(status)):
            return "unknown"
        return "dead"

    def _blames_arguments(self, status: int) -> bool:
        if self is HealthStatus.HTTP_ERROR:
            return status in _ARGUMENT_STATUSES
        return self in {HealthStatus.ERROR_TEXT, HealthStatus.EMPTY}


_ALIVE = frozenset({HealthStatus.OK, HealthStatus.NOT_JSON})
_UNKNOWN = frozenset(
    {
        HealthStatus.NO_DATA,
        HealthStatus.BAD_REQUEST,
        HealthStatus.UNAUTHORIZED,
        HealthStatus.NOT_SUBSCRIBED,
        HealthStatus.RATE_LIMITED,
    }
)
# Many servers answer an unknown id with 404 and a bad one with 500.
_ARGUMENT_STATUSES = frozenset({404, 500})
_DEADLY = [verdict.value for verdict in HealthStatus if verdict.standing(599) == "dead"]


class HealthEntry(BaseModel):
    """The latest check of an API.

    ``checked_at`` is ISO 8601 in UTC; ``status`` the HTTP status, 0 when no response came;
    ``seconds`` the time to the whole response; ``excerpt`` the head of what was said, on one
    line; ``source`` as in a call's provenance (live, recorded, offline).
    """

    model_config = ConfigDict(frozen=True)

    api_id: str
    content_hash: str
    checked_at: str
    verdict: HealthStatus
    status: int = 0
    seconds: float = 0.0
    guessed: bool = False
    source: str = "live"
    excerpt: str = ""

    @property
    def standing(self) -> Standing:
        """Whether the API is alive, dead, or could not be judged."""
        return self.verdict.standing(self.status, guessed=self.guessed)

    @property
    def reason(self) -> str:
        """What was found and when, for example ``404 on 2026-11-20``."""
        return describe_check(self.verdict, self.status, self.checked_at)


def describe_check(verdict: HealthStatus, status: int, checked_at: str) -> str:
    """Return what was found and when, in a few words."""
    found = str(status) if verdict is HealthStatus.HTTP_ERROR and status else _RESULT_WORDS[verdict]
    return f"{found} on {checked_at[:10]}"


_RESULT_WORDS: Mapping[HealthStatus, str] = {
    **{verdict: verdict.value.replace("_", " ") for verdict in HealthStatus},
    HealthStatus.HTML: "HTML instead of data",
    HealthStatus.EMPTY: "an empty answer",
    HealthStatus.ERROR_TEXT: "only an error message",
    HealthStatus.SLOW: "too slow",
    HealthStatus.TIMED_OUT: "no answer in time",
    HealthStatus.BROKEN: "a broken connection",
}


class Health:
    """The checks of a registry file.

    With n checks kept: ``record`` O(entries log n), ``of`` O(log n). ``dead`` is O(1) while the
    file has not changed, else O(checks with a deadly verdict).
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._dead = CachedRead(database, self._read_dead)

    def record(self, entries: Iterable[HealthEntry]) -> None:
        """Keep these checks, all of them or none; an earlier one of the same content goes."""
        rows = [entry.model_dump(mode="json") for entry in entries]
        with self._database.write() as db:
            db.executemany(
                "INSERT OR REPLACE INTO health VALUES (:api_id, :content_hash, :checked_at,"
                " :verdict, :status, :seconds, :guessed, :source, :excerpt)",
                rows,
            )
            db.executemany(
                "DELETE FROM health WHERE api_id = :api_id AND content_hash NOT IN"
                " (SELECT content_hash FROM apis WHERE apis.id = :api_id)",
                rows,
            )

    def of(self, api_id: str) -> HealthEntry | None:
        """Return the latest check of an API as it stands in the catalog now, if there is one."""
        rows = self._database.read(
            "SELECT health.* FROM health JOIN visible ON visible.id = health.api_id"
            " AND visible.content_hash = health.content_hash WHERE health.api_id = ?",
            [api_id],
        )
        return HealthEntry.model_validate(dict(rows[0])) if rows else None

    def of_catalog(self, name: str) -> dict[str, HealthEntry]:
        """Return the latest check of each API of a catalog that has one as it stands, by id.

        Hidden APIs too. O(checks), however many APIs the catalog has.
        """
        rows = self._database.read(
            "SELECT health.* FROM health JOIN apis ON apis.id = health.api_id"
            " AND apis.content_hash = health.content_hash"
            " JOIN catalogs ON catalogs.number = apis.catalog WHERE catalogs.name = ?"
            " ORDER BY health.api_id",
            [name],
        )
        return {row["api_id"]: HealthEntry.model_validate(dict(row)) for row in rows}

    def latest(self, api_ids: Collection[str] | None = None) -> dict[tuple[str, str], HealthEntry]:
        """Return every kept check, or those of some APIs, by API id and content hash."""
        rows = self._database.read(
            "SELECT * FROM health WHERE ?1 IS NULL OR api_id IN (SELECT value FROM json_each(?1))",
            [None if api_ids is None else json.dumps(list(api_ids))],
        )
        return {
            (row["api_id"], row["content_hash"]): HealthEntry.model_validate(dict(row))
            for row in rows
        }

    def dead(self) -> Mapping[str, str]:
        """Return the dead APIs among the visible ones: API id -> reason, by id. Read-only.

        A check by this or another process shows in the next call.
        """
        return self._dead.get()

    def _read_dead(self) -> Mapping[str, str]:
        rows = self._database.read(
            "SELECT api_id, checked_at, verdict, status, guessed FROM health"
            " JOIN visible ON visible.id = api_id AND visible.content_hash = health.content_hash"
            " WHERE verdict IN (SELECT value FROM json_each(?)) ORDER BY api_id",
            [json.dumps(_DEADLY)],
        )
        found = {}
        for row in rows:
            verdict = HealthStatus(row["verdict"])
            if verdict.standing(row["status"], guessed=bool(row["guessed"])) == "dead":
                found[row["api_id"]] = describe_check(verdict, row["status"], row["checked_at"])
        return MappingProxyType(found)
