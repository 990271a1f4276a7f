"""The store's longer queries; ``visible`` is explained in ``schema.py``.

Only ``store.py`` imports this.
"""

from __future__ import annotations

# bm25 weights of name, tool, category, description, the tool's description, parameters.
MATCH = """
    SELECT id FROM words JOIN visible ON visible.number = words.rowid
    WHERE words MATCH :query
    ORDER BY bm25(words, 2.0, 2.0, 1.0, 1.0, 0.5, 0.5), id LIMIT :limit
"""
APIS = """
    SELECT document FROM {source}
    WHERE (:catalog IS NULL OR catalog = :catalog)
    AND (:category IS NULL OR category = :category) AND (:tool IS NULL OR tool_key = :tool)
    ORDER BY catalog, position LIMIT :limit OFFSET :offset
"""
WHOLE = """
    SELECT tool, document, extra, original FROM apis
    LEFT JOIN originals USING (catalog, id, content_hash)
    WHERE catalog = ? ORDER BY position
"""
LAST = """
    SELECT tool, ifnull(pending, document) AS document, extra, original FROM apis
    LEFT JOIN originals ON originals.catalog = apis.catalog AND originals.id = apis.id
        AND originals.content_hash = ifnull(pending_hash, apis.content_hash)
    WHERE apis.catalog = ? ORDER BY position
"""
ACCEPTED = """
    SELECT id, document FROM (
        SELECT catalog, id, document FROM apis UNION ALL SELECT catalog, id, document FROM removed
    )
    WHERE catalog = (SELECT number FROM catalogs WHERE name = :name)
    AND id IN (SELECT value FROM json_each(:ids))
"""
TOOLS = """
    SELECT catalogs.name AS catalog, tools.category, key, tools.name, description, home_url, host,
    (SELECT count(*) FROM apis WHERE apis.catalog = tools.catalog
        AND apis.category = tools.category AND apis.tool_key = tools.key) AS apis
    FROM tools JOIN catalogs ON catalogs.number = tools.catalog
    WHERE CASE WHEN :catalog IS NULL THEN enabled ELSE catalogs.number = :catalog END
    AND (:category IS NULL OR tools.category = :category)
    ORDER BY tools.catalog, tools.position
"""
HOME = """
    SELECT catalogs.name AS catalog, tools.home_url AS home_url,
        visible.extra AS extra, visible.pending IS NOT NULL AS waiting,
        json_extract(tools.extra, '$.keys.pricing') AS pricing,
        json_extract(tools.extra, '$.keys.score') AS score
    FROM visible JOIN catalogs ON catalogs.number = visible.catalog
    LEFT JOIN tools ON tools.catalog = visible.catalog AND tools.position = visible.tool
    WHERE visible.id = ?
"""
WORD_ROWS = """
    SELECT visible.id, document_hash, visible.category, tool_key, catalogs.name,
        words.name, words.tool, words.category, words.description, about_tool, parameters
    FROM visible JOIN words ON words.rowid = visible.number
    JOIN catalogs ON catalogs.number = visible.catalog
    ORDER BY visible.catalog, visible.position
"""
DOCUMENTS = """
    SELECT document_hash, category, tool_key, document FROM visible WHERE document_hash > ?
    GROUP BY document_hash ORDER BY document_hash LIMIT ?
"""
