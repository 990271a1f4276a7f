"""Reading ToolBench's tool files: ``<root>/<Category>/<tool>.json``, one tool each.

Lenient where public copies of the data are known to be loose (null or missing keys, ``name``
instead of ``tool_name``), strict only where nothing can be read. Knows the format and the
cleaning of its text; does not know what becomes of a tool, and runs nothing it reads. What no
search and no call needs (code, response samples, texts as they were before the cleaning) is kept
aside, for an export, and so are prices and scores, which the store reads from there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, get_args

from pydantic import TypeAdapter, ValidationError

from toolsrv_catalogs import fields
from toolsrv_catalogs.argument_schema import kept_schema
from toolsrv_catalogs.fields import METHODS, URL_LIMIT, completed, listed, original, unused
from toolsrv_catalogs.findings import FileFindings, What
from toolsrv_catalogs.hosts import address_fault, host_fault
from toolsrv_catalogs.layout import OURS, api_document, api_place, numbered, tool_head
from toolsrv_catalogs.text import (
    DESCRIPTION_LIMIT,
    NAME_LIMIT,
    PARAMETER_DESCRIPTION_LIMIT,
    clean,
)
from toolsrv_registry import names
from toolsrv_registry.api import (
    ORIGINAL,
    Api,
    Catalog,
    Parameter,
    Place,
    PlaceSchema,
    SecurityScheme,
    Style,
    Tool,
)
from toolsrv_registry.errors import DataError, NotFoundError

TOOL_KEYS = frozenset({"tool_name", "tool_description", "home_url", "host", "api_list"})
TERMS = ("pricing", "score")
"""Keys of a tool that stay whatever else of it is too much to keep: they say what a call costs."""
LISTS = ("required_parameters", "optional_parameters")
API_KEYS = frozenset({"name", "description", "method", "url", *LISTS})
PARAMETER_KEYS = frozenset({"name", "type", "description", "default", "enum", "in", OURS})
_PLACES: dict[Any, Place] = {place: place for place in get_args(Place)}
_STYLES: dict[Any, Style] = {style: style for style in get_args(Style)}
_SECURITY: TypeAdapter[tuple[tuple[SecurityScheme, ...], ...]] = TypeAdapter(
    tuple[tuple[SecurityScheme, ...], ...]
)


def read_tool(
    document: Mapping[str, Any],
    category: str,
    *,
    stem: str = "",
    found: FileFindings | None = None,
) -> Tool:
    """Return the tool that a parsed tool file describes.

    Args:
        document: the parsed JSON object.
        category: the category, as directory or display name.
        stem: the file's name without suffix: names the tool where the document does not.
        found: hears what is refused or altered.

    Raises:
        DataError: the document has neither a name nor a stem to go by.
    """
    found = FileFindings() if found is None else found
    given = (document.get("tool_name"), document.get("name"), stem)
    shown = (found.text(value, NAME_LIMIT) for value in given)
    name = next((text for text in shown if text.strip()), "")
    if not name:
        raise DataError("a tool file gives no tool_name", hint="add a tool_name to the file")
    directory = fields.category(category, found)
    description = found.text(document.get("tool_description"), DESCRIPTION_LIMIT)
    if not isinstance(document.get("api_list"), list | None):
        found.refuse("API", "api_list is no list")
    entries = _objects(document.get("api_list"), "API", found)
    read = [(one, _api(one, (directory, name, description), found)) for one in entries]
    members = [one for _, one in read if one is not None]
    written = [entry.get(OURS) for entry, one in read if one is not None]
    apis = numbered([api for api, _ in members], found.note, written)
    extras = tuple(extra for _, extra in members)
    extra = _tool_extra(document, name, stem, found)
    host = found.text(document.get("host"), NAME_LIMIT).strip()
    if host and (fault := host_fault(host)):
        found.refuse("address", f"the tool's host: {fault}", name=name)
        extra["host"] = host
    found.apis += len(members)
    tool = Tool(
        category=directory,
        name=name,
        description=description,
        home_url=found.text(document.get("home_url"), URL_LIMIT),
        host="" if "host" in extra else host,
        apis=apis,
        extra=extra,
        api_extras=extras if any(extras) else (),
    )
    other = _tool_original(document, tool, found)
    return tool.model_copy(update={"extra": extra | {ORIGINAL: other}}) if other else tool


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

    Folders and files whose names start with a dot are left alone. For a folder that is trusted
    to be whole; ``importer`` reads any other.

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
            api_id = unused(api.id, taken)
            apis.append(api if api_id == api.id else api.model_copy(update={"id": api_id}))
        result.append(tool.model_copy(update={"apis": tuple(apis)}))
    return tuple(result)


def _visible(path: Path) -> bool:
    return not any(part.startswith(".") for part in path.parts)


def _tool_extra(
    document: Mapping[str, Any], name: str, stem: str, found: FileFindings
) -> dict[str, Any]:
    keys = {key: value for key, value in document.items() if key not in TOOL_KEYS}
    if "tool_name" not in document:
        keys.pop("name", None)
    if "tool_description" in document and document["tool_description"] is None:
        keys["tool_description"] = None
    extra: dict[str, Any] = {}
    terms = {key: keys[key] for key in TERMS if key in keys}
    all_kept = fields.kept(keys, found, what="the tool")
    if not all_kept and len(terms) < len(keys):
        all_kept = fields.kept(terms, found, what="the tool's terms")
    if all_kept:
        extra["keys"] = all_kept
    if stem and stem != (names.readable_name(name) or "unnamed"):
        extra["stem"] = found.text(stem, NAME_LIMIT)
    return extra


def _tool_original(document: Mapping[str, Any], tool: Tool, found: FileFindings) -> str:
    """Return what the file says otherwise of the tool; its APIs say that themselves."""
    read = {key: one for key, one in document.items() if key != "api_list" or one is None}
    if "tool_name" not in read and "name" in read:
        read["tool_name"] = read.pop("name")
    written = tool_head(tool)
    return original(completed(read, written, TOOL_KEYS), written, found, what="the tool")


def _api(
    entry: Mapping[str, Any], tool: tuple[str, str, str], found: FileFindings
) -> tuple[Api, dict[str, Any]] | None:
    """Return an API and what an export needs beside it; None where it is refused."""
    category, tool_name, tool_description = tool
    name = found.text(entry.get("name"), NAME_LIMIT)
    for key in LISTS:
        if not isinstance(entry.get(key), list | None):
            found.refuse("API", f"{key} is no list", name=name)
            return None
    extra = _api_extra(entry, name, found)
    url = found.text(entry.get("url"), URL_LIMIT).strip()
    if url and (fault := address_fault(url)):
        found.refuse("address", f"{fault}; the API cannot be called", name=name)
        extra["url"], url = url, ""
    method = found.text(entry.get("method"), 16).strip().upper()
    if method not in METHODS:
        if method:
            found.note(f"{name!r}: unknown method {method!r}, read as GET")
        method = "GET"
    ours = _ours(entry.get(OURS), name, found)
    told = {key: _named(entry.get(key), found) for key in LISTS}
    api = Api(
        id=api_place(category, tool_name, name),
        category=category,
        tool=tool_name,
        name=name,
        description=found.text(entry.get("description"), DESCRIPTION_LIMIT),
        tool_description=tool_description,
        method=method,
        url=url,
        required=tuple(_parameter(name, one, found) for name, one in told["required_parameters"]),
        optional=tuple(_parameter(name, one, found) for name, one in told["optional_parameters"]),
        **ours,
    )
    if other := _api_original(entry, api_document(api, extra), told, found):
        extra[ORIGINAL] = other
    return api, extra


def _api_original(
    entry: Mapping[str, Any],
    written: dict[str, Any],
    told: Mapping[str, list[_Named]],
    found: FileFindings,
) -> str:
    """Return what the file says otherwise of an API.

    What was refused of it does not come back, and what is ours is always written anew. ``told``
    holds the parameters that were taken.
    """
    if entry == written:  # as most are
        return ""
    read = {key: one for key, one in entry.items() if key != OURS}
    for key, named in told.items():
        if isinstance(read.get(key), list):
            pairs = zip(named, written[key], strict=True)
            read[key] = [completed(one, shown, PARAMETER_KEYS) for (_, one), shown in pairs]
    read = completed(read, written, API_KEYS)
    return original(read, written, found, what=repr(written["name"]))


def _api_extra(entry: Mapping[str, Any], name: str, found: FileFindings) -> dict[str, Any]:
    keys = {k: v for k, v in entry.items() if k not in API_KEYS and k != OURS}
    extra: dict[str, Any] = {}
    if keys := fields.kept(keys, found, what=repr(name)):
        extra["keys"] = keys
    parameters = {}
    for key in LISTS:
        for parameter in listed(entry.get(key)):
            if isinstance(parameter, dict) and parameter.keys() - PARAMETER_KEYS:
                more = {k: v for k, v in parameter.items() if k not in PARAMETER_KEYS}
                if (one := clean(str(parameter.get("name") or ""), NAME_LIMIT)).strip():
                    parameters[one] = more
    if parameters := fields.kept(parameters, found, what=repr(name)):
        extra["parameters"] = parameters
    return extra


def _ours(value: Any, name: str, found: FileFindings) -> dict[str, Any]:
    """Return what an export wrote of a body and of security schemes."""
    if not isinstance(value, dict):
        return {}
    try:
        security = _SECURITY.validate_python(value.get("security", ()))
    except ValidationError:
        found.note(f"{name!r}: its security schemes cannot be read; it is not called")
        security = ((SecurityScheme(name="unreadable", kind="unknown"),),)
    cleaned = tuple(
        tuple(
            scheme.model_copy(
                update={
                    field: found.text(getattr(scheme, field), NAME_LIMIT)
                    for field in ("name", "key", "scheme")
                }
                | {
                    "token_url": found.text(scheme.token_url, fields.URL_LIMIT),
                    "scopes": tuple(found.text(one, NAME_LIMIT) for one in scheme.scopes),
                }
            )
            for scheme in group
        )
        for group in security
    )
    return {
        "body_type": found.text(value.get("body_type"), NAME_LIMIT),
        "body_required": value.get("body_required") is True,
        "accept": found.text(value.get("accept"), NAME_LIMIT),
        "together": tuple(
            PlaceSchema(
                place=one["place"],
                json_schema=kept_schema(one.get("json_schema")) or {},
                required=one.get("required") is True,
            )
            for one in listed(value.get("together"))
            if isinstance(one, dict) and one.get("place") in ("body", "query")
        ),
        "security": cleaned,
    }


_Named = tuple[str, Mapping[str, Any]]
"""A parameter's name, cleaned, and its entry as it was read."""


def _named(value: Any, found: FileFindings) -> list[_Named]:
    """Return the parameters of a list that can be taken; the others are refused."""
    result = []
    for entry in _objects(value, "parameter", found):
        name = found.text(entry.get("name"), NAME_LIMIT)
        if name.strip():
            result.append((name, entry))
        else:
            found.refuse("parameter", "has no name")
    return result


def _parameter(name: str, entry: Mapping[str, Any], found: FileFindings) -> Parameter:
    place, kept = entry.get("in"), entry.get(OURS)
    ours: dict[str, Any] = kept if isinstance(kept, dict) else {}
    style, example = ours.get("style"), ours.get("example")
    schema = kept_schema(ours.get("schema"))
    if schema is not None:
        schema = fields.kept_annotations(ours.get("schema"), found) | schema
    return Parameter(
        name=name,
        type=found.text(entry.get("type"), NAME_LIMIT) or "STRING",
        description=found.text(entry.get("description"), PARAMETER_DESCRIPTION_LIMIT),
        default=fields.default(entry.get("default"), found),
        enum=tuple(dict.fromkeys(fields.check_enum(listed(entry.get("enum")), found))),
        place=_PLACES.get(place, "") if isinstance(place, str) else "",
        style=_STYLES.get(style, "") if isinstance(style, str) else "",
        wire=found.text(ours.get("wire"), NAME_LIMIT),
        reserved=ours.get("reserved") is True,
        empty=ours.get("empty") is True,
        media=found.text(ours.get("media"), NAME_LIMIT),
        example=None if example is None else fields.default(example, found),
        json_schema=schema,
    )


def _objects(value: Any, what: What, found: FileFindings) -> list[Mapping[str, Any]]:
    """Return the objects of a list; anything else in it is refused."""
    entries = listed(value)
    for number, entry in enumerate(entries, start=1):
        if not isinstance(entry, dict):
            found.refuse(what, "is no object", name=f"number {number}")
    return [entry for entry in entries if isinstance(entry, dict)]
