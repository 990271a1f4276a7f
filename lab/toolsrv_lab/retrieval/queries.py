"""Queries with the APIs that they need: read from JSON lines or from ToolBench's own files.

``{"query_id", "query", "set", "relevant": [{"category", "tool", "api", "id"}], "candidates": […]}``;
``candidates`` may be missing, an API may be its bare id; ``needs`` may hold, for each relevant API,
the sentence of the query that tells its need, and ``alternatives`` a list of the ids that serve it
as well. Queries of ToolRet are read too (``toolret``). Reads ``.gz``. Knows nothing about ranking.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator

from toolsrv_lab.retrieval import toolret
from toolsrv_registry import names, wellformed
from toolsrv_registry.errors import DataError, NotFoundError


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
    needs: tuple[str, ...] = ()
    alternatives: tuple[tuple[str, ...], ...] = ()

    @model_validator(mode="after")
    def _aligned(self) -> Query:
        for field in ("needs", "alternatives"):
            given = len(getattr(self, field))
            if given and given != len(self.relevant):
                raise ValueError(f"{given} {field} for {len(self.relevant)} relevant APIs")
        return self

    @property
    def tuning(self) -> bool:
        """Whether the query is of the half that may be tuned on; decided by its text's hash."""
        return int(hashlib.sha256(f"s{self.query}".encode()).hexdigest(), 16) % 2 == 0

    @property
    def half(self) -> str:
        """``tuning`` or ``unseen``."""
        return "tuning" if self.tuning else "unseen"

    @property
    def relevant_ids(self) -> tuple[str, ...]:
        """The distinct ids of the relevant APIs."""
        return tuple(dict.fromkeys(one.id for one in self.relevant))

    @property
    def stands_for(self) -> dict[str, str]:
        """Id of an API that serves a need as well -> that of the relevant one."""
        told = zip(self.relevant, self.alternatives, strict=True) if self.alternatives else ()
        found = {other: one.id for one, others in told for other in others}
        return {other: one for other, one in found.items() if other not in self.relevant_ids}


def read_queries(path: Path, *, instructed: bool = False) -> list[Query]:
    """Return the queries of a file or folder, in any of four formats.

    JSON lines as above; ToolBench's instruction files (a JSON list, format section 2); a folder of
    ToolBench's retriever files (``corpus.tsv``, ``test.query.txt``, ``qrels.test.tsv``, format
    section 3.1); ToolRet's queries (JSON lines or a list), ``instructed`` with the instruction of
    each before it. Raises DataError that names the place.
    """
    if path.is_dir():
        return read_retriever_folder(path)
    text = _text(path)
    if text.lstrip().startswith("["):
        return _instructions(path, text, instructed)
    lines = enumerate(text.split("\n"), 1)
    return [_query(raw, path, at, instructed) for at, raw in lines if raw.strip()]


def read_retriever_folder(folder: Path) -> list[Query]:
    """Return the test queries of ToolBench's preprocessed retriever data."""
    corpus = {}
    for row in _rows(folder / "corpus.tsv")[1:]:
        corpus[row[0]] = _named(_json(row[1], folder / "corpus.tsv"))
    texts = {row[0]: row[1] for row in _rows(folder / "test.query.txt")}
    needed: dict[str, list[Named]] = {}
    for row in _rows(folder / "qrels.test.tsv"):
        if row[2] in corpus:
            needed.setdefault(row[0], []).append(corpus[row[2]])
    return [
        Query(query_id=key, query=text, set=folder.name, relevant=tuple(needed.get(key, ())))
        for key, text in texts.items()
    ]


def _instructions(path: Path, text: str, instructed: bool) -> list[Query]:
    entries = _json(text, path)
    if entries and toolret.is_query(entries[0]):
        lines = (json.dumps(one) for one in entries)
        return [_query(raw, path, at, instructed) for at, raw in enumerate(lines, 1)]
    found = []
    for at, entry in enumerate(entries):
        try:
            offered = [_named(one) for one in entry.get("api_list", [])]
            wanted = {tuple(map(str, pair[:2])) for pair in entry.get("relevant APIs", [])}
            query = entry["query"]
            found.append(
                Query(
                    query_id=str(entry.get("query_id", at)),
                    query=query[0] if isinstance(query, list) else query,
                    set=path.stem,
                    relevant=tuple(one for one in offered if (one.tool, one.api) in wanted),
                    candidates=tuple(offered),
                )
            )
        except (AttributeError, KeyError, TypeError, ValueError, IndexError) as error:
            raise DataError(
                f"{path}, entry {at}: not an instruction ({type(error).__name__}: {error})",
                hint='an entry is {"query", "api_list", "relevant APIs"}',
            ) from error
    return found


def _one(api: Any) -> Any:
    """Return an API as ``Named`` wants it; a bare id stands for itself."""
    return {"id": api} if isinstance(api, str) else api


def _named(entry: Any) -> Named:
    category, tool, api = (
        str(entry.get(key) or "") for key in ("category_name", "tool_name", "api_name")
    )
    parts = (names.standardize_category(category), names.standardize(tool), names.api_name(api))
    return Named(category=category, tool=tool, api=api, id="/".join(parts))


def _text(path: Path) -> str:
    try:
        if path.suffix == ".gz":
            with gzip.open(path, "rt", encoding="utf-8-sig") as file:
                return file.read()
        return path.read_text("utf-8-sig")
    except FileNotFoundError:
        raise NotFoundError(
            f"there is no file {path}", hint="give a file of queries, JSON lines"
        ) from None
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise DataError(
            f"cannot read the queries {path}: {error}", hint="give a file of queries, JSON lines"
        ) from error


def _rows(path: Path) -> list[list[str]]:
    rows = list(csv.reader(io.StringIO(_text(path)), delimiter="\t"))
    least = 3 if path.name.startswith("qrels") else 2
    for at, row in enumerate(rows, start=1):
        if len(row) < least:
            raise DataError(
                f"{path}, row {at}: {len(row)} columns where {least} are needed",
                hint="give ToolBench's preprocessed retriever data",
            )
    return rows


def _json(text: str, path: Path) -> Any:
    try:
        return wellformed.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is not JSON: {error}", hint="is the file complete?") from error


def _query(raw: str, path: Path, at: int, instructed: bool) -> Query:
    try:
        value: dict[str, Any] = wellformed.loads(raw)
        if toolret.is_query(value):
            value = toolret.query_fields(value, instructed=instructed)
        value["query_id"] = str(value.get("query_id", at))
        for field in ("relevant", "candidates"):
            value[field] = [_one(api) for api in value.get(field, ())]
        return Query.model_validate(value)
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise DataError(
            f"{path}, line {at}: not a query: {str(error).splitlines()[0]}",
            hint='a line is {"query_id", "query", "relevant": [{"id"}]}',
        ) from error
