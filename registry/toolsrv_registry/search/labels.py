"""What a search shows of APIs beside themselves, and the words that name them.

Reads the registry file only; ``visible`` is explained in ``schema.py``. What depends on the whole
catalog is read once and kept until the file changes.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

from toolsrv_registry.storage.database import CachedRead, Database
from toolsrv_registry.storage.entries import Terms, stored_terms

Value = TypeVar("Value")
_KEPT = 4
_HIDDEN = """
    SELECT catalogs.name AS name, count(*) AS apis
    FROM visible JOIN catalogs ON catalogs.number = visible.catalog
    WHERE visible.id IN ({ids})
    AND visible.catalog < ifnull((SELECT number FROM catalogs WHERE name = :catalog), 9e18)
    GROUP BY visible.catalog ORDER BY visible.catalog
"""
_CALLS = """
    SELECT id, catalogs.name AS catalog, json_extract(document, '$.method') AS method,
        json_extract(document, '$.url') AS url
    FROM apis JOIN catalogs ON catalogs.number = apis.catalog
    WHERE id IN (SELECT value FROM json_each(:ids))
"""
_TERMS = """
    SELECT members.id AS id, json_extract(tools.extra, '$.keys.pricing') AS pricing,
        json_extract(tools.extra, '$.keys.score') AS score
    FROM {source} AS members
    JOIN tools ON tools.catalog = members.catalog AND tools.position = members.tool
    WHERE members.id IN (SELECT value FROM json_each(:ids))
    AND (:catalog IS NULL
        OR members.catalog = (SELECT number FROM catalogs WHERE name = :catalog))
"""
_OWN_IDS = "SELECT id FROM apis WHERE catalog = (SELECT number FROM catalogs WHERE name = :catalog)"
_GIVEN_IDS = "SELECT value FROM json_each(:ids)"


class Label(NamedTuple):
    """The catalog that an API is served from, and whether a newer text waits to be accepted."""

    catalog: str
    changed: bool


class ApiLabels:
    """Labels of APIs, members of catalogs and what hides them, words of names. Thread-safe.

    ``state`` tells apart any two states of the catalogs.
    """

    def __init__(self, database: Database, state: CachedRead[str]) -> None:
        self._database = database
        self._state = state
        self._members: _StateCache[frozenset[str]] = _StateCache()
        self._counts: _StateCache[Mapping[str, int]] = _StateCache()
        self._names: _StateCache[frozenset[str]] = _StateCache()
        self._hidden: _StateCache[Mapping[str, int]] = _StateCache()

    def labels(self, api_ids: Sequence[str]) -> dict[str, Label]:
        """Return the labels of the visible APIs among the ids."""
        rows = self._database.read(
            "SELECT id, catalogs.name AS catalog, pending IS NOT NULL AS changed"
            " FROM visible JOIN catalogs ON catalogs.number = visible.catalog"
            " WHERE id IN (SELECT value FROM json_each(?))",
            [json.dumps(list(api_ids))],
        )
        return {row["id"]: Label(row["catalog"], bool(row["changed"])) for row in rows}

    def terms(self, api_ids: Iterable[str], *, catalog: str | None = None) -> dict[str, Terms]:
        """Return what the providers of some APIs ask: of the visible ones, or of one catalog's."""
        rows = self._database.read(
            _TERMS.format(source="visible" if catalog is None else "apis"),
            {"ids": json.dumps(list(api_ids)), "catalog": catalog},
        )
        return {row["id"]: stored_terms(row["pricing"], row["score"]) for row in rows}

    def calls_by_id(self, ids: Iterable[str]) -> dict[str, dict[str, tuple[str, str]]]:
        """Return method and address of the APIs that catalogs have under some ids.

        By id, then by catalog, hidden and disabled ones included.
        """
        found: dict[str, dict[str, tuple[str, str]]] = {}
        for row in self._database.read(_CALLS, {"ids": json.dumps(list(ids))}):
            found.setdefault(row["id"], {})[row["catalog"]] = (row["method"], row["url"])
        return found

    def hidden_behind(self, catalog: str, ids: Iterable[str] | None = None) -> Mapping[str, int]:
        """Return how many APIs of a catalog no search finds, by the catalog that hides them.

        Of several enabled catalogs with one id the earliest serves it. With ``ids`` these are
        looked at instead of what is stored: those of a catalog that is about to be put.
        """
        if ids is not None:
            values = {"catalog": catalog, "ids": json.dumps(list(ids))}
            return self._read_hidden(_GIVEN_IDS, values)
        values = {"catalog": catalog}
        state = self._state.get()
        return self._hidden.get(state, catalog, lambda: self._read_hidden(_OWN_IDS, values))

    def documents_of(self, catalog: str) -> frozenset[str]:
        """Return the document hashes of a catalog's visible APIs; O(1) while nothing changed."""
        return self._members.get(self._state.get(), catalog, lambda: self._read_documents(catalog))

    def names(self) -> frozenset[str]:
        """Return the words in the names of APIs, tools and categories; O(1) while kept."""
        return self._names.get(self._state.get(), "", self._read_names)

    def counts(self) -> Mapping[str, int]:
        """Return in how many APIs' texts each word stands as it is written.

        Of any catalog, unstemmed; O(1) while kept, some 0.2 s for 16,000 APIs to read.
        """
        return self._counts.get(self._state.get(), "", self._read_counts)

    def _read_documents(self, catalog: str) -> frozenset[str]:
        rows = self._database.read(
            "SELECT document_hash FROM visible"
            " WHERE visible.catalog = (SELECT number FROM catalogs WHERE name = ?)",
            [catalog],
        )
        return frozenset(row["document_hash"] for row in rows)

    def _read_hidden(self, ids: str, values: Mapping[str, str]) -> Mapping[str, int]:
        rows = self._database.read(_HIDDEN.format(ids=ids), values)
        return {row["name"]: int(row["apis"]) for row in rows}

    def _read_names(self) -> frozenset[str]:
        rows = self._database.read("SELECT name, tool, category FROM words")
        return frozenset(word for row in rows for column in row for word in column.split())

    def _read_counts(self) -> Counter[str]:
        rows = self._database.read(
            "SELECT name || ' ' || tool || ' ' || category || ' ' || description || ' ' ||"
            " about_tool || ' ' || parameters AS text FROM words"
        )
        counts: Counter[str] = Counter()
        for row in rows:
            counts.update(set(row["text"].split()))
        return counts


class _StateCache(Generic[Value]):
    """A few values of one state of the file."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._state = ""
        self._values: dict[str, Value] = {}

    def get(self, state: str, key: str, read: Callable[[], Value]) -> Value:
        with self._lock:
            if state != self._state or len(self._values) >= _KEPT:
                self._state, self._values = state, {}
            if key not in self._values:
                self._values[key] = read()
            return self._values[key]
