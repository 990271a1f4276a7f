"""Request bodies: JSON of any media type, forms, multipart, or text, with their Content-Type.

A part of a form is written as its encoding says: text, JSON, or a file with a name and a media
type of its own. Bytes are given as a ``data:`` URL (RFC 2397). Pure.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import unquote_to_bytes

import httpx

from toolsrv_registry.api import Api, Parameter
from toolsrv_runtime.calls.numerals import dumps, spell
from toolsrv_runtime.calls.styles import StyleError, escaped, pairs, reserved

FORM, MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data"
_JSON = "application/json"
_BYTES = "application/octet-stream"
_DATA = re.compile(r"data:([\w.+-]+/[\w.+-]+)?((?:;[\w.+-]+=[^;,]*)*)(;base64)?,", re.ASCII)
_FILE_NAME = re.compile(r";(?:file)?name=([^;]*)")

_Part = tuple[str, tuple[str | None, bytes, str | None]]


def media_of(body_type: str) -> str:
    """Return a media type without its parameters, in lower case."""
    return body_type.partition(";")[0].strip().lower()


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
        return _file(payload[0], "", "").content, api.body_type
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
    if isinstance(value, dict) and not style:
        style = "json"
    escape = reserved if parameter is not None and parameter.reserved else escaped
    return pairs(name, value, style, escape=escape)


def _parts(name: str, value: Any, fields: Mapping[str, Parameter]) -> Iterable[_Part]:
    """Return the parts that a property becomes: one for each item of a list."""
    parameter = fields.get(name)
    media = parameter.media if parameter is not None else ""
    whole = media_of(media) == _JSON or media_of(media).endswith("+json")
    if isinstance(value, list) and not whole:
        return [_part(name, one, parameter, media) for one in value]
    return [_part(name, value, parameter, media)]


def _part(name: str, value: Any, parameter: Parameter | None, media: str) -> _Part:
    is_json = media_of(media) == _JSON or media_of(media).endswith("+json")
    if is_json or isinstance(value, list | dict):
        return name, (None, json_bytes(value), media if is_json else _JSON)
    if _is_file(parameter, media, value):
        found = _file(value, name, media)
        return name, (found.name, found.content, found.media)
    return name, (None, spell(value).encode(), media or None)


def _is_file(parameter: Parameter | None, media: str, value: Any) -> bool:
    binary = parameter is not None and parameter.type == "BINARY"
    return binary or bool(media and not media.lower().startswith("text/")) or _is_data(value)


def _is_data(value: Any) -> bool:
    return isinstance(value, str) and _DATA.match(value) is not None


class _File:
    def __init__(self, name: str, content: bytes, media: str) -> None:
        self.name = name
        self.content = content
        self.media = media


def _file(value: Any, name: str, media: str) -> _File:
    """Return the bytes that a text stands for: those of a ``data:`` URL, else its own."""
    text = spell(value)
    if (match := _DATA.match(text)) is None:
        return _File(name, text.encode(), media or _BYTES)
    content = unquote_to_bytes(text[match.end() :])
    if match[3]:
        try:
            content = base64.b64decode(content, validate=True)
        except (binascii.Error, ValueError):
            raise StyleError(f"the bytes of {name[:80]!r} are no base64") from None
    named = _FILE_NAME.search(match[2])
    file_name = unquote_to_bytes(named[1]).decode(errors="replace") if named else name
    known = media if media != _BYTES else ""
    return _File(file_name, content, known or match[1] or _BYTES)


def _multipart(parts: list[_Part]) -> tuple[bytes, str]:
    request = httpx.Request("POST", "https://form.invalid", files=parts)
    if parts:
        return request.read(), request.headers["Content-Type"]
    return b"--empty--\r\n", f"{MULTIPART}; boundary=empty"


def json_bytes(value: Any) -> bytes:
    """Return JSON without blanks, in UTF-8."""
    return dumps(value, ",", ":").encode()
