"""Request bodies: JSON of any media type, forms, multipart, or text, with their Content-Type.

A part of a form is written as its encoding says: text, JSON, or a file with a name and a media
type of its own. Bytes are given as a ``data:`` URL (RFC 2397). Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import httpx

from toolsrv_registry.api import Api, Parameter
from toolsrv_registry.media import FORM, JSON, MULTIPART, bare, is_json
from toolsrv_registry.numerals import dumps, spell
from toolsrv_runtime.calls.attachment import is_textual
from toolsrv_runtime.calls.given_files import (
    GivenFile,
    fitting_media,
    in_text,
    is_binary,
    is_data_url,
    read_file,
    takes_base64,
)
from toolsrv_runtime.calls.styles import StyleError, escaped, pairs, reserved

Property = tuple[Parameter, Any]
"""A property of a body with its value."""
_Part = tuple[str, tuple[str | None, bytes, str | None]]


def form_text(fields: Iterable[tuple[str, str]]) -> bytes:
    """Return names and escaped values as a query or a form has them."""
    return "&".join(f"{escaped(name)}={value}" for name, value in fields).encode("ascii")


def written(api: Api, body: Mapping[str, Property], payload: list[Any]) -> tuple[bytes, str]:
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
        file = read_file(spell(payload[0]), "body")
        ranges = "*" in plain or "," in plain
        return file.content, fitting_media(api.body_type, file) if ranges else api.body_type
    if not body and not api.body_required:
        return b"", ""
    if plain == FORM:
        form = [one for name, (about, value) in body.items() for one in _field(name, value, about)]
        return form_text(form), FORM
    if plain == MULTIPART:
        parts = [one for name, (about, value) in body.items() for one in _parts(name, value, about)]
        return _multipart(parts)
    return json_bytes({name: value for name, (_, value) in body.items()}), api.body_type or JSON


def _field(name: str, value: Any, about: Parameter) -> Iterable[tuple[str, str]]:
    """Return a field of a form: an object is JSON text where no encoding says otherwise."""
    value = in_text(value, about.json_schema)
    style = about.style or ("json" if isinstance(value, dict) else "")
    return pairs(name, value, style, escape=reserved if about.reserved else escaped)


def _parts(name: str, value: Any, about: Parameter) -> Iterable[_Part]:
    """Return the parts that a property becomes: one for each item of a list."""
    schema = about.json_schema or {}
    if isinstance(value, list) and not is_json(about.media):
        items = schema.get("items")
        inner = items if isinstance(items, dict) else {}
        return [_part(name, one, inner, about) for one in value]
    return [_part(name, value, schema, about)]


def _part(name: str, value: Any, schema: dict[str, Any], about: Parameter) -> _Part:
    media = about.media
    if is_json(media) or isinstance(value, list | dict):
        content = json_bytes(in_text(value, schema))
        return name, (None, content, media if is_json(media) else JSON)
    if not _is_file(schema, about, value):
        return name, (None, spell(value).encode(), _first(media) or None)
    file = read_file(spell(value), name)
    kind = fitting_media(media, file)
    if takes_base64(schema):
        file = GivenFile(str(in_text(spell(value), schema)).encode(), file.name)
    return name, (file.name or name, file.content, kind)


def _first(media: str) -> str:
    """Return the first of the media types that an encoding offers."""
    return next((one.strip() for one in media.split(",") if "*" not in one), "")


def _is_file(schema: dict[str, Any], about: Parameter, value: Any) -> bool:
    plain = bare(_first(about.media))
    if is_binary(schema) or about.type == "BINARY" or (plain and not is_textual(plain)):
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
