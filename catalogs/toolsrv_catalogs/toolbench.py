"""Reading ToolBench's tool files: ``<root>/<Category>/<tool>.json``, one tool each.

Lenient where public copies of the data are known to be loose (null or missing keys, ``name``
instead of ``tool_name``), strict only where nothing can be read. Knows the format and the
cleaning of its text; does not know what becomes of a tool, and runs nothing it reads: code and
response samples in the files are not even kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from toolsrv_catalogs.text import (
    DESCRIPTION_LIMIT,
    NAME_LIMIT,
    PARAMETER_DESCRIPTION_LIMIT,
    clean,
)
from toolsrv_registry import names
from toolsrv_registry.api import Api, Catalog, Parameter, Tool
from toolsrv_registry.errors import DataError, NotFoundError

URL_LIMIT = 2048
ENUM_LIMIT = 256
_METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})


def read_tool(document: Mapping[str, Any], category: str, *, stem: str = "") -> Tool:
    """Return the tool that a parsed tool file describes.

    Args:
        document: the parsed JSON object.
        category: the category, as directory or display name.
        stem: the file's name without suffix: names the tool where the document does not.

    Raises:
        DataError: the document has neither a name nor a stem to go by.
    """
    name = _text(document.get("tool_name"), NAME_LIMIT) or _text(document.get("name"), NAME_LIMIT)
    name = name.strip() or stem
    if not name:
        raise DataError("a tool file gives no tool_name", hint="add a tool_name to the file")
    directory = names.standardize_category(_text(category, NAME_LIMIT))
    description = _text(document.get("tool_description"), DESCRIPTION_LIMIT)
    taken: set[str] = set()
    apis = tuple(
        _api(entry, directory, name, description, taken)
        for entry in _objects(document.get("api_list"))
    )
    return Tool(
        category=directory,
        name=name,
        description=description,
        home_url=_text(document.get("home_url"), URL_LIMIT),
        host=_text(document.get("host"), NAME_LIMIT),
        apis=apis,
    )


def read_tool_file(path: Path, category: str) -> Tool:
    """Return the tool that the file at ``path`` describes.

    Raises:
        NotFoundError: there is no such file.
        DataError: the file is empty, is not UTF-8 JSON or holds no object.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise NotFoundError(f"no tool file {str(path)!r}") from error
    except OSError as error:
        raise DataError(f"tool file {str(path)!r} cannot be read: {error.strerror}") from error
    return read_tool_bytes(content, category, source=str(path))


def read_tool_bytes(content: bytes, category: str, *, source: str) -> Tool:
    """Return the tool in a tool file's ``content``; ``source`` is its path, for names and errors.

    Raises:
        DataError: the content is empty, is not UTF-8 JSON or holds no object.
    """
    if not content.strip():
        raise DataError(f"tool file {source!r} is empty", hint="restore or remove the file")
    try:
        document = json.loads(content.decode("utf-8-sig"))
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        raise DataError(f"tool file {source!r} is not JSON: {error}") from error
    if not isinstance(document, dict):
        raise DataError(f"tool file {source!r} holds no JSON object")
    return read_tool(document, category, stem=Path(source).stem)


def read_folder(root: Path, *, name: str = "toolbench") -> Catalog:
    """Return the catalog under ``root``, laid out as ``<Category>/<tool>.json``, in path order.

    Folders and files whose names start with a dot are left alone.

    Raises:
        NotFoundError: ``root`` is no folder.
        DataError: a tool file cannot be read, or no tool file is there.
    """
    if not root.is_dir():
        raise NotFoundError(f"no folder {str(root)!r}")
    paths = sorted(path for path in root.glob("*/*.json") if _visible(path.relative_to(root)))
    if not paths:
        raise DataError(
            f"no tool files under {str(root)!r}", hint="expected <Category>/<tool>.json below it"
        )
    tools = [read_tool_file(path, path.parent.name) for path in paths]
    return Catalog(name=name, tools=distinct(tools))


def distinct(tools: Iterable[Tool]) -> tuple[Tool, ...]:
    """Return ``tools`` with API ids that are unique over all of them.

    Two files of one category can standardise to one tool name; the later APIs then get ``_2``,
    ``_3`` …, as they do within a tool.
    """
    taken: set[str] = set()
    result = []
    for tool in tools:
        apis = []
        for api in tool.apis:
            api_id = _unused(api.id, taken)
            apis.append(api if api_id == api.id else api.model_copy(update={"id": api_id}))
        result.append(tool.model_copy(update={"apis": tuple(apis)}))
    return tuple(result)


def _visible(path: Path) -> bool:
    return not any(part.startswith(".") for part in path.parts)


def _api(
    entry: Mapping[str, Any], category: str, tool: str, tool_description: str, taken: set[str]
) -> Api:
    name = _text(entry.get("name"), NAME_LIMIT)
    stem = names.api_name(name) or "unnamed"
    tool_stem = names.standardize(tool) or "unnamed"
    method = _text(entry.get("method"), 16).strip().upper()
    return Api(
        id=_unused(f"{category}/{tool_stem}/{stem}", taken),
        category=category,
        tool=tool,
        name=name,
        description=_text(entry.get("description"), DESCRIPTION_LIMIT),
        tool_description=tool_description,
        method=method if method in _METHODS else "GET",
        url=_text(entry.get("url"), URL_LIMIT).strip(),
        required=_parameters(entry.get("required_parameters")),
        optional=_parameters(entry.get("optional_parameters")),
    )


def _unused(wanted: str, taken: set[str]) -> str:
    found, number = wanted, 1
    while found in taken:
        number += 1
        found = f"{wanted}_{number}"
    taken.add(found)
    return found


def _parameters(value: Any) -> tuple[Parameter, ...]:
    return tuple(
        Parameter(
            name=_text(entry.get("name"), NAME_LIMIT),
            type=_text(entry.get("type"), NAME_LIMIT) or "STRING",
            description=_text(entry.get("description"), PARAMETER_DESCRIPTION_LIMIT),
            default=_default(entry.get("default")),
            enum=tuple(_text(item, NAME_LIMIT) for item in _list(entry.get("enum"))[:ENUM_LIMIT]),
        )
        for entry in _objects(value)
        if _text(entry.get("name"), NAME_LIMIT).strip()
    )


def _default(value: Any) -> Any:
    """Return a default with its JSON type kept, but clean, finite and of bounded size."""
    try:
        if len(json.dumps(value, ensure_ascii=False, allow_nan=False)) > DESCRIPTION_LIMIT:
            return clean(str(value), PARAMETER_DESCRIPTION_LIMIT)
        return "" if value is None else _cleaned(value)
    except (ValueError, RecursionError):  # NaN and infinity; nesting beyond reason
        return ""


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value, PARAMETER_DESCRIPTION_LIMIT)
    if isinstance(value, list):
        return [_cleaned(item) for item in value]
    if isinstance(value, dict):
        return {clean(str(key), NAME_LIMIT): _cleaned(item) for key, item in value.items()}
    return value


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [entry for entry in _list(value) if isinstance(entry, dict)]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: Any, limit: int) -> str:
    if value is None or isinstance(value, dict | list):
        return ""
    return clean(value if isinstance(value, str) else str(value), limit)
