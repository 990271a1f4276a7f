"""Views of APIs and calls: one typed shape for ``--json`` and for MCP.

Text from catalogs and APIs is made plain here. No key is looked at. Nothing here searches or calls.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field

from toolsrv.plain import plain
from toolsrv.views.readiness import Readiness
from toolsrv_registry.api import Api, Parameter, SecurityScheme
from toolsrv_registry.functions import parameter_keys, whole_schema
from toolsrv_registry.schema_view import example, field_lines
from toolsrv_registry.security import unsupported
from toolsrv_registry.storage.health import HealthEntry, HealthStatus, Standing, describe_check
from toolsrv_runtime.calls.result import Consent, ResultKind
from toolsrv_runtime.calls.serialization import abbreviate_data_urls
from toolsrv_runtime.outcome import KeptFile, Source

if TYPE_CHECKING:
    from toolsrv_runtime.calls.caller import CallResult
    from toolsrv_runtime.calls.response_body import Attachment


class KeyView(BaseModel):
    """A key that a call needs."""

    model_config = ConfigDict(frozen=True)

    name: str = Field(
        description="What `toolsrv keys set` takes; empty: the API has no address, or no key serves."
    )
    goes: str = Field(description="Where it goes, for example: header X-API-Key.")


KeyViews = tuple[tuple[KeyView, ...], ...]
"""Alternatives, each of keys that are needed together: an empty one is a call without a key."""


def key_views(api: Api) -> KeyViews:
    """Return the keys that an API asks for; ``()`` where it asks for none."""
    from toolsrv_runtime.calls.credentials import RAPIDAPI, is_rapidapi_host, key_to_set

    host = _host(api)
    if is_rapidapi_host(host):
        return ((KeyView(name=RAPIDAPI, goes="header X-RapidAPI-Key"),),)
    return tuple(
        tuple(
            KeyView(
                name="" if unsupported(one) else plain(key_to_set(api, host, one)), goes=_goes(one)
            )
            for one in group
        )
        for group in api.security
    )


def describe_keys(keys: KeyViews) -> str:
    """Return the keys on one line, ``""`` where none is asked for."""
    return ", or ".join(" and ".join(_word(one) for one in group) or "none" for group in keys)


def _word(key: KeyView) -> str:
    return f"{key.goes} (toolsrv keys set {key.name})" if key.name else key.goes


def _goes(scheme: SecurityScheme) -> str:
    from toolsrv_runtime.calls.credentials import secret_form

    if fault := unsupported(scheme):
        return plain(f"{fault}, which is not supported: calls that need it are refused")
    if scheme.kind == "apiKey":
        return plain(f"{scheme.place} {scheme.key}").strip()
    return plain(secret_form(scheme).removeprefix("a "))


def _host(api: Api) -> str:
    try:
        return urlsplit(api.url).hostname or ""
    except ValueError:
        return ""


Detail = Literal["names", "summary", "full"]
SUMMARY_LIMIT = 300
RESPONSE_LIMIT = 40_000
CUT = "…"
"""Stands where the rest of a response was cut off."""
ALLOWED_LIMIT = 64
"""Allowed values of a parameter that a view lists."""


class ParameterView(BaseModel):
    """One parameter of an API."""

    model_config = ConfigDict(frozen=True)

    name: str
    type: str
    required: bool
    description: str
    default: Any = Field(default="", description="Empty when there is none.")
    example: Any = Field(
        default=None, description="A value of the provider's; never sent by itself."
    )
    allowed: tuple[str, ...] = Field(default=(), description="The only values, when limited.")
    allowed_in_all: int = Field(
        default=0, description="How many there are, where not all are listed."
    )
    fields: tuple[str, ...] = Field(
        default=(), description="What a list or an object holds, a line each, deeper ones indented."
    )


class CheckView(BaseModel):
    """What the last check of an API found, and when."""

    model_config = ConfigDict(frozen=True)

    verdict: HealthStatus
    standing: Standing
    status: int = Field(description="HTTP status; 0 when no response came.")
    checked_at: str = Field(description="ISO 8601, in UTC.")


class ApiView(BaseModel):
    """One API with all that a caller needs."""

    model_config = ConfigDict(frozen=True)

    id: str = Field(description="Pass it to call_api as it is.")
    name: str
    tool: str
    category: str
    description: str
    tool_description: str
    method: str
    url: str = Field(default="", description="Empty: the API has no address and cannot be called.")
    keys: KeyViews = Field(
        default=(), description="Keys that a call needs: alternatives of those needed together."
    )
    parameters: tuple[ParameterView, ...]
    example: dict[str, Any] = Field(description="Arguments of a call, to start from.")
    arguments_schema: dict[str, Any] | None = Field(
        default=None, description="JSON Schema of the arguments; null: not asked for."
    )
    check: CheckView | None = Field(default=None, description="Its last check; null: none yet.")
    hidden_behind: str = Field(
        default="",
        exclude_if=lambda name: not name,
        description="The catalog whose API of this id is found and called instead.",
    )
    now: Readiness | None = Field(
        default=None, description="Whether a call can work now, and what it costs."
    )


class MissingView(BaseModel):
    """An id that no API has."""

    id: str
    error: str
    hint: str


class DescribeView(BaseModel):
    """The APIs asked for, in that order, and the ids that do not exist."""

    apis: tuple[ApiView, ...]
    not_found: tuple[MissingView, ...]
    left_out: tuple[str, ...] = Field(
        default=(), description="Ids asked for that had no room in this answer."
    )
    next_step: str = Field(default="", description="What to do now.")


class FileView(BaseModel):
    """A file that a call brought: bytes that are no text."""

    media_type: str
    bytes: int
    name: str = Field(default="", description="What its host calls it.")
    path: str = Field(default="", description="Where it was saved.")
    uri: str = Field(default="", description="The resource to read it as.")


class CallView(BaseModel):
    """What one call of an API brought. ``response`` is JSON, or text where it is not JSON."""

    id: str
    arguments: dict[str, Any]
    ok: bool = Field(description="Whether the API answered with success (2xx).")
    status: int = Field(description="HTTP status; 0 when no response came.")
    response: Any = None
    error: str = ""
    source: Source = Field(description="Where the response comes from.")
    seconds: float
    kind: ResultKind = Field(default="ok", description="What came of the call, from a closed list.")
    hint: str = Field(default="", description="What to do next, when it did not go well.")
    page: str = Field(default="", description="Where a person subscribes to the API.")
    retry_after: float | None = Field(default=None, description="Seconds to leave the host alone.")
    headers: dict[str, str] = Field(
        default_factory=dict, description="Headers that lead on, such as location and link."
    )
    files: tuple[FileView, ...] = Field(
        default=(), description="What it brought as bytes: images, documents, archives."
    )
    consent: Consent | None = Field(
        default=None,
        description="The call that a person would have to allow, or has declined; no model can.",
    )
    truncated: bool = Field(default=False, description="The response was cut.")
    offset: int = Field(default=0, description="Characters of the response before this part.")
    characters: int = Field(
        default=0, description="Of the whole response as text, where only a part of it is here."
    )
    next_offset: int | None = Field(
        default=None, description="response_offset of the next part; null: none."
    )
    resource: str = Field(
        default="", description="What the whole response can be read as, where it was cut."
    )


def parameter_view(name: str, parameter: Parameter, *, required: bool) -> ParameterView:
    """Return the view of a parameter under the name that a call gives it."""
    return ParameterView(
        name=name,
        type=parameter.type,
        required=required,
        description=plain(parameter.description),
        default=parameter.default,
        example=parameter.example,
        allowed=parameter.enum[:ALLOWED_LIMIT],
        allowed_in_all=len(parameter.enum) if len(parameter.enum) > ALLOWED_LIMIT else 0,
        fields=tuple(map(plain, field_lines(parameter.json_schema or {}))),
    )


def allowed_words(view: ParameterView) -> str:
    """Return the allowed values as a sentence, "" where any value is."""
    if not view.allowed:
        return ""
    more = f", … ({view.allowed_in_all} in all)" if view.allowed_in_all else ""
    return f"One of: {', '.join(view.allowed)}{more}."


def parameter_views(api: Api) -> tuple[ParameterView, ...]:
    """Return the views of an API's parameters, required ones first."""
    return tuple(
        parameter_view(name, one, required=one in api.required)
        for name, one in parameter_keys(api).items()
    )


def api_view(
    api: Api,
    check: HealthEntry | None = None,
    readiness: Readiness | None = None,
    *,
    schema: bool = False,
) -> ApiView:
    """Return the view of an API, with what its last check found and what a call of it has now.

    ``schema``: with the JSON Schema of its arguments.
    """
    return ApiView(
        id=api.id,
        name=plain(api.name),
        tool=plain(api.tool),
        category=api.category,
        description=plain(api.description),
        tool_description=plain(api.tool_description),
        method=api.method,
        url=plain(api.url),
        keys=key_views(api),
        parameters=parameter_views(api),
        example={
            name: example_value(one)
            for name, one in parameter_keys(api).items()
            if one in api.required
        },
        arguments_schema=whole_schema(api) if schema else None,
        check=None if check is None else check_view(check),
        now=readiness,
    )


def check_view(check: HealthEntry) -> CheckView:
    """Return the view of a check."""
    return CheckView(
        verdict=check.verdict,
        standing=check.standing,
        status=check.status,
        checked_at=check.checked_at,
    )


def call_line(api: ApiView) -> str:
    """Return what a call of an API is: its method and address."""
    return f"{api.method} {api.url}" if api.url else f"{api.method}, without an address"


def check_line(check: CheckView) -> str:
    """Return a check in a few words: ``404 on 2026-11-20 (dead)``."""
    return f"{describe_check(check.verdict, check.status, check.checked_at)} ({check.standing})"


def example_value(parameter: Parameter) -> Any:
    """Return a value of the right type: the provider's own, an allowed one, or a plain stand-in."""
    for value in (parameter.default, parameter.example):
        if value not in ("", None):
            return value
    if parameter.enum:
        return parameter.enum[0]
    if parameter.json_schema:
        return example(parameter.json_schema)
    kind = parameter.type.upper()
    return {"NUMBER": 1, "INTEGER": 1, "BOOLEAN": True, "ARRAY": [], "OBJECT": {}}.get(kind, "…")


def call_view(
    result: CallResult, limit: int | None = RESPONSE_LIMIT, files: tuple[FileView, ...] = ()
) -> CallView:
    """Return the view of a call; a response of more than ``limit`` characters is cut to text.

    ``limit`` None cuts nothing. ``files`` say where its files went.
    """
    view = CallView(
        id=result.api_id,
        arguments=abbreviate_data_urls(result.arguments),
        ok=result.ok,
        status=result.status,
        response=result.response,
        error=plain(result.error),
        source=result.source,
        seconds=round(result.seconds, 4),
        kind=result.kind,
        hint=plain(result.hint),
        page=plain(result.page),
        retry_after=result.retry_after,
        headers={name: plain(one) for name, one in result.headers.items()},
        files=files,
        consent=_brief_consent(result.consent),
    )
    return view if limit is None else cut_response(view, limit)


def cut_response(view: CallView, limit: int) -> CallView:
    """Return a call with at most ``limit`` characters of its response, and its true size."""
    text = json_text(view.response)
    if view.truncated:
        text = text.removesuffix(CUT)
    if len(text) <= limit:
        return view
    return view.model_copy(
        update={
            "response": f"{text[:limit]}{CUT}",
            "truncated": True,
            "characters": view.characters or view.offset + len(text),
            "next_offset": view.offset + limit,
        }
    )


def _brief_consent(consent: Consent | None) -> Consent | None:
    if consent is None:
        return None
    return consent.model_copy(update={"arguments": abbreviate_data_urls(consent.arguments)})


def file_view(file: Attachment, *, path: str = "", uri: str = "") -> FileView:
    """Return the view of a file, with where it was saved or as what it is read."""
    return FileView(
        media_type=plain(file.media), bytes=file.size, name=plain(file.name), path=path, uri=uri
    )


def kept_view(file: KeptFile) -> FileView:
    """Return the view of a file that was saved."""
    return FileView(
        media_type=plain(file.media_type),
        bytes=file.bytes,
        name=plain(file.name),
        path=file.path,
        uri=file.uri,
    )


def json_text(response: Any) -> str:
    """Return a response as text: JSON on one line, or the text that it is."""
    return response if isinstance(response, str) else json.dumps(response, ensure_ascii=False)


def shorten(response: Any, limit: int) -> tuple[Any, bool]:
    """Return a response as it is, or the head of its text when that is over the limit."""
    text = json_text(response)
    return (response, False) if len(text) <= limit else (f"{text[:limit]}{CUT}", True)
