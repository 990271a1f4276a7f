"""Tables of the registry's SQLite file, one migration per version, and the longer queries.

The view ``visible`` holds the APIs of enabled catalogs that no earlier catalog hides.
"""

from __future__ import annotations

import sqlite3

from toolsrv_registry import documents
from toolsrv_registry.api import Api
from toolsrv_registry.storage.database import Migration

_STATEMENTS = (
    """
    CREATE TABLE health (
        api_id TEXT NOT NULL,
        content_hash TEXT NOT NULL,
        checked_at TEXT NOT NULL,
        verdict TEXT NOT NULL,
        status INTEGER NOT NULL,
        seconds REAL NOT NULL,
        guessed INTEGER NOT NULL,
        source TEXT NOT NULL,
        excerpt TEXT NOT NULL,
        PRIMARY KEY (api_id, content_hash)
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX health_by_verdict ON health (verdict)",
)


def create_health(connection: sqlite3.Connection) -> None:
    """Make the table."""
    for statement in _STATEMENTS:
        connection.execute(statement)


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

# Response schemas that a model made: of the text of this hash, "null" where one saves nothing.
_RESPONSE_SCHEMAS = """
    CREATE TABLE response_schemas (
        api_id TEXT NOT NULL PRIMARY KEY,
        content_hash TEXT NOT NULL,
        response_schema TEXT NOT NULL,
        model TEXT NOT NULL,
        identity TEXT NOT NULL,
        prompt TEXT NOT NULL,
        version TEXT NOT NULL,
        made_at TEXT NOT NULL,
        seed INTEGER NOT NULL,
        source TEXT NOT NULL,
        keys INTEGER NOT NULL,
        kept INTEGER NOT NULL,
        tokens_before INTEGER NOT NULL,
        tokens_after INTEGER NOT NULL,
        estimated INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID
"""


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


def _keep_response_schemas(connection: sqlite3.Connection) -> None:
    connection.execute(_RESPONSE_SCHEMAS)


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
    _keep_response_schemas,
)


# bm25 weights of name, tool, category, description, the tool's description, parameters.
MATCH_QUERY = """
    SELECT id FROM words JOIN visible ON visible.number = words.rowid
    WHERE words MATCH :query
    ORDER BY bm25(words, 2.0, 2.0, 1.0, 1.0, 0.5, 0.5), id LIMIT :limit
"""
APIS_QUERY = """
    SELECT document FROM {source}
    WHERE (:catalog IS NULL OR catalog = :catalog)
    AND (:category IS NULL OR category = :category) AND (:tool IS NULL OR tool_key = :tool)
    ORDER BY catalog, position LIMIT :limit OFFSET :offset
"""
CATALOG_QUERY = """
    SELECT tool, document, extra, original FROM apis
    LEFT JOIN originals USING (catalog, id, content_hash)
    WHERE catalog = ? ORDER BY position
"""
WAITING_CATALOG_QUERY = """
    SELECT tool, ifnull(pending, document) AS document, extra, original FROM apis
    LEFT JOIN originals ON originals.catalog = apis.catalog AND originals.id = apis.id
        AND originals.content_hash = ifnull(pending_hash, apis.content_hash)
    WHERE apis.catalog = ? ORDER BY position
"""
ACCEPTED_QUERY = """
    SELECT id, document FROM (
        SELECT catalog, id, document FROM apis UNION ALL SELECT catalog, id, document FROM removed
    )
    WHERE catalog = (SELECT number FROM catalogs WHERE name = :name)
    AND id IN (SELECT value FROM json_each(:ids))
"""
TOOLS_QUERY = """
    SELECT catalogs.name AS catalog, tools.category, key, tools.name, description, home_url, host,
    (SELECT count(*) FROM apis WHERE apis.catalog = tools.catalog
        AND apis.category = tools.category AND apis.tool_key = tools.key) AS apis
    FROM tools JOIN catalogs ON catalogs.number = tools.catalog
    WHERE CASE WHEN :catalog IS NULL THEN enabled ELSE catalogs.number = :catalog END
    AND (:category IS NULL OR tools.category = :category)
    ORDER BY tools.catalog, tools.position
"""
HOME_QUERY = """
    SELECT catalogs.name AS catalog, tools.home_url AS home_url,
        visible.extra AS extra, visible.pending IS NOT NULL AS waiting,
        response_schemas.response_schema AS made,
        json_extract(tools.extra, '$.keys.pricing') AS pricing,
        json_extract(tools.extra, '$.keys.score') AS score
    FROM visible JOIN catalogs ON catalogs.number = visible.catalog
    LEFT JOIN tools ON tools.catalog = visible.catalog AND tools.position = visible.tool
    LEFT JOIN response_schemas ON response_schemas.api_id = visible.id
        AND response_schemas.content_hash = visible.content_hash
    WHERE visible.id = ?
"""
WORD_ROWS_QUERY = """
    SELECT visible.id, document_hash, visible.category, tool_key, catalogs.name,
        words.name, words.tool, words.category, words.description, about_tool, parameters
    FROM visible JOIN words ON words.rowid = visible.number
    JOIN catalogs ON catalogs.number = visible.catalog
    ORDER BY visible.catalog, visible.position
"""
DOCUMENTS_QUERY = """
    SELECT document_hash, category, tool_key, document FROM visible WHERE document_hash > ?
    GROUP BY document_hash ORDER BY document_hash LIMIT ?
"""
