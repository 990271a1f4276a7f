"""Tools of MCP servers as APIs: one catalog per server, one API per tool.

A definition is what ``tools/list`` returns, as JSON. Its argument schema is kept whole; the
parameters that a prompt shows are derived from it. Knows nothing of how a server is reached.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from jsonschema.validators import validator_for

from toolsrv_catalogs import fields
from toolsrv_catalogs.findings import FileFindings
from toolsrv_catalogs.importer import ImportResult
from toolsrv_catalogs.layout import api_place, numbered
from toolsrv_catalogs.openapi.references import Node, ReferenceFault, References
from toolsrv_catalogs.openapi.schema import parameter, shape
from toolsrv_catalogs.text import DESCRIPTION_LIMIT, NAME_LIMIT, clean
from toolsrv_registry import names
from toolsrv_registry.api import Api, Catalog, McpTool, Parameter, PlaceSchema, Tool
from toolsrv_registry.errors import DataError

TOOLS_LIMIT = 10_000
"""Tools of one server that are read."""
SCHEMA_LIMIT = 1_048_576
"""Characters of JSON of one tool's schemas."""
_DEPTH_LIMIT = 100
_PINNED = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")


def fingerprint(definition: Mapping[str, Any]) -> str:
    """Return the SHA-256 of all that a tool says of itself, in hexadecimal digits."""
    pinned = {key: definition[key] for key in _PINNED if definition.get(key) is not None}
    text = json.dumps(pinned, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def reads_only(definition: Mapping[str, Any]) -> bool:
    """Whether a tool says that it changes nothing (``readOnlyHint``)."""
    hints = definition.get("annotations")
    return isinstance(hints, Mapping) and hints.get("readOnlyHint") is True


def read_mcp_tools(
    definitions: Sequence[Mapping[str, Any]],
    *,
    name: str,
    title: str = "",
    about: str = "",
    category: str | None = None,
    complete: bool = True,
) -> ImportResult:
    """Return the tools of a server as a catalog.

    Args:
        definitions: the server's list, as JSON.
        name: under which the server is kept; the catalog and its tool have it too, so that two
            servers of one kind have ids of their own.
        title: what the server calls itself.
        about: the server's instructions.
        category: of all of its tools; else ``Other``.
        complete: whether the list was read to its end.

    Raises:
        DataError: no tool of it can be taken.
    """
    found = FileFindings(path="tools/list", kind="mcp")
    reader = _Reader(name, f"{title}\n{about}".strip(), category, found)
    apis = [api for one in definitions[:TOOLS_LIMIT] if (api := reader.api(one)) is not None]
    if len(definitions) > TOOLS_LIMIT:
        found.refuse("file", f"has more than {TOOLS_LIMIT:,} tools; the first ones are taken")
    if not apis:
        reasons = "; ".join(f"{one.name}: {one.reason}" for one in found.refused[:3])
        raise DataError(
            f"the MCP server {name!r} has no tool that can be taken"
            + (f" ({reasons})" if reasons else ""),
            hint="see what it lists with its own documentation",
        )
    found.apis = len(apis)
    tool = Tool(
        category=reader.category,
        name=name,
        description=reader.about,
        apis=numbered(apis, found.note),
    )
    return ImportResult(
        catalog=Catalog(name=name, tools=(tool,)),
        origins=(found.path,),
        files=(found.report(),),
        passed=0,
        complete=complete,
    )


class _Reader:
    def __init__(self, server: str, about: str, category: str | None, found: FileFindings) -> None:
        self.category = fields.category(category or fields.OTHER, found)
        self.about = found.text(about, DESCRIPTION_LIMIT).strip()
        self._server = server
        self._found = found
        self._names: set[str] = set()

    def api(self, definition: Mapping[str, Any]) -> Api | None:
        """Return a tool as an API; None, and a finding, where it cannot be taken."""
        name = definition.get("name")
        shown = name if isinstance(name, str) else ""
        try:
            return self._api(shown, definition)
        except (ValueError, ReferenceFault) as fault:
            self._found.refuse("API", str(fault), name=shown)
        except RecursionError:
            self._found.refuse("API", "is nested too deep", name=shown)
        return None

    def _api(self, name: str, definition: Mapping[str, Any]) -> Api:
        if not name or clean(name, NAME_LIMIT) != name:
            raise ValueError("its name is empty, too long or holds hidden characters")
        if name in self._names:
            raise ValueError("is listed twice; the first one counts")
        schema = _schema(definition)
        required, optional = self._parameters(schema)
        rule = PlaceSchema(place="body", json_schema=schema, required=True)
        text = self._found.text(definition.get("description"), DESCRIPTION_LIMIT).strip()
        title = self._found.text(definition.get("title"), NAME_LIMIT).strip()
        self._names.add(name)
        return Api(
            id=api_place(self.category, self._server, _plain_name(name)),
            category=self.category,
            tool=self._server,
            name=name,
            description=text if not title or title == name else f"{title}\n{text}".strip(),
            tool_description=self.about,
            method="GET" if reads_only(definition) else "POST",
            url=f"mcp://{self._server}/{quote(name, safe='')}",
            required=tuple(required),
            optional=tuple(optional),
            together=(rule,) if self._is_schema(name, schema) else (),
            mcp=McpTool(server=self._server, name=name, fingerprint=fingerprint(definition)),
        )

    def _is_schema(self, name: str, schema: dict[str, Any]) -> bool:
        """Whether a schema is one; else the tool itself says what it wants."""
        try:
            validator_for(schema, default=Draft202012Validator).check_schema(schema)
        except (SchemaError, RecursionError) as fault:
            text = str(fault).partition("\n")[0][:120]
            self._found.note(
                f"{name[:80]}: its arguments are not checked, its schema is none: {text}"
            )
            return False
        return True

    def _parameters(self, schema: dict[str, Any]) -> tuple[list[Parameter], list[Parameter]]:
        refs = References(schema, PurePosixPath("inputSchema.json"), _no_other_file)
        flat = shape(refs, refs.root)
        required: list[Parameter] = []
        optional: list[Parameter] = []
        for name, node in flat.properties.items():
            needed = name in flat.required
            if clean(name, NAME_LIMIT) != name:
                if needed:
                    raise ValueError("a required argument's name is too long or not plain text")
                self._found.refuse("parameter", "its name is no plain text", name=name)
                continue
            one = self._parameter(refs, node, name)
            (required if needed else optional).append(one)
        return required, optional

    def _parameter(self, refs: References, node: Node, name: str) -> Parameter:
        refs.renew()
        try:
            return parameter(refs, node, self._found, name=name, place="body", about={})
        except ReferenceFault as fault:  # the whole schema still holds, so nothing is lost
            self._found.note(f"{name[:80]}: {fault}; any value is offered")
            return Parameter(name=name, place="body", json_schema={})


def _schema(definition: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tool's argument schema.

    Raises:
        ValueError: it is none, too large, or leads to another document.
    """
    schema = definition.get("inputSchema")
    if not isinstance(schema, dict):
        raise ValueError("its inputSchema is no JSON object")  # noqa: TRY004 - a finding
    for one in (schema, definition.get("outputSchema")):
        if len(json.dumps(one)) > SCHEMA_LIMIT:
            raise ValueError(f"its schema has more than {SCHEMA_LIMIT:,} characters")
        _check_references(one, 0)
    return schema


def _check_references(value: Any, depth: int) -> None:
    if depth > _DEPTH_LIMIT:
        raise ValueError(f"its schema is nested deeper than {_DEPTH_LIMIT} levels")
    if isinstance(value, dict):
        for key in ("$ref", "$dynamicRef"):
            target = value.get(key)
            if isinstance(target, str) and not target.startswith("#"):
                raise ValueError(f"its schema refers to {target[:120]!r}; nothing is fetched")
        for one in value.values():
            _check_references(one, depth + 1)
    elif isinstance(value, list):
        for one in value:
            _check_references(one, depth + 1)


def _plain_name(name: str) -> str:
    """Return a name for an id: that of the tool, with a digest where Latin letters of it are lost."""
    if names.is_respelled(name):
        return name
    standard = names.api_name(name)
    kept = names.standardize(f"x{name}")  # so that a leading digit gets no prefix
    if sum(map(str.isalnum, kept)) > sum(map(str.isalnum, name)):
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:6]
    return f"{standard or 'tool'}_{digest}"


def _no_other_file(path: PurePosixPath) -> Any:
    raise KeyError(str(path))
