"""Request bodies: JSON of any media type, forms, multipart, or text, with their Content-Type.

A part of a form is written as its encoding says: text, JSON, or a file with a name and a media
type of its own. Bytes are given as a ``data:`` URL (RFC 2397). Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import httpx

from toolsrv_registry.api import Api, Parameter
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
from toolsrv_runtime.calls.numerals import dumps, spell
from toolsrv_runtime.calls.styles import StyleError, escaped, pairs, reserved

FORM, MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data"
_JSON = "application/json"

_Part = tuple[str, tuple[str | None, bytes, str | None]]


def media_of(body_type: str) -> str:
    """Return a media type without its parameters, in lower case."""
    return body_type.partition(";")[0].strip().lower()


def is_json(media: str) -> bool:
    """Whether a part of this media type is JSON."""
    plain = media_of(media)
    return plain == _JSON or plain.endswith("+json")


def form_text(fields: Iterable[tuple[str, str]]) -> bytes:
    """Return names and escaped values as a query or a form has them."""
    return "&".join(f"{escaped(name)}={value}" for name, value in fields).encode("ascii")


def written(
    api: Api,
    body: Mapping[str, Any],
    payload: list[Any],
    fields: Mapping[str, Parameter],
) -> tuple[bytes, str]:
    """Return a body's bytes and its media type, both empty where there is no body.

    Args:
        api: whose ``body_type`` and ``body_required`` say what is sent.
        body: properties by their names in the request.
        payload: the whole body as one value, or nothing.
        fields: the parameters of the properties.

    Raises:
        StyleError: the whole body of a form is no object, or a property cannot be written.
    """
    plain = media_of(api.body_type)
    if payload and plain in (FORM, MULTIPART):
        if not isinstance(payload[0], dict):
            raise StyleError("its body is a form, which takes a JSON object")
        body, payload = payload[0], []
    if payload:
        if api.sends_json:
            return json_bytes(payload[0]), api.body_type or _JSON
        file = read_file(spell(payload[0]), "body")
        ranges = "*" in plain or "," in plain
        return file.content, fitting_media(api.body_type, file) if ranges else api.body_type
    if not body and not api.body_required:
        return b"", ""
    if plain == FORM:
        form = [one for name, value in body.items() for one in _field(name, value, fields)]
        return form_text(form), FORM
    if plain == MULTIPART:
        parts = [one for name, value in body.items() for one in _parts(name, value, fields)]
        return _multipart(parts)
    return json_bytes(body), api.body_type or _JSON


def _field(name: str, value: Any, fields: Mapping[str, Parameter]) -> Iterable[tuple[str, str]]:
    """Return a field of a form: an object is JSON text where no encoding says otherwise."""
    parameter = fields.get(name)
    style = parameter.style if parameter is not None else ""
    value = in_text(value, None if parameter is None else parameter.json_schema)
    if isinstance(value, dict) and not style:
        style = "json"
    escape = reserved if parameter is not None and parameter.reserved else escaped
    return pairs(name, value, style, escape=escape)


def _parts(name: str, value: Any, fields: Mapping[str, Parameter]) -> Iterable[_Part]:
    """Return the parts that a property becomes: one for each item of a list."""
    parameter = fields.get(name)
    media = parameter.media if parameter is not None else ""
    if isinstance(value, list) and not is_json(media):
        items = _schema(parameter).get("items")
        inner = items if isinstance(items, dict) else {}
        return [_part(name, one, inner, parameter, media) for one in value]
    return [_part(name, value, _schema(parameter), parameter, media)]


def _schema(parameter: Parameter | None) -> dict[str, Any]:
    return (parameter.json_schema or {}) if parameter is not None else {}


def _part(
    name: str, value: Any, schema: dict[str, Any], parameter: Parameter | None, media: str
) -> _Part:
    if is_json(media) or isinstance(value, list | dict):
        content = json_bytes(in_text(value, schema))
        return name, (None, content, media if is_json(media) else _JSON)
    if not _is_file(schema, parameter, media, value):
        return name, (None, spell(value).encode(), _first(media) or None)
    file = read_file(spell(value), name)
    kind = fitting_media(media, file)
    if takes_base64(schema):
        file = GivenFile(str(in_text(spell(value), schema)).encode(), file.name)
    return name, (file.name or name, file.content, kind)


def _first(media: str) -> str:
    """Return the first of the media types that an encoding offers."""
    return next((one.strip() for one in media.split(",") if "*" not in one), "")


def _is_file(schema: dict[str, Any], parameter: Parameter | None, media: str, value: Any) -> bool:
    if is_binary(schema) or (parameter is not None and parameter.type == "BINARY"):
        return True
    plain = media_of(_first(media))
    if plain and not is_textual(plain):
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
