"""Rows of the registry's tables, read as records and written inside a caller's transaction.

Holds catalogs, tools and APIs, the accepted texts of removed APIs, and pointers to finished vector
collections. An API that is missing for one import is compared with its last accepted text on its
return.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from pydantic_core import PydanticSerializationError

from toolsrv_registry import documents, names
from toolsrv_registry.api import ORIGINAL, Api, Catalog, Tool
from toolsrv_registry.errors import DataError
from toolsrv_registry.storage.database import Database
from toolsrv_registry.storage.entries import Changes, ImportOptions, IndexPointer, Origin


def keep_removed(db: sqlite3.Connection, number: int, ids: Sequence[str]) -> None:
    """Keep the accepted texts of APIs of a catalog that are about to be deleted."""
    db.executemany(
        "INSERT OR REPLACE INTO removed SELECT catalog, id, content_hash, document FROM apis"
        " WHERE catalog = ? AND id = ?",
        [(number, api_id) for api_id in ids],
    )


def take_removed(db: sqlite3.Connection, number: int, ids: Collection[str]) -> list[sqlite3.Row]:
    """Return id, content hash and text of those of the APIs that were removed, and forget them."""
    return db.execute(
        "DELETE FROM removed WHERE catalog = ? AND id IN (SELECT value FROM json_each(?))"
        " RETURNING id, content_hash, document",
        [number, json.dumps(list(ids))],
    ).fetchall()


@lru_cache(maxsize=4_096)
def api_of(document: str) -> Api:
    """Return the API of a stored document; searches ask for the same ones again and again."""
    return Api.model_validate_json(document)


def catalog_hash(catalog: Catalog, files: Sequence[str] = ()) -> str:
    """Return a hash over a whole catalog, and the files it stands in: the same hash, the same all.

    Raises DataError for text that is not valid Unicode: nothing could store it.
    """
    total = hashlib.sha256(catalog.name.encode("utf-8", "surrogatepass"))
    try:
        for tool in catalog.tools:  # API by API: the text of a whole large catalog takes 0.3 GB
            total.update(tool.model_copy(update={"apis": ()}).model_dump_json().encode())
            for api in tool.apis:
                total.update(api.model_dump_json().encode())
        total.update(json.dumps(files).encode())
        return total.hexdigest()
    except PydanticSerializationError as error:
        raise DataError(
            f"the catalog {catalog.name!r} holds text that is not valid Unicode: {error}",
            hint="import it again with toolsrv, which cleans such text",
        ) from error


def put_catalog_row(
    db: sqlite3.Connection,
    name: str,
    total: str,
    source: str,
    origin: Origin | None,
    options: ImportOptions | None = None,
) -> int:
    """Add or update the row of a catalog; return its number.

    An empty source keeps the old one, its origin and its options.
    """
    now = datetime.now(UTC).isoformat(timespec="seconds")
    rows = db.execute(
        "INSERT INTO catalogs (name, content_hash, updated_at, source, origin, options)"
        " VALUES (?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (name) DO UPDATE SET content_hash = excluded.content_hash,"
        " updated_at = excluded.updated_at, revision = revision + 1,"
        " origin = CASE excluded.source WHEN '' THEN origin ELSE excluded.origin END,"
        " options = CASE excluded.source WHEN '' THEN options ELSE excluded.options END,"
        " source = CASE excluded.source WHEN '' THEN source ELSE excluded.source END"
        " RETURNING number",
        [name, total, now, source, origin_json(origin), options_json(options)],
    ).fetchall()
    return int(rows[0]["number"])


def options_json(options: ImportOptions | None) -> str:
    """Return import options as their column holds them."""
    return "{}" if options is None else options.model_dump_json(exclude_defaults=True)


def origin_json(origin: Origin | None) -> str:
    """Return an origin as its column holds it."""
    return "null" if origin is None else origin.model_dump_json()


def put_tools(
    db: sqlite3.Connection, number: int, tools: Sequence[Tool], files: Sequence[str]
) -> None:
    """Replace the tools of a catalog; ``files`` says where each stands, or nothing of any."""
    db.execute("DELETE FROM tools WHERE catalog = ?", [number])
    db.executemany(
        "INSERT INTO tools (catalog, position, category, key, name, description, home_url, host,"
        " extra, file) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                number,
                position,
                tool.category,
                names.readable_name(tool.name),
                tool.name,
                tool.description,
                tool.home_url,
                tool.host,
                _json(tool.extra),
                file,
            )
            for position, (tool, file) in enumerate(
                zip(tools, files or [""] * len(tools), strict=True)
            )
        ],
    )


def put_apis(db: sqlite3.Connection, number: int, catalog: Catalog, *, hold: bool) -> Changes:
    """Make the APIs of a catalog those of ``catalog``; with ``hold`` a new text only waits.

    One that was removed comes back with the text that was accepted then.
    """
    hashes = {api.id: documents.content_hash(api) for api in catalog.apis}
    rows = db.execute("SELECT id, content_hash, pending_hash FROM apis WHERE catalog = ?", [number])
    old = {row["id"]: (row["content_hash"], row["pending_hash"]) for row in rows}
    removed = tuple(i for i in old if i not in hashes)
    keep_removed(db, number, removed)
    delete_apis(db, number, removed)
    back = take_removed(db, number, hashes.keys() - old.keys())
    for row in back:
        api = Api.model_validate_json(row["document"])
        put_api(db, number, 0, api, row["content_hash"])
        old[api.id] = (row["content_hash"], None)
    returned = {row["id"] for row in back}
    added: list[str] = []
    changed: list[str] = []
    for position, api in enumerate(catalog.apis):
        served, waiting = old.get(api.id, ("", None))
        content = hashes[api.id]
        if not served:
            added.append(api.id)
            put_api(db, number, position, api, content)
        elif content == served:
            if api.id in returned:
                added.append(api.id)
            elif waiting is not None:
                _wait(db, number, api.id, None, None)
        elif not hold:
            changed.append(api.id)
            put_api(db, number, position, api, content)
        elif content != waiting:
            changed.append(api.id)
            _wait(db, number, api.id, api.model_dump_json(), content)
    _place_apis(db, number, catalog.tools)
    _put_originals(db, number, catalog.tools, hashes)
    return Changes(
        added=tuple(added),
        changed=tuple(changed),
        removed=removed,
        unchanged=len(hashes) - len(added) - len(changed),
    )


def compare(old: Mapping[str, str], away: Mapping[str, str], catalog: Catalog) -> Changes:
    """Return what differs between content hashes by id and the APIs of a catalog.

    ``away`` holds those of APIs that were removed.
    """
    new = {api.id: documents.content_hash(api) for api in catalog.apis}
    known = {**away, **old}
    return Changes(
        added=tuple(i for i, one in new.items() if i not in old and known.get(i, one) == one),
        changed=tuple(i for i, one in new.items() if known.get(i, one) != one),
        removed=tuple(i for i in old if i not in new),
        unchanged=sum(old.get(i) == content for i, content in new.items()),
    )


def accept_apis(db: sqlite3.Connection, number: int, ids: Iterable[str] | None) -> int:
    """Serve the texts that wait: of the named APIs, or all of them; return how many."""
    rows = db.execute(
        "SELECT id, position, pending, pending_hash FROM apis"
        " WHERE catalog = ? AND pending IS NOT NULL",
        [number],
    ).fetchall()
    wanted = None if ids is None else frozenset(ids)
    chosen = [row for row in rows if wanted is None or row["id"] in wanted]
    for row in chosen:
        api = Api.model_validate_json(row["pending"])
        put_api(db, number, row["position"], api, row["pending_hash"])
        db.execute(
            "DELETE FROM originals WHERE catalog = ? AND id = ? AND content_hash != ?",
            [number, row["id"], row["pending_hash"]],
        )
    if chosen:
        db.execute("UPDATE catalogs SET revision = revision + 1 WHERE number = ?", [number])
    return len(chosen)


def put_api(db: sqlite3.Connection, number: int, position: int, api: Api, content: str) -> None:
    """Add or update one API and its word row; ``content`` is its content hash."""
    row = db.execute(
        "INSERT INTO apis (catalog, position, id, category, tool_key, content_hash, accepted_hash,"
        " document_hash, document) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (catalog, id) DO UPDATE SET category = excluded.category,"
        " tool_key = excluded.tool_key, content_hash = excluded.content_hash,"
        " accepted_hash = excluded.accepted_hash, document_hash = excluded.document_hash,"
        " document = excluded.document, pending = NULL, pending_hash = NULL"
        " RETURNING number",
        [
            number,
            position,
            api.id,
            api.category,
            api.tool_key,
            content,
            content,
            documents.document_hash(documents.document_text(api)),
            api.model_dump_json(),
        ],
    ).fetchall()[0]
    db.execute("DELETE FROM words WHERE rowid = ?", [row["number"]])
    db.execute(
        "INSERT INTO words (rowid, name, tool, category, description, about_tool, parameters)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        [row["number"], *documents.columns(api)],
    )


def delete_apis(db: sqlite3.Connection, number: int, ids: Sequence[str]) -> None:
    """Delete APIs of a catalog together with their word rows."""
    keys = [(number, api_id) for api_id in ids]
    db.executemany(
        "DELETE FROM words WHERE rowid = (SELECT number FROM apis WHERE catalog = ? AND id = ?)",
        keys,
    )
    db.executemany("DELETE FROM apis WHERE catalog = ? AND id = ?", keys)


def read_tools(tools: Iterable[sqlite3.Row], apis: Iterable[sqlite3.Row]) -> tuple[Tool, ...]:
    """Return the tools that rows of ``tools`` and ``apis`` hold, both in catalog order."""
    members: dict[int, list[sqlite3.Row]] = {}
    for row in apis:
        members.setdefault(row["tool"], []).append(row)
    return tuple(_tool(row, members.get(row["position"], [])) for row in tools)


def _tool(row: sqlite3.Row, apis: Sequence[sqlite3.Row]) -> Tool:
    extras = tuple(
        json.loads(api["extra"]) | ({ORIGINAL: api["original"]} if api["original"] else {})
        for api in apis
    )
    return Tool(
        category=row["category"],
        name=row["name"],
        description=row["description"],
        home_url=row["home_url"],
        host=row["host"],
        apis=tuple(Api.model_validate_json(api["document"]) for api in apis),
        extra=json.loads(row["extra"]),
        api_extras=extras if any(extras) else (),
    )


def _wait(
    db: sqlite3.Connection, number: int, api_id: str, document: str | None, content: str | None
) -> None:
    db.execute(
        "UPDATE apis SET pending = ?, pending_hash = ? WHERE catalog = ? AND id = ?",
        [document, content, number, api_id],
    )


def _place_apis(db: sqlite3.Connection, number: int, tools: Sequence[Tool]) -> None:
    """Write where each API stands, and what an export needs of it."""
    places = (
        (at, api.id, extra)
        for at, tool in enumerate(tools)
        for api, extra in zip(tool.apis, tool.api_extras or ({},) * len(tool.apis), strict=True)
    )
    db.executemany(  # one row after the other: what is kept beside a large catalog is much text
        "UPDATE apis SET position = ?, tool = ?, extra = ? WHERE catalog = ? AND id = ?",
        (
            (position, at, _json(_beside(extra)), number, api_id)
            for position, (at, api_id, extra) in enumerate(places)
        ),
    )


def _beside(extra: Mapping[str, Any]) -> Mapping[str, Any]:
    return {key: one for key, one in extra.items() if key != ORIGINAL} if extra else extra


def _put_originals(
    db: sqlite3.Connection, number: int, tools: Sequence[Tool], hashes: Mapping[str, str]
) -> None:
    """Keep the originals of the texts just read, and of older ones that go on being served."""
    db.execute(
        "DELETE FROM originals WHERE catalog = ?1 AND NOT EXISTS ("
        " SELECT 1 FROM apis WHERE apis.catalog = ?1 AND apis.id = originals.id"
        " AND apis.content_hash = originals.content_hash AND pending IS NOT NULL)",
        [number],
    )
    db.executemany(
        "INSERT INTO originals (catalog, id, content_hash, original) VALUES (?, ?, ?, ?)",
        (
            (number, api.id, hashes[api.id], extra[ORIGINAL])
            for tool in tools
            for api, extra in zip(tool.apis, tool.api_extras, strict=bool(tool.api_extras))
            if ORIGINAL in extra
        ),
    )


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if value else "{}"


class Pointers:
    """The finished collections that a registry file knows, by place and encoder."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def at(self, place: str) -> list[IndexPointer]:
        """Return all finished collections at a place."""
        rows = self._database.read("SELECT * FROM indexes WHERE place = ?", [place])
        return [_pointer(row) for row in rows]

    def get(self, place: str, encoder_digest: str) -> IndexPointer | None:
        """Return the finished collection of an encoder at a place, if any."""
        rows = self._database.read(
            "SELECT * FROM indexes WHERE place = ? AND encoder_digest = ?", [place, encoder_digest]
        )
        return _pointer(rows[0]) if rows else None

    def set(self, pointer: IndexPointer) -> None:
        """Point to a finished collection, in one transaction."""
        with self._database.write() as db:
            db.execute(
                "INSERT OR REPLACE INTO indexes VALUES (:place, :encoder_digest, :encoder,"
                " :collection, :content_hash, :documents, :built_at, :files)",
                pointer.model_dump() | {"files": json.dumps(pointer.files)},
            )

    def drop(self, place: str, *, encoder_digest: str | None = None) -> None:
        """Forget the collections at a place: one encoder's, or all of them."""
        with self._database.write() as db:
            db.execute(
                "DELETE FROM indexes WHERE place = ?1 AND encoder_digest = ifnull(?2, encoder_digest)",
                (place, encoder_digest),
            )


def _pointer(row: sqlite3.Row) -> IndexPointer:
    return _pointer_of(tuple(row.keys()), tuple(row))


@lru_cache(maxsize=8)
def _pointer_of(names: tuple[str, ...], values: tuple[Any, ...]) -> IndexPointer:
    """Return the pointer of a row; every search asks for the same one twice."""
    row = dict(zip(names, values, strict=True))
    return IndexPointer.model_validate(row | {"files": json.loads(row["files"])})
