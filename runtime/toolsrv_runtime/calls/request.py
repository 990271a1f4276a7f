"""Build the HTTP request of a call: path, query, headers, cookies and body.

Pure; sends nothing. A parameter goes where its ``place`` says. Without a place it fills the
placeholder of its name, else goes to the query of GET, HEAD and DELETE, else to the body. Bodies
are JSON, a form, multipart or text, by the media type that the API declares. Knows nothing of keys
or policies.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from urllib.parse import unquote, unquote_plus

import httpx

from toolsrv_registry import names
from toolsrv_registry.api import Api, Parameter
from toolsrv_registry.media import FORM, JSON, MULTIPART, bare, is_json
from toolsrv_registry.numerals import dumps, spell, structure
from toolsrv_registry.security import CONNECTION_HEADERS, TOKEN
from toolsrv_runtime.calls.response_body import is_textual
from toolsrv_runtime.calls.serialization import (
    FileArgument,
    StyleError,
    choose_media_type,
    cookie_pairs,
    decode_file,
    header_text,
    inline_base64,
    is_binary_schema,
    is_data_url,
    path_text,
    percent_encode,
    percent_encode_reserved,
    query_pairs,
    takes_base64,
    vanishes_in_query,
    whole_query,
)
from toolsrv_runtime.errors import ArgumentError, PolicyError

Property = tuple[Parameter, Any]
"""A property of a body with its value."""
_Part = tuple[str, tuple[str | None, bytes, str | None]]


def encode_form(fields: Iterable[tuple[str, str]]) -> bytes:
    """Return names and escaped values as a query or a form has them."""
    return "&".join(f"{percent_encode(name)}={value}" for name, value in fields).encode("ascii")


def encode_body(api: Api, body: Mapping[str, Property], payload: list[Any]) -> tuple[bytes, str]:
    """Return a body's bytes and its media type, both empty where there is no body.

    Args:
        api: whose ``body_type`` and ``body_required`` say what is sent.
        body: properties by their names in the request.
        payload: the whole body as one value, or nothing.

    Raises:
        StyleError: the whole body of a form is no object, or a property cannot be written.
    """
    plain = bare(api.body_type)
    if payload and plain in (FORM, MULTIPART):
        if not isinstance(payload[0], dict):
            raise StyleError("its body is a form, which takes a JSON object")
        body = {name: (Parameter(name=name), one) for name, one in payload[0].items()}
        payload = []
    if payload:
        if api.sends_json:
            return json_bytes(payload[0]), api.body_type or JSON
        file = decode_file(spell(payload[0]), "body")
        ranges = "*" in plain or "," in plain
        return file.content, choose_media_type(api.body_type, file) if ranges else api.body_type
    if not body and not api.body_required:
        return b"", ""
    if plain == FORM:
        form = [one for name, (about, value) in body.items() for one in _field(name, value, about)]
        return encode_form(form), FORM
    if plain == MULTIPART:
        parts = [one for name, (about, value) in body.items() for one in _parts(name, value, about)]
        return _multipart(parts)
    return json_bytes({name: value for name, (_, value) in body.items()}), api.body_type or JSON


def _field(name: str, value: Any, about: Parameter) -> Iterable[tuple[str, str]]:
    """Return a field of a form: an object is JSON text where no encoding says otherwise."""
    value = inline_base64(value, about.json_schema)
    style = about.style or ("json" if isinstance(value, dict) else "")
    return query_pairs(
        name, value, style, escape=percent_encode_reserved if about.reserved else percent_encode
    )


def _parts(name: str, value: Any, about: Parameter) -> Iterable[_Part]:
    """Return the parts that a property becomes: one for each item of a list, or as its style is.

    Raises StyleError.
    """
    schema = about.json_schema or {}
    if about.style and isinstance(value, list | dict):
        pairs = query_pairs(name, value, about.style, escape=spell)
        return [(key, (None, text.encode(), None)) for key, text in pairs]
    if isinstance(value, list) and not is_json(about.media):
        items = schema.get("items")
        inner = items if isinstance(items, dict) else {}
        return [_part(name, one, inner, about) for one in value]
    return [_part(name, value, schema, about)]


def _part(name: str, value: Any, schema: dict[str, Any], about: Parameter) -> _Part:
    media = about.media
    if is_json(media) or isinstance(value, list | dict):
        content = json_bytes(inline_base64(value, schema))
        return name, (None, content, media if is_json(media) else JSON)
    if not _is_file(schema, about, value):
        return name, (None, spell(value).encode(), _first(media) or None)
    file = decode_file(spell(value), name)
    kind = choose_media_type(media, file)
    if takes_base64(schema):
        file = FileArgument(str(inline_base64(spell(value), schema)).encode(), file.name)
    return name, (file.name or name, file.content, kind)


def _first(media: str) -> str:
    """Return the first of the media types that an encoding offers."""
    return next((one.strip() for one in media.split(",") if "*" not in one), "")


def _is_file(schema: dict[str, Any], about: Parameter, value: Any) -> bool:
    plain = bare(_first(about.media))
    if is_binary_schema(schema) or about.type == "BINARY" or (plain and not is_textual(plain)):
        return True
    return is_data_url(value) and "type" not in schema


def _multipart(parts: list[_Part]) -> tuple[bytes, str]:
    request = httpx.Request("POST", "https://form.invalid", files=parts)
    if parts:
        return request.read(), request.headers["Content-Type"]
    return b"--empty--\r\n", f"{MULTIPART}; boundary=empty"


def json_bytes(value: Any) -> bytes:
    """Return JSON without blanks, in UTF-8."""
    return dumps(value, ",", ":").encode()


BODILESS = frozenset({"GET", "HEAD", "DELETE"})
_PLACEHOLDER = re.compile(r"\{\{?([^{}]+)\}?\}")
_BETWEEN = (",", "|", ";")
"""Signs that providers write between the items of a list."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
ADDRESS_LIMIT = 65_536
"""Characters of an address; httpx takes no more."""


@dataclass(frozen=True, slots=True)
class OutgoingRequest:
    """A request without credentials: what may be shown, logged and asked a person about."""

    method: str
    url: httpx.URL
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes = b""


@dataclass(slots=True)
class _Parts:
    """Where the values go; those of ``path`` and ``query`` are escaped already."""

    path: dict[str, str] = field(default_factory=dict)
    query: list[tuple[str, str]] = field(default_factory=list)
    whole_query: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    cookies: list[tuple[str, str]] = field(default_factory=list)
    body: dict[str, Property] = field(default_factory=dict)
    payload: list[Any] = field(default_factory=list)


def build_request(api: Api, bound: Mapping[str, Any]) -> OutgoingRequest:
    """Return the request that calls ``api`` with arguments as ``arguments.bind`` returns them.

    Raises:
        ArgumentError: a value cannot stand where it must go; names the parameter.
        PolicyError: the API's address cannot be called whatever the arguments are.
    """
    _check_template(api)
    method = api.method.upper()
    if api.mcp is not None:
        return OutgoingRequest(method, web_address(api.url), {}, json_bytes(dict(bound)))
    holes = _placeholders(api)
    parts = _Parts()
    distinct = {parameter.name: parameter for parameter in reversed(api.parameters)}
    others = (
        api.other(name) or Parameter(name=name, place="body")
        for name in bound
        if name not in distinct
    )
    # The first of a name stands for all of it.
    for parameter in (*reversed(distinct.values()), *others):
        if parameter.name in bound:
            value = bound[parameter.name]
            place: str = parameter.place
            if not place or (place == "path" and parameter.name not in holes):
                open_place = "query" if method in BODILESS else "body"
                place = "path" if parameter.name in holes else open_place
            try:
                _place_value(api, parts, place, parameter, value)
            except StyleError as error:
                key = names.readable_api_name(parameter.name)
                told = f"{api.id}: the argument {key!r} {error}"
                raise ArgumentError(told, hint=error.hint) from None
    url = _url(api, parts, holes)
    headers = dict(parts.headers)
    if parts.cookies:
        pairs = [f"{name}={value}" for name, value in parts.cookies]
        given = [headers.pop(name) for name in list(headers) if name.lower() == "cookie"]
        headers["Cookie"] = "; ".join([*given, *pairs])
    try:
        content, kind = encode_body(api, parts.body, parts.payload)
    except StyleError as error:
        raise ArgumentError(
            f"{api.id}: {error}", hint='write an object, for example \'{"city": "Oslo"}\''
        ) from None
    if kind:
        headers["Content-Type"] = kind
    if api.accept and api.accept.isascii() and api.accept.isprintable():
        headers.setdefault("Accept", api.accept)
    return OutgoingRequest(method, url, headers, content)


def web_address(text: str) -> httpx.URL:
    """Return an address whose host can be told.

    Raises:
        httpx.InvalidURL: it is none.
    """
    try:
        url = httpx.URL(text)
        url.host  # noqa: B018 - raises for an xn-- label that stands for nothing
    except ValueError as error:
        raise httpx.InvalidURL(str(error)) from error
    return url


def api_address(text: str) -> httpx.URL:
    """Return an API's own address as ``web_address`` does: a search asks for each many times.

    Raises:
        httpx.InvalidURL: it is none.
    """
    return _known_address(text) if len(text) <= _KEPT_CHARACTERS else web_address(text)


_KEPT_CHARACTERS = 1_000
_known_address = lru_cache(maxsize=2_048)(web_address)


def address_too_long(api: Api) -> ArgumentError:
    """Return the error of arguments that make an address longer than one may be."""
    return ArgumentError(
        f"{api.id}: the arguments are too long for an address, which has at most "
        f"{ADDRESS_LIMIT:,} characters",
        hint="give shorter ones",
    )


def _check_template(api: Api) -> None:
    host = re.match(r"[a-zA-Z][a-zA-Z0-9+.-]*://([^/?#]*)", api.url)
    if host is None:
        raise _unusable(api, "it has none")
    if "{" in host[1]:
        raise _unusable(api, "its host would come from an argument")
    if len(api.url) > ADDRESS_LIMIT:
        raise _unusable(api, f"it has more than {ADDRESS_LIMIT:,} characters")
    if _CONTROL.search(api.url) or "\\" in api.url:
        raise _unusable(api, "it holds a control character")
    if _CONTROL.search(api.body_type) or not api.body_type.isascii():
        raise _unusable(api, f"its body would be {api.body_type[:80]!r}, which is no media type")


def _unusable(api: Api, why: str) -> PolicyError:
    return PolicyError(f"{api.id} has no usable address ({why})", hint="choose another API")


def _placeholders(api: Api) -> dict[str, str]:
    """Return parameter name -> the placeholder it fills: its own name, else the same key."""
    holes: dict[str, str] = {}
    able = [one for one in api.parameters if one.place in ("", "path")]
    for hole in _PLACEHOLDER.findall(api.url):
        exact = next((one for one in able if (one.wire or one.name) == hole), None)
        key = names.readable_api_name(hole)
        alike = (
            one
            for one in able
            if key and names.readable_api_name(one.name) == key and not one.place
        )
        if (parameter := exact or next(alike, None)) is not None:
            holes[parameter.name] = hole
    return holes


def _place_value(api: Api, parts: _Parts, place: str, parameter: Parameter, value: Any) -> None:
    """Write a value where it goes. Raises StyleError."""
    name, style = parameter.wire or parameter.name, parameter.style
    if place not in ("body", "payload") or api.sends_json:
        value = inline_base64(value, parameter.json_schema)
    kind = bare(api.body_type) if place == "body" else ""
    if place not in ("body", "payload") or kind == FORM:
        is_lost = style not in ("json", "whole_json") and vanishes_in_query(value)
    else:
        is_lost = kind == MULTIPART and value == [] and not is_json(parameter.media)
    if is_lost:
        told = "is or holds an empty list or object, which cannot be written there"
        raise StyleError(told, hint="leave it out")
    match place:
        case "path":
            text = path_text(name, value, style)
            if _one_line(unquote(text)).strip() in {"", ".", ".."}:
                told = f"is {unquote(text)!r}, which would name another place than the API's"
                raise StyleError(told, hint="give a value with letters or digits in it")
            parts.path[parameter.name] = text
        case "header":
            if not TOKEN.fullmatch(name) or name.lower() in CONNECTION_HEADERS:
                raise StyleError(f"goes to the header {name!r}, which cannot be set")
            parts.headers[name] = _in_header(header_text(value, style))
        case "cookie":
            for key, text in cookie_pairs(name, value, style):
                if not TOKEN.fullmatch(key):
                    raise StyleError(f"goes to the cookie {key!r}, which cannot be set")
                _one_line(unquote(text))
                parts.cookies.append((key, text))
        case "body":
            parts.body[name] = parameter, _in_body(parameter, value)
        case "payload":
            parts.payload.append(value)
        case "query" if style in ("whole", "whole_json"):
            parts.whole_query = whole_query(value, style)
        case _:
            if not parameter.place:
                value = _as_provider_writes(parameter, value)
            escape = percent_encode_reserved if parameter.reserved else percent_encode
            parts.query.extend(query_pairs(name, value, style, escape=escape))


def _one_line(text: str) -> str:
    if _CONTROL.search(text):
        raise StyleError(
            "holds a line end or control character, and it stands in the path or in a header",
            hint="give it in one line",
        )
    return text


def _in_header(text: str) -> str:
    if not _one_line(text).isascii():
        raise StyleError(
            "stands in a header, which takes unaccented letters, digits and signs only",
            hint="write it so, or leave it out",
        )
    return text.strip()  # blanks around a value are none of it (RFC 9110, 5.5)


def _as_provider_writes(parameter: Parameter, value: Any) -> Any:
    """Return a list or object of a parameter without a declared place, for a query.

    A list is written as the provider's own default is, as JSON or with the same sign between; else
    each item for itself, as ToolBench's requests do. An object is JSON.

    Raises:
        StyleError: an item holds the sign that stands between them.
    """
    if isinstance(value, dict):
        return spell(value)
    if not isinstance(value, list) or not isinstance(parameter.default, str):
        return value
    shown = parameter.default.strip()
    if shown.startswith("["):
        return spell(value)
    if sign := next((one for one in _BETWEEN if one in shown), ""):
        texts = [spell(one) for one in value]
        if any(sign in one for one in texts):
            raise StyleError(f"holds {sign!r} in one of its items, which parts them there")
        return sign.join(texts)
    return value


def _in_body(parameter: Parameter, value: Any) -> Any:
    """Return a value for a JSON body: what has no schema may be a list or an object as text."""
    if parameter.json_schema is None and isinstance(value, str):
        kind = parameter.type.upper().partition(" ")[0]
        if kind in ("ARRAY", "OBJECT") and (read := structure(value)) is not None:
            return read
    return value


def _url(api: Api, parts: _Parts, holes: Mapping[str, str]) -> httpx.URL:
    filled = {holes[name]: value for name, value in parts.path.items()}
    template = api.url

    def fill(match: re.Match[str]) -> str:
        if match[1] not in filled:
            raise ArgumentError(
                f"{api.id}: its address needs {match[1]!r}, and no argument gives it",
                hint=f"give the argument {names.readable_api_name(match[1])!r}, or choose another API",
            )
        return filled[match[1]]

    filled_in = _PLACEHOLDER.sub(fill, template)
    if len(filled_in) > ADDRESS_LIMIT:
        raise address_too_long(api)
    try:
        url = web_address(filled_in)
    except httpx.InvalidURL as error:
        raise _unusable(api, str(error)) from None
    if url.userinfo:
        raise _unusable(api, "it holds a user name")
    if not parts.query and not parts.whole_query:
        return url
    given = {name for name, _ in parts.query}
    kept = [one for one in url.query.split(b"&") if one and _name_in_query(one) not in given]
    written = (parts.whole_query.encode("ascii"), encode_form(parts.query))
    query = b"&".join([*kept, *filter(None, written)])
    bare = url.copy_with(query=None, fragment=None)
    if len(str(bare)) + len("?") + len(query) > ADDRESS_LIMIT:
        raise address_too_long(api)
    return bare.copy_with(query=query)


def _name_in_query(pair: bytes) -> str:
    return unquote_plus(pair.partition(b"=")[0].decode("ascii"))
