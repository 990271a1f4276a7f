"""The tables of the registry's SQLite file, one migration per version.

``apis`` has one row per API and catalog; ``words`` is its FTS5 index (same rowid) over
preprocessed words, stemmed by SQLite's porter tokenizer; ``visible`` is what a search may find:
APIs of enabled catalogs, and of several with one id only that of the first catalog. ``originals``
is for exports alone, ``removed`` for imports. ``owner`` names this file, so
that collections on a shared Chroma server can be told apart; ``indexes`` points to the finished vector collection per place and encoder.

Add a migration, never change one that has shipped.
"""

from __future__ import annotations

import sqlite3

from toolsrv_registry import documents
from toolsrv_registry.api import Api
from toolsrv_registry.database import Migration
from toolsrv_registry.schema_health import create_health

_FIRST = (
    "CREATE TABLE owner (id TEXT NOT NULL) STRICT",
    "INSERT INTO owner VALUES (lower(hex(randomblob(8))))",
    """
    CREATE TABLE catalogs (
        number INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        enabled INTEGER NOT NULL DEFAULT 1,
        content_hash TEXT NOT NULL,
        updated_at TEXT NOT NULL
    ) STRICT
    """,
    """
    CREATE TABLE tools (
        catalog INTEGER NOT NULL REFERENCES catalogs ON DELETE CASCADE,
        position INTEGER NOT NULL,
        category TEXT NOT NULL,
        key TEXT NOT NULL,
        name TEXT NOT NULL,
        description TEXT NOT NULL,
        home_url TEXT NOT NULL,
        host TEXT NOT NULL,
        PRIMARY KEY (catalog, position)
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE apis (
        number INTEGER PRIMARY KEY,
        catalog INTEGER NOT NULL REFERENCES catalogs ON DELETE CASCADE,
        position INTEGER NOT NULL,
        id TEXT NOT NULL,
        category TEXT NOT NULL,
        tool_key TEXT NOT NULL,
        content_hash TEXT NOT NULL,
        accepted_hash TEXT NOT NULL,
        document_hash TEXT NOT NULL,
        document TEXT NOT NULL,
        UNIQUE (catalog, id)
    ) STRICT
    """,
    "CREATE INDEX apis_by_id ON apis (id, catalog)",
    "CREATE INDEX apis_by_place ON apis (category, tool_key)",
    "CREATE INDEX apis_by_document ON apis (document_hash)",
    """
    CREATE VIRTUAL TABLE words USING fts5 (
        name, tool, category, description, about_tool, parameters,
        tokenize = "porter unicode61 remove_diacritics 2"
    )
    """,
    """
    CREATE VIEW visible AS
    SELECT apis.* FROM apis JOIN catalogs ON catalogs.number = apis.catalog
    WHERE catalogs.enabled AND NOT EXISTS (
        SELECT 1 FROM apis AS earlier JOIN catalogs AS first ON first.number = earlier.catalog
        WHERE earlier.id = apis.id AND earlier.catalog < apis.catalog AND first.enabled
    )
    """,
    """
    CREATE TABLE indexes (
        place TEXT NOT NULL,
        encoder_digest TEXT NOT NULL,
        encoder TEXT NOT NULL,
        collection TEXT NOT NULL,
        content_hash TEXT NOT NULL,
        documents INTEGER NOT NULL,
        built_at TEXT NOT NULL,
        files TEXT NOT NULL,
        PRIMARY KEY (place, encoder_digest)
    ) STRICT, WITHOUT ROWID
    """,
)

# An imported catalog: where it came from, what an export needs, and texts that wait: ``document``
# is what is served and accepted, ``pending`` the newer text, if any. ``revision`` counts writes.
_IMPORTED = (
    "ALTER TABLE catalogs ADD COLUMN source TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE catalogs ADD COLUMN revision INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE tools ADD COLUMN extra TEXT NOT NULL DEFAULT '{}'",
    "ALTER TABLE apis ADD COLUMN tool INTEGER NOT NULL DEFAULT -1",
    "ALTER TABLE apis ADD COLUMN pending TEXT",
    "ALTER TABLE apis ADD COLUMN pending_hash TEXT",
    "ALTER TABLE apis ADD COLUMN extra TEXT NOT NULL DEFAULT '{}'",
    "CREATE INDEX apis_pending ON apis (catalog, position) WHERE pending IS NOT NULL",
    # Put once more, for the columns above; until now only the catalog that ships was in here.
    "UPDATE catalogs SET content_hash = ''",
    "UPDATE apis SET accepted_hash = content_hash",
)

# What an API's file says otherwise than the text of this hash: it goes where that text goes.
_ORIGINALS = (
    """
    CREATE TABLE originals (
        catalog INTEGER NOT NULL REFERENCES catalogs ON DELETE CASCADE,
        id TEXT NOT NULL,
        content_hash TEXT NOT NULL,
        original TEXT NOT NULL,
        PRIMARY KEY (catalog, id, content_hash)
    ) STRICT, WITHOUT ROWID
    """,
)

# The file of its source that a tool stands in, and the accepted texts of APIs that were removed.
_FILES = (
    "ALTER TABLE tools ADD COLUMN file TEXT NOT NULL DEFAULT ''",
    """
    CREATE TABLE removed (
        catalog INTEGER NOT NULL REFERENCES catalogs ON DELETE CASCADE,
        id TEXT NOT NULL,
        content_hash TEXT NOT NULL,
        document TEXT NOT NULL,
        PRIMARY KEY (catalog, id)
    ) STRICT, WITHOUT ROWID
    """,
)

# Where a pulled catalog was published, as JSON: address, revision, digest, licence.
_ORIGIN = "ALTER TABLE catalogs ADD COLUMN origin TEXT NOT NULL DEFAULT 'null'"

# How a catalog was imported, as JSON: what a refresh does again.
_OPTIONS = "ALTER TABLE catalogs ADD COLUMN options TEXT NOT NULL DEFAULT '{}'"


_TEXTS = (
    ("apis", "document", "content_hash"),
    ("apis", "pending", "pending_hash"),
    ("removed", "document", "content_hash"),
)
"""Tables that hold texts of APIs: the columns of a text and of its content hash."""


def _create(connection: sqlite3.Connection) -> None:
    for statement in _FIRST:
        connection.execute(statement)


def _import(connection: sqlite3.Connection) -> None:
    for statement in _IMPORTED:
        connection.execute(statement)


def _keep_originals(connection: sqlite3.Connection) -> None:
    for statement in _ORIGINALS:
        connection.execute(statement)


def _keep_files(connection: sqlite3.Connection) -> None:
    for statement in _FILES:
        connection.execute(statement)


def _keep_origin(connection: sqlite3.Connection) -> None:
    connection.execute(_ORIGIN)


def _keep_options(connection: sqlite3.Connection) -> None:
    connection.execute(_OPTIONS)


def _leave_no_category_out(connection: sqlite3.Connection) -> None:
    """Give APIs without a category the hash of their document anew: it named one."""
    rows = connection.execute(
        "SELECT number, document FROM apis WHERE category = ?", [documents.NO_CATEGORY]
    )
    for number, document in rows.fetchall():
        text = documents.document_text(Api.model_validate_json(document))
        connection.execute(
            "UPDATE apis SET document_hash = ? WHERE number = ?",
            [documents.document_hash(text), number],
        )


def _derive_flat_views(connection: sqlite3.Connection) -> None:
    """Drop what stood beside the schemas of arguments: it is derived from them.

    The content hashes of such texts follow wherever they are kept, so that nothing counts as changed.
    """
    for table, text, content in _TEXTS:
        of_one = "WHERE catalog = ? AND id = ?"
        keys = connection.execute(
            f"SELECT catalog, id FROM {table} WHERE {text} LIKE '%\"json_schema\":%'"  # noqa: S608 - ours
        ).fetchall()
        for catalog, api_id in keys:  # one by one: the texts of a large catalog are much memory
            document, old = connection.execute(
                f"SELECT {text}, {content} FROM {table} {of_one}",  # noqa: S608 - ours
                [catalog, api_id],
            ).fetchone()
            api = Api.model_validate_json(document)
            new = documents.content_hash(api)
            connection.execute(
                f"UPDATE {table} SET {text} = ?, {content} = ? {of_one}",  # noqa: S608 - ours
                [api.model_dump_json(), new, catalog, api_id],
            )
            connection.execute(
                "UPDATE OR REPLACE originals SET content_hash = ?"
                " WHERE catalog = ? AND id = ? AND content_hash = ?",
                [new, catalog, api_id, old],
            )
            connection.execute(
                "UPDATE OR REPLACE health SET content_hash = ? WHERE api_id = ? AND content_hash = ?",
                [new, api_id, old],
            )
    connection.execute("UPDATE apis SET accepted_hash = content_hash")


MIGRATIONS: tuple[Migration, ...] = (
    _create,
    create_health,
    _import,
    _keep_originals,
    _keep_files,
    _keep_origin,
    _keep_options,
    _leave_no_category_out,
    _derive_flat_views,
)
