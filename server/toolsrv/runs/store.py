"""Finished runs on disk, the whole response of every call among them.

One SQLite file, because several processes write it at once (the command line, a server per
client), a list must not read every response, and a response of megabytes is read by the page; a
file per run gives none of these. It is bounded: the oldest runs go when there are more than the
setting ``keep_runs`` or when all take more than ``MOST_BYTES``; freed pages are used again.

Raises DataError where the file cannot be used and BusyError where another process holds it.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ValidationError

from toolsrv.runs.records import ResponsePage, RunRecord, no_response, response_page, response_text
from toolsrv_registry import wellformed
from toolsrv_registry.errors import DamagedError, DataError, NotFoundError, ToolsrvError
from toolsrv_registry.storage.database import Database
from toolsrv_runtime.outcome import Evidence, Outcome

RUNS_FILE = "runs.db"
MOST_BYTES = 256 * 1024 * 1024
MOST_RESPONSE = 4 * 1024 * 1024
"""Characters of one response; the rest of a longer one is not kept, and that is said."""
SHORT_RESPONSE = 4_000
"""Characters of a response that stay in the record itself."""


class RunRow(BaseModel):
    """One line of the list of runs. ``ended`` is ISO 8601 in UTC, ``bytes`` its room on disk."""

    id: str
    ended: str
    status: str
    task: str
    strategy: str
    seconds: float
    calls: int
    nodes: int
    bytes: int


class RunStore:
    """The open file; made by ``RunStore.open``, closed or used as a context."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Open or create the store of a data folder."""
        with _damage_hint():
            return cls(Database.open(folder / RUNS_FILE, [_first]))

    @classmethod
    def open_to_read(cls, folder: Path) -> Self:
        """Open the store; where the disk is full or closed, to read alone."""
        with _damage_hint():
            return cls(Database.open_to_read(folder / RUNS_FILE, [_first]))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()

    @staticmethod
    def exists(folder: Path) -> bool:
        """Whether a data folder has a store, which may be empty."""
        return (folder / RUNS_FILE).exists()

    def has(self, run_id: str) -> bool:
        """Whether a run of exactly this id is kept."""
        with _damage_hint():
            return bool(self._database.read("SELECT 1 FROM runs WHERE id = ?", [run_id]))

    def interrupted(self, task: str) -> str:
        """Return the latest run of exactly this task if it was interrupted, else ""."""
        with _damage_hint():
            rows = self._database.read(
                "SELECT id, status FROM runs WHERE task = ? ORDER BY ended DESC, number DESC LIMIT 1",
                [_storable(task)],
            )
        return rows[0]["id"] if rows and rows[0]["status"] == "interrupted" else ""

    def keep(self, record: RunRecord, most: int | None) -> None:
        """Write a run, then let the oldest go that are over the bounds; None: no bound of number."""
        responses = list(_responses(record))
        light = _without_long_responses(record).model_dump()
        document = _storable(json.dumps(light, ensure_ascii=False, default=str))
        size = len(document) + sum(len(text) for _, text, _ in responses)
        with _damage_hint(), self._database.write() as connection:
            connection.execute("DELETE FROM runs WHERE id = ?", [record.id])
            connection.execute(
                "INSERT INTO runs (id, ended, status, task, strategy, seconds, calls, nodes,"
                " bytes, document) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [record.id, record.ended.isoformat(timespec="seconds"), record.status,
                 _storable(record.task), *_figures(record.outcome), size, document],
            )  # fmt: skip
            connection.executemany(
                "INSERT INTO responses (run, node, text, characters) VALUES (?, ?, ?, ?)",
                [(record.id, node, text, characters) for node, text, characters in responses],
            )
            _trim(connection, most)

    def recent(self, limit: int) -> list[RunRow]:
        """Return the latest runs, the newest first."""
        columns = ", ".join(RunRow.model_fields)
        with _damage_hint():
            rows = self._database.read(
                f"SELECT {columns} FROM runs ORDER BY number DESC LIMIT ?", [limit]  # noqa: S608 - our own names
            )  # fmt: skip
        return [RunRow.model_validate(dict(row)) for row in rows]

    def get(self, run_id: str, *, whole: bool = False) -> RunRecord:
        """Return a run by its id, by an unambiguous beginning of it, or the latest by "last".

        Only by its id where ``whole``. Long responses are cut in it (``SHORT_RESPONSE``).

        Raises:
            NotFoundError: There is no such run, or several begin so.
        """
        with _damage_hint():
            row = self._find(run_id)
            sizes = self._database.read(
                "SELECT node, characters FROM responses WHERE run = ? AND characters > ?",
                [row["id"], SHORT_RESPONSE],
            )
        if whole and row["id"] != run_id:
            raise NotFoundError(_no_run(run_id), hint=_LIST)
        try:
            record = RunRecord.model_validate_json(wellformed.json_text(row["document"]))
        except ValidationError as error:
            raise DataError(
                f"the run {row['id']} in {self._database.path} cannot be read by this toolsrv",
                hint="use the version that wrote it, or solve the task again",
            ) from error
        return _with_sizes(record, {one["node"]: one["characters"] for one in sizes})

    def whole(self, run_id: str) -> RunRecord:
        """Return a run as ``get`` does, with responses as long as they are kept.

        Raises:
            NotFoundError: There is no such run, or several begin so.
        """
        record = self.get(run_id)
        if record.outcome is None:
            return record
        with _damage_hint():
            rows = self._database.read(
                "SELECT node, text FROM responses WHERE run = ? AND characters > ?",
                [record.id, SHORT_RESPONSE],
            )
        texts = {row["node"]: row["text"] for row in rows}
        evidence = tuple(
            one.model_copy(update={"response": _value(texts[one.node])})
            if one.node in texts
            else one
            for one in record.outcome.evidence
        )
        outcome = record.outcome.model_copy(update={"evidence": evidence})
        return record.model_copy(update={"outcome": outcome})

    def response(
        self, run_id: str, node: int, *, offset: int = 0, limit: int | None = None
    ) -> ResponsePage:
        """Return the response of a node's call, ``limit`` characters from ``offset`` on.

        Raises:
            NotFoundError: There is no such run, or the node made no call.
        """
        record = self.get(run_id)
        found = record.evidence(node)
        if found is None:
            raise no_response(record, node)
        with _damage_hint():
            row = self._database.read(
                "SELECT substr(text, ?, ?) AS page, length(text) AS kept, characters"
                " FROM responses WHERE run = ? AND node = ?",
                [offset + 1, MOST_RESPONSE if limit is None else limit, record.id, found.node],
            )[0]
        return response_page(
            record.id, node, found, row["page"], offset, row["kept"], row["characters"]
        )

    def _find(self, run_id: str) -> sqlite3.Row:
        if run_id == "last":
            rows = self._database.read(
                "SELECT * FROM runs ORDER BY ended DESC, number DESC LIMIT 1"
            )
        else:
            rows = self._database.read(
                "SELECT * FROM runs WHERE substr(id, 1, length(?1)) = ?1 LIMIT 2", [run_id]
            )
        exact = [row for row in rows if row["id"] == run_id]
        if len(exact or rows) == 1:
            return (exact or rows)[0]
        problem = f"several runs begin with {run_id[:80]!r}" if rows else _unknown(run_id)
        raise NotFoundError(problem, hint=_LIST)


_LIST = "see the finished runs with: toolsrv run list"


def keep_run(folder: Path, record: RunRecord, most: int) -> str:
    """Keep a run, whatever the disk says; return "" or why it was not kept and what to do.

    ``most`` 0 keeps nothing.
    """
    if most == 0:
        return ""
    try:
        with RunStore.open(folder) as store:
            store.keep(record, most)
    except ToolsrvError as error:
        return f"the run was not kept: {error.message} ({error.hint})"
    return ""


def _responses(record: RunRecord) -> Iterator[tuple[int, str, int]]:
    """Yield node, text (capped) and number of characters of every response."""
    for one in record.outcome.evidence if record.outcome else ():
        text = _storable(response_text(one))
        yield one.node, text[:MOST_RESPONSE], len(text)


def _without_long_responses(record: RunRecord) -> RunRecord:
    """Return the record with long responses cut: they are kept beside it."""
    if record.outcome is None:
        return record
    evidence = tuple(_cut(one) for one in record.outcome.evidence)
    outcome = record.outcome.model_copy(update={"evidence": evidence})
    return record.model_copy(update={"outcome": outcome})


def _cut(evidence: Evidence) -> Evidence:
    text = response_text(evidence)
    if len(text) <= SHORT_RESPONSE:
        return evidence
    return evidence.model_copy(update={"response": f"{text[:SHORT_RESPONSE]}…"})


def _value(text: str) -> Any:
    """Return the JSON value of a kept response, or the text that it is."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _with_sizes(record: RunRecord, sizes: Mapping[int, int]) -> RunRecord:
    """Return a record whose cut responses say how long the whole ones are."""
    if record.outcome is None or not sizes:
        return record
    evidence = tuple(
        one.model_copy(update={"characters": sizes.get(one.node, 0)})
        for one in record.outcome.evidence
    )
    outcome = record.outcome.model_copy(update={"evidence": evidence})
    return record.model_copy(update={"outcome": outcome})


def _figures(outcome: Outcome | None) -> tuple[str, float, int, int]:
    if outcome is None:
        return "", 0.0, 0, 0
    return outcome.strategy, outcome.usage.seconds, outcome.usage.calls, len(outcome.tree)


def _storable(text: str) -> str:
    """Return text without lone surrogates and NUL, which SQLite does not hold."""
    return wellformed.text(text).replace("\0", "\ufffd")


def _unknown(run_id: str) -> str:
    return "no run is kept yet" if run_id == "last" else _no_run(run_id)


def _no_run(run_id: str) -> str:
    return f"no finished run {run_id[:80]!r} is kept"


def _trim(connection: sqlite3.Connection, most: int | None) -> None:
    """Delete what is over the bounds, the newest run never."""
    room = 0
    rows = connection.execute("SELECT number, bytes FROM runs ORDER BY number DESC").fetchall()
    for index, row in enumerate(rows):
        room += row["bytes"]
        if index and ((most is not None and index >= most) or room > MOST_BYTES):
            connection.execute("DELETE FROM runs WHERE number <= ?", [row["number"]])
            return


def _first(connection: sqlite3.Connection) -> None:
    connection.execute(
        "CREATE TABLE runs (number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE,"
        " ended TEXT NOT NULL, status TEXT NOT NULL, task TEXT NOT NULL, strategy TEXT NOT NULL,"
        " seconds REAL NOT NULL, calls INTEGER NOT NULL, nodes INTEGER NOT NULL,"
        " bytes INTEGER NOT NULL, document TEXT NOT NULL)"
    )
    connection.execute(
        "CREATE TABLE responses (run TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,"
        " node INTEGER NOT NULL, text TEXT NOT NULL, characters INTEGER NOT NULL,"
        " PRIMARY KEY (run, node))"
    )


@contextmanager
def _damage_hint() -> Iterator[None]:
    """Say of a damaged file what it holds, so that nobody fears to remove it."""
    try:
        yield
    except DamagedError as error:
        raise DamagedError(
            error.message, hint="it may be removed: it holds nothing but finished runs"
        ) from error
