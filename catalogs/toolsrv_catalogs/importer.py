"""Import a source: read every file by its format and report what became of it.

Tools of files that an import refuses stay as they were when they were last read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

from toolsrv_catalogs import fields, yaml_text
from toolsrv_catalogs.archive import open_source
from toolsrv_catalogs.fields import CATEGORIES
from toolsrv_catalogs.findings import FileFindings, FileReport, shown_path
from toolsrv_catalogs.hosts import address_fault
from toolsrv_catalogs.layout import attach, read_schemas
from toolsrv_catalogs.selection import Selection, chosen, only, selection
from toolsrv_catalogs.sources import MIB, Progress, Sibling, Source, SourceFile, Watch, placed
from toolsrv_catalogs.toolbench import read_tool
from toolsrv_registry.api import Api, Catalog, Tool
from toolsrv_registry.errors import DataError, UsageError

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
STASH_LIMIT = 256 * MIB
"""Bytes of the files that references may lead to."""
_PAGE = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*(?:<!--.*?-->\s*)*<(?:!doctype\s+html|html|head|body)\b",
    re.IGNORECASE | re.DOTALL,
)
_OPENING = 8_192
_WEB_PAGE = "is a web page, no document"
_ARCHIVE = re.compile(r"\.(tar(\.\w+)?|t[gbx]z2?|zip|json|ya?ml)$", re.IGNORECASE)


@dataclass(frozen=True)
class ImportResult:
    """A catalog as it was read, and a report per file that was looked at.

    ``origins`` says in which file each tool stands, in the catalog's order. ``passed`` counts
    files that are none of ours by name; ``complete`` is False when the source was not read to its
    end.
    """

    catalog: Catalog
    origins: tuple[str, ...]
    files: tuple[FileReport, ...]
    passed: int
    complete: bool


def catalog_name(path: Path) -> str:
    """Return the name a catalog gets after its source: ``toolenv`` for ``toolenv.tar.gz``."""
    try:
        whole = path.expanduser().resolve()
    except (OSError, ValueError, RuntimeError):  # told when it is opened
        return "catalog"
    name = whole.parent.name if whole.name == "tools" and whole.is_dir() else whole.name
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", _ARCHIVE.sub("", name)).strip("-._")[:64]
    return plain or "catalog"


def check_name(name: str) -> None:
    """Raise UsageError unless ``name`` can be a catalog's name."""
    if not NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} cannot be the name of a catalog",
            hint="use up to 64 letters, digits, '-', '_' and '.', the first a letter or a digit",
        )


def read_catalog(
    path: Path,
    *,
    name: str | None = None,
    category: str | None = None,
    server: str | None = None,
    within: str = "",
    variables: Mapping[str, str] | None = None,
    location: str = "",
    sibling: Sibling | None = None,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    progress: Progress | None = None,
) -> ImportResult:
    """Return the catalog at ``path``: a folder, an archive or one file.

    Args:
        path: ToolBench's ``toolenv`` or its ``tools``, an archive of either, tool files, or
            OpenAPI documents.
        name: the catalog's name; else after the source.
        category: the category of what names none; else ``Other``.
        within: the name of a folder of an archive or folder outside of which nothing is read;
            where the source has none of that name all of it is read.
        server: the address that OpenAPI documents are called at, in place of their own servers;
            those without a host are relative to it.
        variables: values of the variables in the servers of OpenAPI documents.
        location: the URL that ``path`` was brought from. If it is one document, its servers
            without a host are relative to that.
        sibling: reads the other files of a single document by their paths beside it, where they
            are not in its folder.
        include: rules of ``selection`` that say which operations are taken; none for all.
        exclude: rules for those that are left out.
        progress: hears (bytes read, bytes in all).

    Raises:
        NotFoundError: there is nothing at ``path``.
        UsageError: the name cannot be one, the server is no address, a rule is none, or one
            that includes fits nothing.
        DataError: the source cannot be read, or no API is in it.
    """
    name = catalog_name(path) if name is None else name
    check_name(name)
    if server is not None and (fault := address_fault(server)):
        raise UsageError(f"the server {fault}", hint="give it as https://api.example.com")
    wanted = selection(include, exclude)
    reader = _Reader(
        open_source(path, sibling), path, category, server or "", variables or {}, wanted
    )
    reader.location = location
    reader.watch.within = within
    reader.read(progress)
    if within and not reader.found:
        reader = _Reader(open_source(path), path, category, server or "", variables or {}, wanted)
        reader.read(progress)
    found = reader.finish()
    wanted.check()
    tools = tuple(tool for _, tool in found)
    reports = tuple(one.report() for one in reader.found.values())
    if not any(tool.apis for tool in tools):
        raise _nothing(path, reports, wanted.left_out)
    watch = reader.watch
    return ImportResult(
        catalog=Catalog(name=name, tools=tools),
        origins=tuple(path for path, _ in found),
        files=reports,
        passed=watch.passed,
        complete=watch.complete,
    )


def _nothing(path: Path, reports: tuple[FileReport, ...], left_out: int) -> DataError:
    """Return the error for a source without APIs, with the first reasons."""
    if left_out:
        return DataError(
            f"none of the {left_out} operations in {str(path)!r} is taken",
            hint="change --include and --exclude",
        )
    reasons = [
        f"{one.path or path.name}: {refusal.reason}" for one in reports for refusal in one.refused
    ]
    return DataError(
        f"no API is in {str(path)!r}" + (f" ({'; '.join(reasons[:3])})" if reasons else ""),
        hint="the address shows a page for people: name that of the document itself, which such a "
        "page often links to as openapi.json or openapi.yaml"
        if any(one.endswith(_WEB_PAGE) for one in reasons)
        else "name ToolBench's toolenv (a folder or an archive), tool files, or OpenAPI documents",
    )


@dataclass
class _Document:
    """A parsed file that is read only after the walk, when all others are known."""

    value: Any
    size: int


@dataclass
class _Reader:
    source: Source
    root: Path
    category: str | None
    server: str
    variables: Mapping[str, str]
    wanted: Selection
    location: str = ""
    found: dict[str, FileFindings] = field(default_factory=dict)
    tools: list[tuple[PurePosixPath, Tool]] = field(default_factory=list)
    schemas: dict[tuple[str, str], tuple[FileFindings, Any]] = field(default_factory=dict)
    stash: dict[PurePosixPath, _Document] = field(default_factory=dict)
    used: set[PurePosixPath] = field(default_factory=set)
    missing: set[PurePosixPath] = field(default_factory=set)
    stashed: int = 0

    def __post_init__(self) -> None:
        self.watch = Watch(refuse=self._refused)

    def read(self, progress: Progress | None) -> None:
        """Walk the source once."""
        if progress is not None:
            self.watch.progress = progress
        for file in self.source.files(self.watch):
            if str(file.path) in self.found:
                self._refused(str(file.path), "is there twice; the first one counts")
            else:
                self._file(file, self._findings(str(file.path)))

    def finish(self) -> list[tuple[str, Tool]]:
        """Read what waited for all files to be known; return files and tools in path order."""
        from toolsrv_catalogs.openapi.reader import read_openapi, version_fault  # noqa: PLC0415 - heavy

        documents = [
            (path, one.value)
            for path, one in sorted(self.stash.items())
            if isinstance(one.value, dict) and {"openapi", "swagger"} & one.value.keys()
        ]
        for path, value in documents:
            found = self._findings(str(path))
            if fault := version_fault(value):
                found.refuse("file", fault)
                continue
            found.kind = "openapi"
            where = _known(path.parent.name) or self.category or fields.OTHER
            tool = read_openapi(
                value,
                path,
                where,
                load=self._load,
                found=found,
                server=self.server,
                variables=self.variables,
                location=self.location if len(documents) == 1 else "",
                wanted=self.wanted,
            )
            self._take(path, tool)
        for path in sorted(self.stash.keys() - {path for path, _ in documents}):
            found = self._findings(str(path))
            if path in self.used:
                found.kind = "fragment"
            else:
                found.refuse("file", "is neither a tool nor an OpenAPI document")
        return self._together()

    def _file(self, file: SourceFile, found: FileFindings) -> None:
        content = file.content
        place = _place(file.path)
        if not content.strip():
            if place.schemas:  # ToolBench ships some
                found.kind = "schemas"
            else:
                found.refuse("file", "is empty")
            return
        if _PAGE.match(content[:_OPENING]):
            found.refuse("file", _WEB_PAGE)
            return
        try:
            twice: list[str] = []
            value = _parse(file, twice)
        except (UnicodeDecodeError, ValueError, RecursionError, MemoryError) as error:
            kind = "JSON" if file.path.suffix.lower() == ".json" else "YAML"
            found.refuse("file", f"is no {kind}: {str(error)[:200] or type(error).__name__}")
            return
        for key in twice:
            found.note(f"{key[:80]!r} stands twice in one mapping; the last one counts")
        if place.schemas:
            found.kind = "schemas"
            self.schemas[file.path.parent.name, file.path.stem] = (found, value)
        elif isinstance(value, dict) and _is_tool(value, placed=place.tool):
            self._tool(value, file.path, found)
        elif self.stashed + len(content) > STASH_LIMIT:
            found.refuse("file", f"more than {STASH_LIMIT // MIB} MiB of OpenAPI in all")
        else:
            self.stashed += len(content)
            self.stash[file.path] = _Document(value, len(content))

    def _tool(self, value: dict[str, Any], path: PurePosixPath, found: FileFindings) -> None:
        found.kind = "tool"
        folder = path.parent.name or self._outer()
        named = value.get("category_name") or value.get("category")
        where = folder or (named if isinstance(named, str) else "") or self.category or fields.OTHER
        try:
            tool = chosen(read_tool(value, where, stem=path.stem, found=found), self.wanted, found)
            self._take(path, tool)
        except (DataError, RecursionError) as error:
            found.refuse("file", str(error) or "is nested too deep")

    def _take(self, path: PurePosixPath, tool: Tool) -> None:
        if tool.apis or not self.wanted:
            self.tools.append((path, tool))

    def _outer(self) -> str:
        """Return the category that the folder of a bare file stands for, if it does."""
        whole = self.root.resolve()
        folder = whole if whole.is_dir() else whole.parent
        return folder.name if folder.parent.name == "tools" else _known(folder.name)

    def _together(self) -> list[tuple[str, Tool]]:
        """Join the tools of all files; of APIs with one id the later get numbers.

        One that another file has word for word is refused.
        """
        owners: dict[str, tuple[str, Api]] = {}
        taken = {api.id for _, tool in self.tools for api in tool.apis}
        result = []
        order = {(tool.category, str(path)): (path, tool) for path, tool in self.tools}
        for _, (path, tool) in sorted(order.items()):
            found = self._findings(str(path))
            joined = self._with_schemas(tool, path)
            apis = list(joined.apis)
            fresh = []
            for at, api in enumerate(apis):
                owner, other = owners.get(api.id, ("", None))
                if other == api:
                    found.refuse("API", f"its id {api.id} belongs to {owner}", name=api.name)
                    continue
                if other is not None:
                    apis[at] = api.model_copy(update={"id": fields.unused(api.id, taken)})
                    found.note(
                        f"{api.name!r}: the id {api.id} belongs to {owner}; it is {apis[at].id}"
                    )
                fresh.append(at)
            owners |= {
                joined.apis[at].id: (str(path), joined.apis[at])
                for at in fresh
                if joined.apis[at].id not in owners
            }
            joined = joined.model_copy(update={"apis": tuple(apis)})
            if len(fresh) < len(joined.apis):
                found.apis = len(fresh)
                if not fresh:
                    continue
                joined = only(joined, fresh)
            result.append((shown_path(str(path)), joined))
        for found, _ in self.schemas.values():
            found.refuse("file", "its tool is not there")
        return result

    def _with_schemas(self, tool: Tool, path: PurePosixPath) -> Tool:
        found, value = self.schemas.pop((path.parent.name, path.stem), (None, None))
        return tool if found is None else attach(tool, read_schemas(value, found), found)

    def _load(self, path: PurePosixPath) -> Any:
        """Return the parsed file that a reference leads to. Raises KeyError."""
        if path in self.missing:
            raise KeyError(path)
        if path not in self.stash:
            self.missing.add(path)  # until it is read: it may be large, and lie on the web
            content = self.source.sibling(path)
            if content is None or self.stashed + len(content) > STASH_LIMIT:
                raise KeyError(path)
            self.stashed += len(content)
            try:
                value = _parse(SourceFile(path, content))
            except (ValueError, RecursionError) as error:
                raise KeyError(path) from error
            self.missing.discard(path)
            self.stash[path] = _Document(value, len(content))
            self._findings(str(path)).kind = "fragment"
        self.used.add(path)
        return self.stash[path].value

    def _findings(self, path: str) -> FileFindings:
        return self.found.setdefault(path, FileFindings(path=path))

    def _refused(self, path: str, reason: str) -> None:
        self._findings(path).refuse("file", reason)


@dataclass(frozen=True)
class _Place:
    """What the path of a file says it is, in ToolBench's layout."""

    tool: bool
    schemas: bool


def _place(path: PurePosixPath) -> _Place:
    folders = path.parts[:-1]
    return _Place(
        tool=len(folders) >= 2 and folders[-2] == "tools",
        schemas=len(folders) >= 2 and folders[-2] == "response_examples",
    )


def _is_tool(value: dict[str, Any], *, placed: bool) -> bool:
    if {"openapi", "swagger"} & value.keys():
        return False
    return placed or "api_list" in value or "tool_name" in value


def _known(name: str) -> str:
    """Return a folder's name if it is one of ToolBench's categories."""
    return name if name in CATEGORIES else ""


def _parse(file: SourceFile, twice: list[str] | None = None) -> Any:
    text = file.content.decode("utf-8-sig")
    if file.path.suffix.lower() == ".json":
        return json.loads(text)
    return yaml_text.load(text, twice)


def refused_files(reading: ImportResult) -> frozenset[str]:
    """Return the files and folders that are there and were not read, as tools name theirs."""
    named = (
        one.path for one in reading.files if any(entry.what == "file" for entry in one.refused)
    )
    return frozenset(shown_path(str(placed(path) or path)) for path in named) - {
        "",
        *reading.origins,
    }


def with_unread(
    reading: ImportResult, last: Catalog, origins: Sequence[str]
) -> tuple[ImportResult, dict[str, int]]:
    """Return a reading with what stays of its refused files, and how many APIs of each.

    Args:
        reading: what was read now.
        last: the catalog of the same source as it was read last.
        origins: the file that each of its tools stood in, ``""`` where that is unknown.
    """
    refused = refused_files(reading)
    now = {api.id for api in reading.catalog.apis}
    tools = list(zip(reading.origins, reading.catalog.tools, strict=True))
    kept: dict[str, int] = {}
    for origin, tool in zip(origins, last.tools, strict=True):
        if _within(origin, refused) and (left := _without(tool, now)).apis:
            tools.append((origin, left))
            kept[origin] = kept.get(origin, 0) + len(left.apis)
    tools.sort(key=lambda one: (one[1].category, one[0]))
    catalog = Catalog(name=reading.catalog.name, tools=tuple(tool for _, tool in tools))
    return replace(reading, catalog=catalog, origins=tuple(path for path, _ in tools)), kept


def _within(origin: str, refused: frozenset[str]) -> bool:
    """Return whether a file, or a folder that it is in, was refused."""
    parts = origin.split("/")
    return any("/".join(parts[:many]) in refused for many in range(1, len(parts) + 1))


def _without(tool: Tool, ids: set[str]) -> Tool:
    """Return a tool without the APIs that another file has now."""
    stays = [at for at, api in enumerate(tool.apis) if api.id not in ids]
    return only(tool, stays)
