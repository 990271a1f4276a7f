"""Bytes given as the value of an argument: a ``data:`` URL, or base64 that begins as a known file.

A ``data:`` URL (RFC 2397) may name its file: ``data:image/png;name=a%20b.png;base64,…``. Where a
schema takes base64 in a text (``contentEncoding``, OpenAPI 3.0's ``byte``) only its base64 is sent.
No path is ever read here. Pure.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, unquote_to_bytes

from toolsrv_registry.media import bare
from toolsrv_registry.schema_view import alternatives
from toolsrv_runtime.calls.attachment import BYTES, sniffed
from toolsrv_runtime.calls.styles import StyleError

FILE_LIMIT = 16_000_000
"""Bytes of one file that is sent."""

_DATA = re.compile(r"data:([\w.+-]+/[\w.+-]+)?((?:;[\w.+-]+=[^;,]*)*)(;base64)?,", re.ASCII)
_NAME = re.compile(r";(?:file)?name=([^;]*)")
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}", re.ASCII)
_BASE64_HEAD = 64
_SHOWN = 200


class GivenFile(NamedTuple):
    """A file to send; ``name`` and ``media`` are empty where they are not given."""

    content: bytes
    name: str = ""
    media: str = ""


def data_url(file: GivenFile) -> str:
    """Return a file as a ``data:`` URL."""
    named = f";name={quote(file.name, safe='')}" if file.name else ""
    text = base64.b64encode(file.content).decode("ascii")
    return f"data:{file.media}{named};base64,{text}"


def is_data_url(value: Any) -> bool:
    """Whether a value is a ``data:`` URL."""
    return isinstance(value, str) and _DATA.match(value) is not None


def read_file(text: str, what: str) -> GivenFile:
    """Return the file that a text stands for: of a plain text its own characters in UTF-8.

    Raises:
        StyleError: it says that it is base64 and is none; ``what`` names it.
    """
    if (match := _DATA.match(text)) is None:
        return _plain(text)
    content = unquote_to_bytes(text[match.end() :])
    if match[3]:
        try:
            content = base64.b64decode(content, validate=True)
        except (binascii.Error, ValueError):
            raise StyleError(f"the bytes of {what[:80]!r} are no base64") from None
    named = _NAME.search(match[2])
    name = unquote_to_bytes(named[1]).decode(errors="replace") if named else ""
    return GivenFile(content, re.split(r"[/\\]", name)[-1], match[1] or "")


def _plain(text: str) -> GivenFile:
    head = text[:_BASE64_HEAD]
    if len(text) % 4 == 0 and _BASE64.fullmatch(head) and _BASE64.fullmatch(text):
        content = base64.b64decode(text)
        if media := sniffed(content):
            return GivenFile(content, "", media)
    return GivenFile(text.encode())


def briefly(value: Any) -> Any:
    """Return a JSON value as people are shown it: of long ``data:`` URLs size and digest alone."""
    if isinstance(value, dict):
        return {name: briefly(one) for name, one in value.items()}
    if isinstance(value, list):
        return [briefly(one) for one in value]
    if not isinstance(value, str) or len(value) <= _SHOWN or not is_data_url(value):
        return value
    try:
        content = read_file(value, "it").content
    except StyleError:
        return value
    digest = hashlib.sha256(content).hexdigest()
    return f"{value.partition(',')[0][:_SHOWN]} ({len(content):,} bytes, SHA-256 {digest})"


def takes_base64(schema: Mapping[str, Any] | None) -> bool:
    """Whether a schema takes bytes as base64 in a text."""
    return schema is not None and str(schema.get("contentEncoding", "")).startswith("base64")


def is_binary(schema: Mapping[str, Any] | None) -> bool:
    """Whether a schema takes bytes, in whatever form."""
    return takes_base64(schema) or (schema is not None and schema.get("format") == "binary")


def in_text(value: Any, schema: Mapping[str, Any] | None) -> Any:
    """Return a value with the base64 of ``data:`` URLs where its schema takes bytes in a text."""
    if not schema:
        return value
    if isinstance(value, str):
        return _base64(value, schema) if is_binary(schema) else _of_parts(value, schema)
    if isinstance(value, list) and isinstance(items := schema.get("items"), dict):
        return [in_text(one, items) for one in value]
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        value = {name: in_text(one, properties.get(name)) for name, one in value.items()}
    return _of_parts(value, schema)


def _of_parts(value: Any, schema: Mapping[str, Any]) -> Any:
    for part in (*alternatives(schema), *schema.get("allOf", ())):
        value = in_text(value, part)
    return value


def _base64(text: str, schema: Mapping[str, Any]) -> str:
    if not is_data_url(text):
        return text
    content = read_file(text, "it").content
    if schema.get("contentEncoding") == "base64url":
        return base64.urlsafe_b64encode(content).decode("ascii")
    return base64.b64encode(content).decode("ascii")


def fitting_media(offered: str, file: GivenFile) -> str:
    """Return a file's media type: its own, where the types that are offered do not exclude it.

    ``offered`` are those of an encoding, with commas between; ``image/*`` stands for a family.
    """
    kinds = [one.strip() for one in offered.split(",") if one.strip()]
    own = file.media.lower()
    family = f"{own.partition('/')[0]}/*"
    if own and {bare(one) for one in kinds} & {own, family, "*/*"}:
        return file.media
    exact = [one for one in kinds if "*" not in one and one != BYTES]
    return exact[0] if exact else file.media or BYTES
