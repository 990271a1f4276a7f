"""Names in the store: ids, tools and categories by the words they hold, or in another form.

Every method is one query; a search proper weighs words in ``lexicon``. Knows no vectors.
"""

from __future__ import annotations

from collections.abc import Iterable

from toolsrv_registry import names
from toolsrv_registry.errors import NotFoundError, list_names, nearest_names, shorten
from toolsrv_registry.storage import schema as queries
from toolsrv_registry.storage.database import Database
from toolsrv_registry.words import words

_TERM_LIMIT = 64


class NameIndex:
    """Finds visible APIs, tools and categories by name."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def match(self, terms: Iterable[str], limit: int) -> list[str]:
        """Return the ids of visible APIs with any of the words, best first, equal ones by id.

        For names that are nearly right; searches weigh words in ``lexicon``. Any text is safe as
        a term: it is quoted, never parsed as a query. The first 64 terms count.
        """
        query = fts_query(terms)
        if not query or limit < 1:
            return []
        rows = self._database.read(queries.MATCH_QUERY, {"query": query, "limit": limit})
        return [str(row["id"]) for row in rows]

    def frequency(self, word: str) -> int:
        """Return how many APIs have a word (any catalog, stemmed as in ``match``)."""
        query = fts_query([word])
        if not query:
            return 0
        rows = self._database.read("SELECT count(*) AS n FROM words WHERE words MATCH ?", [query])
        return int(rows[0]["n"])

    def resolve_category(self, name: str) -> str:
        """Return the stored category for a name in any case or display form.

        Raises NotFoundError with near matches.
        """
        known = self.categories()
        wanted = names.standardize_category(name.strip())
        for category in known:
            if category.casefold() == wanted.casefold():
                return category
        near = nearest_names(wanted, known)
        hint = (
            f"did you mean {list_names(near)}?" if near else f"there are {list_names(list(known))}"
        )
        raise NotFoundError(f"no category is called {shorten(name)!r}", hint=hint)

    def resolve_tool(self, name: str, *, category: str | None = None) -> str:
        """Return the standardised name of a tool given in any form.

        Raises NotFoundError with near matches.
        """
        rows = self._database.read(
            "SELECT DISTINCT tool_key FROM visible WHERE :category IS NULL OR category = :category",
            {"category": category},
        )
        known = [row["tool_key"] for row in rows]
        key = names.readable_name(name)
        if key in known:
            return key
        near = nearest_names(key, known)
        place = f" in {category!r}" if category else ""
        hint = (
            f"did you mean {list_names(near)}?" if near else "see the ids of `toolsrv catalog show`"
        )
        raise NotFoundError(f"no tool{place} is called {shorten(name)!r}", hint=hint)

    def ids_with(self, text: str, limit: int) -> tuple[list[str], int]:
        """Return the ids of visible APIs that hold a text, and how many do.

        Those that begin with it come first; at most ``limit`` are returned.
        """
        rows = self._database.read(
            "SELECT id, instr(lower(id), lower(?1)) AS place, count(*) OVER () AS found FROM visible"
            " WHERE place > 0 OR ?1 = '' ORDER BY place, id LIMIT ?2",
            [text.replace("\0", ""), limit],
        )
        return [row["id"] for row in rows], rows[0]["found"] if rows else 0

    def categories(self) -> dict[str, int]:
        """Return the number of visible APIs per category, sorted by category."""
        rows = self._database.read(
            "SELECT category, count(*) AS apis FROM visible GROUP BY category ORDER BY category"
        )
        return {row["category"]: row["apis"] for row in rows}

    def resolve_place(self, category: str | None, tool: str | None) -> dict[str, str | None]:
        """Return a category and a tool, given in any form, as query parameters.

        Raises NotFoundError with near matches.
        """
        if category is not None:
            category = self.resolve_category(category)
        if tool is not None:
            tool = self.resolve_tool(tool, category=category)
        return {"category": category, "tool": tool}

    def nearest_ids(self, api_id: str) -> list[str]:
        """Return ids that are written much like one that nobody has; best first."""
        likely = self.match(words(api_id[:200]), 50)
        return nearest_names(api_id, likely, cutoff=0.3) or likely[:3]


def fts_query(terms: Iterable[str]) -> str:
    """Return an FTS5 query for any of the words: quoted strings joined by OR.

    Quoting makes every character literal; NUL would end the query early, so it goes.
    """
    cleaned = (term.replace("\0", "").encode("utf-8", "ignore").decode() for term in terms)
    kept = list(dict.fromkeys(t for t in cleaned if any(c.isalnum() for c in t)))[:_TERM_LIMIT]
    return " OR ".join('"' + term.replace('"', '""') + '"' for term in kept)
