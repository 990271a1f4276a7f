"""The types every room shares: ``Parameter``, ``Api``, ``Tool``, ``Catalog``.

An API is one endpoint; a tool is its provider's group of APIs; a catalog is a named set of
tools. All are frozen. Field meanings follow ToolBench's tool files (toolenv/tools, one JSON per
tool), read leniently: what is missing there is empty here. This module knows nothing about
files, storage or models.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from toolsrv_registry import media, names
from toolsrv_registry.flat_view import FLAT_FIELDS, flat_view, with_annotations

RESPONSE_SCHEMA = "response_schema"
"""The key, in what else a source says of an API, of what its responses look like."""

ORIGINAL = "original"
"""The key, in what else a source says, of what it says otherwise than the entry: ASCII JSON text.

It stands there as it was read, before hidden characters went and long texts were cut. Only an
export reads it.
"""

Place = Literal["", "path", "query", "header", "cookie", "body", "payload"]
Style = Literal[
    "",
    "commas",
    "spaces",
    "pipes",
    "tabs",
    "pairs",
    "brackets",
    "json",
    "label",
    "label_each",
    "matrix",
    "matrix_each",
    "cookie",
    "whole",
    "whole_json",
]


def _empty(value: object) -> bool:
    """Leave a later field out of a dump while it says nothing: hashes of old entries stay."""
    return not value


def _missing(value: object) -> bool:
    """Leave a later field out where there is none; an empty schema is one."""
    return value is None


class Parameter(BaseModel):
    """One argument of an API, as its provider describes it.

    ``json_schema`` is the JSON Schema (2020-12, self-contained) that a value must fulfil, with
    description, default and examples; it is ``None`` where the source has none, as ToolBench. With
    a schema all of ``type``, ``description``, ``default``, ``enum`` and ``example`` are derived
    from it on validation (``flat_view``): they are ToolBench's view of it, for prompts, and are
    never dumped. Without one they are what the source says.

    ``type`` is ToolBench's type string (``STRING``, ``NUMBER``, ``BOOLEAN``, ``ENUM``,
    ``DATE (YYYY-MM-DD)``, …); ``default`` is any JSON value, ``""`` when there is none;
    ``enum`` lists the allowed values where the catalog gives them (ToolBench never does).
    The default of a schema is sent for a required argument that nobody gives; an example never
    is, and ToolBench's defaults are examples. ``wire`` is the name in the request, where that is
    not ``name``: one name may stand in two places of a request and is two arguments.
    ``place`` says where a value goes: ``body`` is one property of the body, ``payload`` the whole
    body; ``""`` leaves it to the URL's placeholders and the method.
    ``style`` says how a list or an object is written there: as one value with its parts between
    ``commas``, ``spaces``, ``pipes`` or ``tabs``, an object as ``pairs`` (``a=1,b=2``) or in ``brackets``
    (``v[a]=1&v[b][0]=2``), any value as ``json`` text; a ``label`` (``.1,2``) and a ``matrix``
    (``;v=1,2``) of a path may write each part for itself; ``""`` is the place's own way, in a
    query each part for itself. A ``cookie`` is written without escapes, and a ``whole`` query is
    one value without a name, as text or as JSON. ``reserved`` leaves the signs that have a meaning
    in an address as they are (OpenAPI's ``allowReserved``); ``empty`` takes ``""`` whatever the
    schema says (``allowEmptyValue``); ``media`` is the media type of a part of a form.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    type: str = "STRING"
    description: str = ""
    default: Any = ""
    enum: tuple[str, ...] = ()
    place: Place = Field(default="", exclude_if=_empty)
    style: Style = Field(default="", exclude_if=_empty)
    wire: str = Field(default="", exclude_if=_empty)
    reserved: bool = Field(default=False, exclude_if=_empty)
    empty: bool = Field(default=False, exclude_if=_empty)
    media: str = Field(default="", exclude_if=_empty)
    example: Any = Field(default=None, exclude_if=_missing)
    json_schema: dict[str, Any] | None = Field(default=None, exclude_if=_missing)

    @model_validator(mode="before")
    @classmethod
    def _derive(cls, given: Any) -> Any:
        schema = given.get("json_schema") if isinstance(given, dict) else None
        if not isinstance(schema, dict):
            return given
        schema = with_annotations(schema, given)
        return given | flat_view(schema) | {"json_schema": schema}

    @model_serializer(mode="wrap")
    def _dump(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        found: dict[str, Any] = handler(self)
        derived = () if self.json_schema is None else FLAT_FIELDS
        return {key: one for key, one in found.items() if key not in derived}

    @property
    def has_default(self) -> bool:
        """Whether its schema has a default; ``""`` and null are some, ToolBench's are examples."""
        return self.json_schema is not None and "default" in self.json_schema

    @property
    def key(self) -> str:
        """The name a model sees (standardised, reserved words prefixed)."""
        return names.api_name(self.name)


class SecurityScheme(BaseModel):
    """One credential that an API asks for (OpenAPI's security scheme object).

    ``place`` and ``key`` say where an ``apiKey`` goes (``header``, ``X-API-Key``); ``scheme`` is
    the HTTP authentication scheme (``bearer``, ``basic``) of kind ``http``. ``token_url`` is where
    OAuth 2 client credentials are exchanged for a token, ``""`` where that is not offered, and
    ``scopes`` are those that the operation requires. Kind ``unknown`` stands for a scheme that the
    source names and does not describe. Holds no secret.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    kind: Literal["apiKey", "http", "oauth2", "openIdConnect", "mutualTLS", "unknown"]
    place: Literal["", "header", "query", "cookie"] = ""
    key: str = ""
    scheme: str = ""
    token_url: str = Field(default="", exclude_if=_empty)
    scopes: tuple[str, ...] = Field(default=(), exclude_if=_empty)


class PlaceSchema(BaseModel):
    """What the arguments in one place of a request have to fulfil together.

    ``place`` is ``body`` (an object's properties) or ``query``; ``json_schema`` is a JSON Schema
    (2020-12, self-contained) of an object with the names of the request. Not ``required``, it
    holds only where one of them is given. What each argument's own schema says is left out; of a
    tool of an MCP server it is the whole argument schema, as the server lists it.
    """

    model_config = ConfigDict(frozen=True)

    place: Literal["body", "query"]
    json_schema: dict[str, Any]
    required: bool = False


class McpTool(BaseModel):
    """A tool of an MCP server.

    ``server`` is the name under which the server is kept, ``name`` the tool's own name there, and
    ``fingerprint`` the SHA-256 of its whole definition: what a call compares with what the server
    lists then.
    """

    model_config = ConfigDict(frozen=True)

    server: str
    name: str
    fingerprint: str


class Api(BaseModel):
    """One endpoint.

    ``category`` is the standardised directory form, ``tool`` and ``name`` are the provider's
    own words, ``id`` is ``Category/tool/api`` in standardised names and unique in its catalog.
    ``url`` may hold ``{parameter}`` placeholders; the rest of the arguments go to the query
    string (GET) or a JSON body, unless their ``place`` says otherwise. ``body_type`` is the
    media type of a body, ``""`` for plain JSON; ``body_required`` sends one without properties
    too. ``together`` holds what the arguments of a place have to fulfil together: variants,
    dependencies, properties beside the named ones. ``accept`` is the media type that is asked for,
    ``""`` for any. ``security`` lists alternatives, each a group of credentials that are needed
    together; empty when nothing is known to be needed. ``mcp`` is set where the API is a tool of an MCP server: its ``method`` is then GET
    for a tool that only reads, else POST, and its ``url`` is ``mcp://SERVER/TOOL``.
    """

    model_config = ConfigDict(frozen=True)

    id: str
    category: str
    tool: str
    name: str
    description: str = ""
    tool_description: str = ""
    method: str = "GET"
    url: str = ""
    required: tuple[Parameter, ...] = ()
    optional: tuple[Parameter, ...] = ()
    body_type: str = Field(default="", exclude_if=_empty)
    body_required: bool = Field(default=False, exclude_if=_empty)
    together: tuple[PlaceSchema, ...] = Field(default=(), exclude_if=_empty)
    accept: str = Field(default="", exclude_if=_empty)
    security: tuple[tuple[SecurityScheme, ...], ...] = Field(default=(), exclude_if=_empty)
    mcp: McpTool | None = Field(default=None, exclude_if=_missing)

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Required parameters, then optional ones, in the provider's order."""
        return self.required + self.optional

    @property
    def others(self) -> dict[str, Any] | None:
        """The JSON Schema of properties of the body beside the named ones; None for no such."""
        schema = next((one.json_schema for one in self.together if one.place == "body"), {})
        told = schema.get("additionalProperties", schema.get("unevaluatedProperties"))
        if told is True or "patternProperties" in schema or (self.mcp and isinstance(told, dict)):
            return {}  # which schema is theirs shows when all are held to it
        return told if isinstance(told, dict) else None

    def other(self, name: str) -> Parameter | None:
        """Return the parameter of a property of the body beside the named ones, if it takes such."""
        schema = self.others
        return None if schema is None else Parameter(name=name, place="body", json_schema=schema)

    @property
    def sends_json(self) -> bool:
        """Whether a body is JSON, of whatever media type."""
        return not media.bare(self.body_type) or media.is_json(self.body_type)

    @property
    def tool_key(self) -> str:
        """The tool's standardised name (ToolBench's file stem), readable in every script."""
        return names.readable_name(self.tool)


class Tool(BaseModel):
    """A provider's group of APIs.

    ``extra`` and ``api_extras`` (one object per API, or none at all) are what else the source
    says, kept so that an export loses nothing. No model sees them.
    """

    model_config = ConfigDict(frozen=True)

    category: str
    name: str
    description: str = ""
    home_url: str = ""
    host: str = ""
    apis: tuple[Api, ...] = ()
    extra: dict[str, Any] = Field(default={}, exclude_if=_empty)
    api_extras: tuple[dict[str, Any], ...] = Field(default=(), exclude_if=_empty)


class Catalog(BaseModel):
    """A named set of tools. API ids are unique within it."""

    model_config = ConfigDict(frozen=True)

    name: str
    tools: tuple[Tool, ...] = Field(default=())

    @cached_property
    def apis(self) -> tuple[Api, ...]:
        """All APIs, tool by tool."""
        return tuple(api for tool in self.tools for api in tool.apis)
