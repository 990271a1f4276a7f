"""Queries with the APIs that they need: one JSON object a line, as ``queries_dev.jsonl`` has them.

``{"query_id", "query", "set", "relevant": [{"category", "tool", "api", "id"}], "candidates": […]}``;
``candidates`` may be missing. Reads ``.gz`` too. Knows nothing about ranking.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from toolsrv_registry.errors import DataError


class Named(BaseModel):
    """An API as a query file names it."""

    model_config = ConfigDict(frozen=True)

    category: str = ""
    tool: str = ""
    api: str = ""
    id: str


class Query(BaseModel):
    """A task in words, the set it belongs to, and the ids of the APIs that it needs."""

    model_config = ConfigDict(frozen=True)

    query_id: str
    query: str
    set: str = "all"
    relevant: tuple[Named, ...]
    candidates: tuple[Named, ...] = ()

    @property
    def relevant_ids(self) -> tuple[str, ...]:
        """The distinct ids of the relevant APIs."""
        return tuple(dict.fromkeys(one.id for one in self.relevant))


def read_queries(path: Path) -> list[Query]:
    """Return the queries of a file. Raises DataError that names the line."""
    return [_query(raw, path, at) for at, raw in _lines(path)]


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        opened = gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open()
        with opened as file:
            for at, line in enumerate(file, start=1):
                if line.strip():
                    yield at, line
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise DataError(
            f"cannot read the queries {path}: {error}", hint="give a file of queries, JSON lines"
        ) from error


def _query(raw: str, path: Path, at: int) -> Query:
    try:
        value: dict[str, Any] = json.loads(raw)
        value["query_id"] = str(value.get("query_id", at))
        return Query.model_validate(value)
    except (ValueError, TypeError, AttributeError, ValidationError) as error:
        raise DataError(
            f"{path}, line {at}: not a query: {str(error).splitlines()[0]}",
            hint='a line is {"query_id", "query", "relevant": [{"id"}]}',
        ) from error
