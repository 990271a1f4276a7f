"""ToolRet's files: queries with labelled tools, and the tools to search.

JSON lines or a JSON list, as ``datasets`` exports ``ToolRet-Queries`` and ``ToolRet-Tools``: a query is
``{"id", "query", "instruction", "labels": [{"id", "relevance"}]}``, a tool ``{"id", "doc"}`` or
``{"id", "documentation"}``; ``labels`` and ``doc`` may be JSON in a string.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from toolsrv_registry import names, wellformed
from toolsrv_registry.api import Api, Catalog, Parameter, Tool
from toolsrv_registry.errors import DataError, NotFoundError

CATALOG = "toolret"
_CATEGORY = "Other"
"""The category of what has none; an index leaves it out."""
_HINT = "export them as JSON lines: load_dataset(…).to_json(FILE)"
_NAMES = ("name", "api_name", "tool_name", "func_name", "function_name", "title")
_DESCRIPTIONS = ("description", "functionality", "func_description", "overview", "usage")
_TEXT_LIMIT = 4_000


def is_query(row: Any) -> bool:
    """Whether a row is a query of ToolRet."""
    return isinstance(row, dict) and "labels" in row and "relevant" not in row


def query_fields(row: Mapping[str, Any], *, instructed: bool = False) -> dict[str, Any]:
    """Return a row in the fields of ``queries.Query``, ``instructed`` with its instruction first.

    Raises:
        ValueError: it has no text, or its labels are none.
    """
    number, text = str(row.get("id", "")), row.get("query")
    if not number or not isinstance(text, str):
        raise ValueError("no id and query")
    labels = _parsed(row["labels"])
    if not isinstance(labels, list) or not all(
        isinstance(one, dict) and "id" in one for one in labels
    ):
        raise ValueError("labels are no list of ids")
    if instructed and isinstance(row.get("instruction"), str):
        text = f"{row['instruction']}\n{text}"
    relevant = [one for one in labels if one.get("relevance", 1)]
    return {
        "query_id": number,
        "query": text,
        "set": number.rpartition("_query_")[0] or CATALOG,
        "relevant": [{"id": api_id(str(one["id"]))} for one in relevant],
    }


def api_id(tool: str) -> str:
    """Return the id in our catalog of a tool's id."""
    source = names.readable_name(tool.rpartition("_tool_")[0]) or CATALOG
    return f"{_CATEGORY}/{source}/{tool.replace('/', '_')}"


def read_tools(paths: Sequence[Path]) -> Catalog:
    """Return the tools of files as a catalog; of tools with one id the first counts.

    Raises:
        NotFoundError: a file does not exist.
        DataError: it cannot be read, or holds no tools; says where.
    """
    found: dict[str, Api] = {}
    for path in paths:
        for at, row in rows(path):
            try:
                api = _api(row)
            except ValueError as error:
                raise DataError(f"{path}, tool {at}: {error}", hint=_HINT) from None
            found.setdefault(api.id, api)
    if not found:
        raise DataError("the files of tools are empty", hint=_HINT)
    tools = [Tool(category=_CATEGORY, name=api.tool, apis=(api,)) for api in found.values()]
    return Catalog(name=CATALOG, tools=tuple(tools))


def rows(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield the values of JSON lines or of a JSON list, numbered from 1; ``.gz`` is unpacked.

    Raises:
        NotFoundError: there is no such file.
        DataError: it cannot be read, or is not JSON.
    """
    try:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        text = data.decode("utf-8-sig")
    except FileNotFoundError as error:
        raise NotFoundError(f"{path} does not exist", hint=_HINT) from error
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read {path}: {error}", hint=_HINT) from error
    try:
        if text.lstrip().startswith("["):
            yield from enumerate(wellformed.loads(text), start=1)
            return
        for at, line in enumerate(text.split("\n"), start=1):
            if line.strip():
                yield at, wellformed.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is not JSON: {error}", hint=_HINT) from None


def _api(row: Any) -> Api:
    if not isinstance(row, dict) or not row.get("id"):
        raise ValueError("no id")
    number = str(row["id"])
    told = _parsed(row["doc"] if "doc" in row else row.get("documentation", ""))
    doc = told if isinstance(told, dict) else {}
    name = _first(doc, _NAMES) or number
    return Api(
        id=api_id(number),
        category=_CATEGORY,
        tool=name,
        name=name,
        description=(_first(doc, _DESCRIPTIONS) or str(told))[:_TEXT_LIMIT],
        optional=tuple(_parameters(doc.get("parameters", doc.get("arguments")))),
    )


def _parameters(value: Any) -> Iterator[Parameter]:
    if isinstance(value, dict) and isinstance(value.get("properties"), dict):
        value = value["properties"]
    if isinstance(value, dict):
        for name, one in value.items():
            said = one.get("description") if isinstance(one, dict) else one
            yield Parameter(name=str(name), description=said if isinstance(said, str) else "")
    elif isinstance(value, list):
        for one in value:
            if isinstance(one, dict) and isinstance(one.get("name"), str):
                said = one.get("description")
                yield Parameter(name=one["name"], description=said if isinstance(said, str) else "")


def _first(doc: Mapping[str, Any], keys: Sequence[str]) -> str:
    found = (doc.get(key) for key in keys)
    return next((one.strip() for one in found if isinstance(one, str) and one.strip()), "")


def _parsed(value: Any) -> Any:
    """Return what a string holds as JSON, else the value itself."""
    if not isinstance(value, str):
        return value
    try:
        return wellformed.loads(value)
    except (ValueError, RecursionError):
        return value
