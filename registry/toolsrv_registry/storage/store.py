"""The catalogs on disk: APIs, tools and hashes; ``names`` finds them by name.

One SQLite file, safe for several threads and processes. With n APIs in all: ``get`` O(log n);
``put_catalog`` O(size of the catalog), writing only what changed; ``content_hash`` O(n) when a
catalog has changed since, else O(1); listings O(rows returned).

The same API id may occur in several catalogs. Each keeps its row; unless a catalog is named, an
id means the API of the first enabled catalog that has it (catalogs are ordered by when they were
first put); ``ApiLabels.hidden_behind`` counts which ones that hides. Knows nothing about vectors
beyond the pointers to their collections (``Pointers`` in ``rows``).
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Self, TypeVar

from toolsrv_registry import documents
from toolsrv_registry.api import RESPONSE_SCHEMA, Api, Catalog
from toolsrv_registry.catalog_state import STATE
from toolsrv_registry.errors import DataError, NotFoundError, list_names, shorten
from toolsrv_registry.search.labels import ApiLabels
from toolsrv_registry.storage import schema as queries
from toolsrv_registry.storage.database import CachedRead, Database
from toolsrv_registry.storage.entries import (
    CatalogEntry,
    Changes,
    Document,
    ImportOptions,
    Origin,
    Pending,
    StoreStats,
    Terms,
    ToolEntry,
    stored_terms,
)
from toolsrv_registry.storage.health import Health, HealthEntry
from toolsrv_registry.storage.name_index import NameIndex
from toolsrv_registry.storage.response_schemas import ResponseSchemas
from toolsrv_registry.storage.rows import (
    Pointers,
    accept_apis,
    api_of,
    catalog_hash,
    compare,
    delete_apis,
    options_json,
    origin_json,
    put_apis,
    put_catalog_row,
    put_tools,
    read_tools,
)
from toolsrv_registry.storage.schema import MIGRATIONS

_PAGE = 1_000
"""Documents that are read at once: those of a large catalog take hundreds of megabytes."""

Value = TypeVar("Value")


class Store:
    """An open registry file; ``Store.open`` makes one. ``read_only``: it cannot be written."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.read_only = database.read_only
        self.health = Health(database)
        self.response_schemas = ResponseSchemas(database)
        self.pointers = Pointers(database)
        self._lock = threading.Lock()
        self._hashes: tuple[str, str] = ("", "")
        self._size = CachedRead(database, self._read_size)
        self._state = CachedRead(database, self._read_state)
        self.names = NameIndex(database)
        self.labels = ApiLabels(database, self._state)

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open or create the file; one that cannot be written is opened to be read.

        Raises DataError (damaged, unreadable, foreign, newer) and BusyError.
        """
        return cls(Database.open_to_read(path, MIGRATIONS))

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def path(self) -> Path:
        """Where the file lies."""
        return self._database.path

    # --- catalogs -----------------------------------------------------------------------------

    def put_catalog(
        self,
        catalog: Catalog,
        *,
        hold: bool = False,
        source: str = "",
        files: Sequence[str] = (),
        origin: Origin | None = None,
        options: ImportOptions | None = None,
    ) -> Changes:
        """Make the stored catalog equal to this one, in one transaction.

        New APIs are served at once. A changed one too, unless ``hold``: then its accepted text
        goes on being served, and the new one waits for ``accept``. An API that was removed and
        returns is compared with the text that was accepted then. ``source`` says where the
        catalog was read, ``files`` where in it each tool stands, ``origin`` who published it,
        ``options`` how to read it again. Raises DataError when the catalog lists an id twice.
        """
        twice = [i for i, count in Counter(api.id for api in catalog.apis).items() if count > 1]
        if twice:
            raise DataError(
                f"the catalog {catalog.name!r} lists the API {twice[0]!r} twice",
                hint="give every API of a catalog its own id",
            )
        total = catalog_hash(catalog, files)
        if self._unchanged(
            catalog.name, total, (source, origin_json(origin), options_json(options)), hold=hold
        ):
            return Changes(unchanged=len(catalog.apis))
        with self._database.write() as db:
            number = put_catalog_row(db, catalog.name, total, source, origin, options)
            put_tools(db, number, catalog.tools, files)
            return put_apis(db, number, catalog, hold=hold)

    def preview(self, catalog: Catalog) -> Changes:
        """Return what ``put_catalog`` would change in what is served; writes nothing."""
        served, away = (
            {
                row["id"]: row["content_hash"]
                for row in self._database.read(
                    f"SELECT id, content_hash FROM {table} WHERE catalog ="  # noqa: S608 - ours
                    " (SELECT number FROM catalogs WHERE name = ?)",
                    [catalog.name],
                )
            }
            for table in ("apis", "removed")
        )
        return compare(served, away, catalog)

    def catalog(self, name: str, *, waiting: bool = False) -> Catalog:
        """Return a whole catalog as it is served, with what only an export needs.

        With ``waiting`` as it was put last: with the texts that wait in place of those that are
        served. Raises NotFoundError.
        """
        number = self._catalog_number(name)
        tools = self._database.read(
            "SELECT * FROM tools WHERE catalog = ? ORDER BY position", [number]
        )
        apis = self._database.read(
            queries.WAITING_CATALOG_QUERY if waiting else queries.CATALOG_QUERY, [number]
        )
        return Catalog(name=name, tools=read_tools(tools, apis))

    def files(self, name: str) -> tuple[str, ...]:
        """Return the file of its source that each tool of a catalog stands in, in their order.

        ``""`` where that is unknown. Raises NotFoundError.
        """
        rows = self._database.read(
            "SELECT file FROM tools WHERE catalog = ? ORDER BY position",
            [self._catalog_number(name)],
        )
        return tuple(row["file"] for row in rows)

    def accepted(self, name: str, ids: Iterable[str]) -> dict[str, Api]:
        """Return the accepted texts of those of the APIs that a catalog has, or had, by id."""
        rows = self._database.read(
            queries.ACCEPTED_QUERY, {"name": name, "ids": json.dumps(list(ids))}
        )
        return {row["id"]: Api.model_validate_json(row["document"]) for row in rows}

    def remove_catalog(self, name: str) -> int:
        """Remove a catalog with all its APIs; return how many. Raises NotFoundError."""
        with self._database.write() as db:
            number = self._catalog_number(name)
            ids = [row["id"] for row in db.execute("SELECT id FROM apis WHERE catalog=?", [number])]
            delete_apis(db, number, ids)
            db.execute("DELETE FROM catalogs WHERE number = ?", [number])
        return len(ids)

    def set_enabled(self, name: str, enabled: bool) -> None:
        """Show or hide a catalog's APIs. Raises NotFoundError."""
        with self._database.write() as db:
            number = self._catalog_number(name)
            db.execute("UPDATE catalogs SET enabled = ? WHERE number = ?", [int(enabled), number])

    def accept(self, name: str, ids: Iterable[str] | None = None) -> int:
        """Serve the changed texts of a catalog, or of some of its APIs; return how many.

        Raises NotFoundError.
        """
        with self._database.write() as db:
            return accept_apis(db, self._catalog_number(name), ids)

    def changed(self, name: str) -> list[str]:
        """Return the ids of a catalog's APIs with a new text that waits to be accepted."""
        rows = self._database.read(
            "SELECT id FROM apis WHERE catalog = ? AND pending IS NOT NULL ORDER BY position",
            [self._catalog_number(name)],
        )
        return [row["id"] for row in rows]

    def pending(self, name: str) -> list[Pending]:
        """Return what waits to be accepted in a catalog, beside what is served meanwhile."""
        rows = self._database.read(
            "SELECT document, pending FROM apis WHERE catalog = ? AND pending IS NOT NULL"
            " ORDER BY position",
            [self._catalog_number(name)],
        )
        return [
            Pending(
                served=Api.model_validate_json(row["document"]),
                new=Api.model_validate_json(row["pending"]),
            )
            for row in rows
        ]

    def catalogs(self) -> list[CatalogEntry]:
        """Return all catalogs in the order in which they were first put."""
        rows = self._database.read(
            "SELECT name, enabled, content_hash, updated_at, source, origin, options,"
            " (SELECT count(*) FROM tools WHERE catalog = number) AS tools,"
            " (SELECT count(*) FROM apis WHERE apis.catalog = catalogs.number) AS apis,"
            " (SELECT count(*) FROM apis WHERE apis.catalog = catalogs.number"
            "   AND pending IS NOT NULL) AS changed"
            " FROM catalogs ORDER BY number"
        )
        return [
            CatalogEntry.model_validate(
                {**row, **{key: json.loads(row[key]) for key in ("origin", "options")}}
            )
            for row in rows
        ]

    # --- APIs ---------------------------------------------------------------------------------

    def get(self, api_id: str, *, catalog: str | None = None) -> Api:
        """Return one API; raises NotFoundError with the nearest ids in its hint."""
        if catalog is None:
            rows = self._database.read("SELECT document FROM visible WHERE id = ?", [api_id])
        else:
            rows = self._database.read(
                "SELECT document FROM apis WHERE id = ? AND catalog = ?",
                [api_id, self._catalog_number(catalog)],
            )
        if not rows:
            near = self.names.nearest_ids(api_id)
            hint = (
                f"did you mean {list_names(near)}?" if near else 'look for it: toolsrv search "…"'
            )
            place = "" if catalog is None else f" in {shorten(catalog)!r}"
            raise NotFoundError(f"no API{place} has the id {shorten(api_id)!r}", hint=hint)
        return Api.model_validate_json(rows[0]["document"])

    def home(self, api_id: str) -> tuple[str, str, Any, bool, Terms]:
        """Return the catalog an id is served from, its tool's page and its response schema.

        ``""`` for what is unknown, None for the schema; one that a model made comes before that of
        the source. Then whether a changed text waits to be accepted, and its provider's terms.
        """
        rows = self._database.read(queries.HOME_QUERY, [api_id])
        if not rows:
            return "", "", None, False, Terms()
        row = rows[0]
        schema = json.loads(row["made"] or "null")
        schema = json.loads(row["extra"]).get(RESPONSE_SCHEMA) if schema is None else schema
        terms = stored_terms(row["pricing"], row["score"])
        return row["catalog"], row["home_url"] or "", schema, bool(row["waiting"]), terms

    def get_many(self, api_ids: Sequence[str]) -> dict[str, Api]:
        """Return the visible APIs among the ids, by id."""
        rows = self._database.read(
            "SELECT id, document FROM visible WHERE id IN (SELECT value FROM json_each(?))",
            [json.dumps(list(api_ids))],
        )
        return {row["id"]: api_of(row["document"]) for row in rows}

    def apis(
        self,
        *,
        catalog: str | None = None,
        category: str | None = None,
        tool: str | None = None,
        limit: int | None = None,
        offset: int = 0,
    ) -> list[Api]:
        """Return APIs in catalog order: the visible ones, or all of one named catalog.

        Raises NotFoundError for an unknown catalog, category or tool.
        """
        place = self.names.resolve_place(category, tool)
        number = None if catalog is None else self._catalog_number(catalog)
        rows = self._database.read(
            queries.APIS_QUERY.format(source="visible" if catalog is None else "apis"),
            {**place, "catalog": number, "limit": -1 if limit is None else limit, "offset": offset},
        )
        return [Api.model_validate_json(row["document"]) for row in rows]

    def tools(self, *, catalog: str | None = None, category: str | None = None) -> list[ToolEntry]:
        """Return the tools of the enabled catalogs, or of one named catalog, in its order."""
        number = None if catalog is None else self._catalog_number(catalog)
        rows = self._database.read(
            queries.TOOLS_QUERY,
            {"catalog": number, "category": self.names.resolve_place(category, None)["category"]},
        )
        return [ToolEntry.model_validate(dict(row)) for row in rows]

    def size(self) -> int:
        """Return the number of stored APIs, hidden ones included; O(1) on the word index."""
        return self._size.get()

    def stats(self) -> StoreStats:
        """Return totals over the enabled catalogs."""
        row = self._database.read(
            "SELECT (SELECT count(*) FROM catalogs WHERE enabled) AS catalogs,"
            " (SELECT count(*) FROM tools JOIN catalogs ON number = catalog WHERE enabled) AS tools,"
            " (SELECT count(*) FROM visible) AS apis,"
            " (SELECT count(DISTINCT category) FROM visible) AS categories"
        )[0]
        files = [self.path, self.path.with_name(self.path.name + "-wal")]
        size = sum(file.stat().st_size for file in files if file.exists())
        return StoreStats(**dict(row), bytes=size)

    # --- checks -------------------------------------------------------------------------------

    def dead(self) -> Mapping[str, str]:
        """Return the visible APIs whose last check found them dead: id -> ``404 on 2026-11-20``.

        Cheap enough for every search: computed again only after the file has changed.
        """
        return self.health.dead()

    def health_of(self, api_id: str) -> HealthEntry | None:
        """Return the last check of a visible API as its text stands now, if there is one."""
        return self.health.of(api_id)

    def checks(self, apis: Sequence[Api]) -> dict[str, HealthEntry]:
        """Return the last check of each of these APIs, hidden ones too, with just this text."""
        latest = self.health.latest([api.id for api in apis])
        known = {api_id for api_id, _ in latest}
        found = {
            api.id: latest.get((api.id, documents.content_hash(api)))
            for api in apis
            if api.id in known
        }
        return {api_id: check for api_id, check in found.items() if check is not None}

    # --- reading without change ---------------------------------------------------------------

    def kept(self, read: Callable[[], Value]) -> CachedRead[Value]:
        """Return what keeps a reading of this file until the file changes."""
        return CachedRead(self._database, read)

    def steady(self) -> AbstractContextManager[None]:
        """Look only once whether another process wrote the file: for one search."""
        return self._database.steady()

    # --- for the vector index -----------------------------------------------------------------

    def content_hash(self) -> str:
        """Return a hash over the texts of all visible APIs: what a vector index depends on."""
        state = self._state.get()
        with self._lock:
            if self._hashes[0] == state:
                return self._hashes[1]
        rows = self._database.read(
            "SELECT DISTINCT document_hash FROM visible ORDER BY document_hash"
        )
        total = documents.contents_hash(row["document_hash"] for row in rows)
        with self._lock:
            self._hashes = (state, total)
        return total

    def documents(self) -> list[Document]:
        """Return the distinct texts of all visible APIs, ordered by hash."""
        found: list[Document] = []
        after = ""
        while rows := self._database.read(queries.DOCUMENTS_QUERY, [after, _PAGE]):
            found += [
                Document(
                    hash=row["document_hash"],
                    text=documents.document_text(Api.model_validate_json(row["document"])),
                    category=row["category"],
                    tool_key=row["tool_key"],
                )
                for row in rows
            ]
            after = found[-1].hash
        return found

    def state_hash(self) -> str:
        """Return a hash that changes with anything a search may see; cheap."""
        return hashlib.sha256(self._state.get().encode()).hexdigest()

    def word_rows(self) -> list[tuple[str, ...]]:
        """Return the visible APIs in a fixed order, each as the lexicon wants it.

        Id, document hash, category, tool key, catalog, then the fields of ``documents.Columns``.
        """
        return [tuple(row) for row in self._database.read(queries.WORD_ROWS_QUERY)]

    def owner(self) -> str:
        """Return the random name this file got when it was made."""
        return str(self._database.read("SELECT id FROM owner")[0]["id"])

    # --- helpers ------------------------------------------------------------------------------

    def _read_size(self) -> int:
        return int(self._database.read("SELECT count(*) AS n FROM apis")[0]["n"])

    def _read_state(self) -> str:
        return repr([tuple(row) for row in self._database.read(STATE)])

    def _unchanged(
        self, name: str, total: str, came_from: tuple[str, str, str], *, hold: bool
    ) -> bool:
        """Return whether putting a catalog of this hash would write nothing.

        ``came_from`` are the columns source, origin and options.
        """
        rows = self._database.read(
            "SELECT content_hash, source, origin, options, EXISTS (SELECT 1 FROM apis"
            " WHERE catalog = catalogs.number AND pending IS NOT NULL) AS waiting"
            " FROM catalogs WHERE name = ?",
            [name],
        )
        return bool(
            rows
            and rows[0]["content_hash"] == total
            and (not came_from[0] or came_from == tuple(rows[0])[1:4])
            and (hold or not rows[0]["waiting"])
        )

    def _catalog_number(self, name: str) -> int:
        rows = self._database.read("SELECT number, name FROM catalogs ORDER BY number")
        known = {row["name"]: int(row["number"]) for row in rows}
        if name not in known:
            hint = f"there are {list_names(list(known))}" if known else "import one first"
            raise NotFoundError(f"no catalog is called {shorten(name)!r}", hint=hint)
        return known[name]
