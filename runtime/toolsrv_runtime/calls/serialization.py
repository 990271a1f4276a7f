"""Serialize argument values: OpenAPI parameter styles, and files as ``data:`` URLs or base64.

Separators are literal and what stands between them is percent-encoded (RFC 6570). A value that a
style cannot write reversibly raises StyleError. A ``data:`` URL (RFC 2397) may name its file:
``data:image/png;name=a%20b.png;base64,…``. Where a schema takes base64 in a text
(``contentEncoding``, OpenAPI 3.0's ``byte``) only the base64 is sent. Pure; reads no path.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, unquote_to_bytes

from toolsrv_registry.api import Style
from toolsrv_registry.media import bare
from toolsrv_registry.numerals import spell
from toolsrv_registry.schema_view import alternatives
from toolsrv_runtime.calls.response_body import OCTET_STREAM, sniff_media_type

Escape = Callable[[str], str]

_BETWEEN = {"commas": ",", "spaces": "%20", "pipes": "%7C", "tabs": "%09"}
_UNSAFE_BETWEEN = {"spaces": " ", "pipes": "|", "tabs": "\t"}
_RESERVED = ":/?@!$'()*,;="
"""Reserved signs that have no meaning of their own in the value of a query."""
_COOKIE = re.compile(r"[!#-+\--:<-\[\]-~]*")
_TRIPLET = re.compile(r"(%[0-9A-Fa-f]{2})")


class StyleError(Exception):
    """A value cannot be written where it must go; the message goes on after the argument's name."""

    def __init__(self, message: str, hint: str = "leave it out, or choose another API") -> None:
        super().__init__(message)
        self.hint = hint


def percent_encode(value: Any) -> str:
    """Return a value with everything escaped that is no letter, digit, ``-._~``."""
    return quote(_text(value), safe="")


def percent_encode_reserved(value: Any) -> str:
    """Return a value with reserved signs and escapes left as they are (RFC 6570, 3.2.3).

    ``&``, ``+``, ``#`` and brackets are escaped: they would end the value or change it.
    """
    parts = _TRIPLET.split(_text(value))
    return "".join(one if at % 2 else quote(one, safe=_RESERVED) for at, one in enumerate(parts))


def _text(value: Any) -> str:
    """Return a value as text: what has no way of its own, as an object in a list, is JSON."""
    return ascii_json(value) if isinstance(value, list | dict) else spell(value)


def ascii_json(value: Any) -> str:
    """Return JSON that may stand in a header too: line ends and accents are escapes in it."""
    return json.dumps(value, separators=(",", ":")).replace("\x7f", "\\u007f")


def whole_query(value: Any, style: Style) -> str:
    """Return a value that is the whole query, escaped."""
    return percent_encode(ascii_json(value) if style == "whole_json" else value)


def vanishes_in_query(value: Any) -> bool:
    """Whether a list or an object would leave no trace in a query, or one in it would."""
    if isinstance(value, list | dict):
        inner = value.values() if isinstance(value, dict) else value
        return not value or any(map(vanishes_in_query, inner))
    return False


def path_text(name: str, value: Any, style: Style) -> str:
    """Return the text for a placeholder: simple, label or matrix, or JSON.

    Raises:
        StyleError: a part holds the dot that stands between the parts.
    """
    if style == "json":
        return percent_encode(ascii_json(value))
    if style in _UNSAFE_BETWEEN:
        _check_between(value, _UNSAFE_BETWEEN[style])
        return _simple(value, _BETWEEN[style], percent_encode, style)
    if style.startswith("label"):
        if style == "label_each" and any("." in spell(one) for one in _parts(value)):
            raise StyleError("holds '.' in one of its items, which parts them there")
        return "." + _simple(value, "." if style == "label_each" else ",", percent_encode, style)
    if not style.startswith("matrix"):
        return _simple(value, ",", percent_encode, style)
    head = f";{percent_encode(name)}"
    if style == "matrix_each" and isinstance(value, list):
        return "".join(_assigned(head, percent_encode(one)) for one in value)
    if style == "matrix_each" and isinstance(value, dict):
        return "".join(
            _assigned(f";{percent_encode(key)}", percent_encode(one)) for key, one in value.items()
        )
    return _assigned(head, _simple(value, ",", percent_encode, style))


def _assigned(head: str, text: str) -> str:
    """Return a name with its value; of an empty one the name alone (RFC 6570, 3.2.7)."""
    return f"{head}={text}" if text else head


def header_text(value: Any, style: Style) -> str:
    """Return the text for a header, where nothing is escaped.

    Raises:
        StyleError: a part holds the sign that stands between the parts.
    """
    if style == "json":
        return ascii_json(value)
    sign = _UNSAFE_BETWEEN.get(style, ",")
    _check_between(value, sign)
    return _simple(value, sign, spell, style)


def cookie_pairs(name: str, value: Any, style: Style) -> Iterator[tuple[str, str]]:
    """Yield names and escaped values for cookies: one, or one for each entry of an object.

    Raises:
        StyleError: a part holds the comma that stands between the parts, or what no cookie holds.
    """
    if style == "json":
        yield name, percent_encode(ascii_json(value))
    elif style == "cookie":
        yield from query_pairs(name, value, "", escape=_cookie_text)
    elif style == "pairs" and isinstance(value, dict):
        for key, one in value.items():
            yield key, percent_encode(one)
    else:
        _check_between(value, ",")
        yield name, _simple(value, ",", percent_encode, style)


def _cookie_text(value: Any) -> str:
    """Return a value of a cookie that is not escaped (RFC 6265, 4.1.1). Raises StyleError."""
    text = _text(value)
    if not _COOKIE.fullmatch(text):
        raise StyleError("holds a sign that a cookie cannot hold without an escape")
    return text


def _check_between(value: Any, sign: str) -> None:
    """Raise StyleError where a part holds the sign that stands between the parts."""
    if any(sign in spell(one) for one in _parts(value)):
        raise StyleError(f"holds {sign!r} in one of its items, which parts them there")


def _parts(value: Any) -> list[Any]:
    """Return what a list or an object is made of; nothing of any other value."""
    return _flat(value) if isinstance(value, list | dict) else []


def _simple(value: Any, between: str, escape: Escape, style: Style) -> str:
    if isinstance(value, dict) and (style == "pairs" or style.endswith("_each")):
        return between.join(f"{escape(key)}={escape(one)}" for key, one in value.items())
    if isinstance(value, list | dict):
        return between.join(escape(one) for one in _flat(value))
    return escape(value)


def query_pairs(
    name: str, value: Any, style: Style, *, escape: Escape = percent_encode
) -> Iterator[tuple[str, str]]:
    """Yield names with their escaped values, for a query or a form.

    Written in its ``style``, else in OpenAPI's "form", exploded.

    Raises:
        StyleError: a part holds the sign that stands between the parts.
    """
    if style == "json":
        yield name, escape(ascii_json(value))
    elif not isinstance(value, list | dict):
        yield name, escape(value)
    elif style in _BETWEEN:
        sign = _UNSAFE_BETWEEN.get(style, "," if escape is not percent_encode else "")
        if sign:
            _check_between(value, sign)
        if parts := _flat(value):
            between = sign if escape is spell else _BETWEEN[style]
            yield name, between.join(escape(part) for part in parts)
    elif style == "brackets":
        yield from _brackets(name, value, escape)
    elif isinstance(value, list):
        for one in value:
            yield name, escape(one)
    else:
        for key, one in value.items():
            yield key, escape(one)


def _brackets(name: str, value: Any, escape: Escape) -> Iterator[tuple[str, str]]:
    """Yield ``name[a][0]=1``: of lists and nested objects too, as most servers read them."""
    if not isinstance(value, list | dict):
        yield name, escape(value)
        return
    for key, one in value.items() if isinstance(value, dict) else enumerate(value):
        yield from _brackets(f"{name}[{key}]", one, escape)


def _flat(value: list[Any] | dict[str, Any]) -> list[Any]:
    """Return a list's items, or an object's keys and values in turn."""
    return value if isinstance(value, list) else [part for pair in value.items() for part in pair]


FILE_LIMIT = 16_000_000
"""Bytes of one file that is sent."""

_DATA = re.compile(r"data:([\w.+-]+/[\w.+-]+)?((?:;[\w.+-]+=[^;,]*)*)(;base64)?,", re.ASCII)
_NAME = re.compile(r";(?:file)?name=([^;]*)")
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}", re.ASCII)
_BASE64_HEAD = 64
_SHOWN = 200


class FileArgument(NamedTuple):
    """A file to send; ``name`` and ``media`` are empty where they are not given."""

    content: bytes
    name: str = ""
    media: str = ""


def data_url(file: FileArgument) -> str:
    """Return a file as a ``data:`` URL."""
    named = f";name={quote(file.name, safe='')}" if file.name else ""
    text = base64.b64encode(file.content).decode("ascii")
    return f"data:{file.media}{named};base64,{text}"


def is_data_url(value: Any) -> bool:
    """Whether a value is a ``data:`` URL."""
    return isinstance(value, str) and _DATA.match(value) is not None


def decode_file(text: str, what: str) -> FileArgument:
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
    return FileArgument(content, re.split(r"[/\\]", name)[-1], match[1] or "")


def _plain(text: str) -> FileArgument:
    head = text[:_BASE64_HEAD]
    if len(text) % 4 == 0 and _BASE64.fullmatch(head) and _BASE64.fullmatch(text):
        content = base64.b64decode(text)
        if media := sniff_media_type(content):
            return FileArgument(content, "", media)
    return FileArgument(text.encode())


def abbreviate_data_urls(value: Any) -> Any:
    """Return a JSON value as people are shown it: of long ``data:`` URLs size and digest alone."""
    if isinstance(value, dict):
        return {name: abbreviate_data_urls(one) for name, one in value.items()}
    if isinstance(value, list):
        return [abbreviate_data_urls(one) for one in value]
    if not isinstance(value, str) or len(value) <= _SHOWN or not is_data_url(value):
        return value
    try:
        content = decode_file(value, "it").content
    except StyleError:
        return value
    digest = hashlib.sha256(content).hexdigest()
    return f"{value.partition(',')[0][:_SHOWN]} ({len(content):,} bytes, SHA-256 {digest})"


def takes_base64(schema: Mapping[str, Any] | None) -> bool:
    """Whether a schema takes bytes as base64 in a text."""
    return schema is not None and str(schema.get("contentEncoding", "")).startswith("base64")


def is_binary_schema(schema: Mapping[str, Any] | None) -> bool:
    """Whether a schema takes bytes, in whatever form."""
    return takes_base64(schema) or (schema is not None and schema.get("format") == "binary")


def inline_base64(value: Any, schema: Mapping[str, Any] | None) -> Any:
    """Return a value with the base64 of ``data:`` URLs where its schema takes bytes in a text."""
    if not schema:
        return value
    if isinstance(value, str):
        return _base64(value, schema) if is_binary_schema(schema) else _of_parts(value, schema)
    if isinstance(value, list) and isinstance(items := schema.get("items"), dict):
        return [inline_base64(one, items) for one in value]
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        value = {name: inline_base64(one, properties.get(name)) for name, one in value.items()}
    return _of_parts(value, schema)


def _of_parts(value: Any, schema: Mapping[str, Any]) -> Any:
    for part in (*alternatives(schema), *schema.get("allOf", ())):
        value = inline_base64(value, part)
    return value


def _base64(text: str, schema: Mapping[str, Any]) -> str:
    if not is_data_url(text):
        return text
    content = decode_file(text, "it").content
    if schema.get("contentEncoding") == "base64url":
        return base64.urlsafe_b64encode(content).decode("ascii")
    return base64.b64encode(content).decode("ascii")


def choose_media_type(offered: str, file: FileArgument) -> str:
    """Return a file's media type: its own, where the types that are offered do not exclude it.

    ``offered`` are those of an encoding, with commas between; ``image/*`` stands for a family.
    """
    kinds = [one.strip() for one in offered.split(",") if one.strip()]
    own = file.media.lower()
    family = f"{own.partition('/')[0]}/*"
    if own and {bare(one) for one in kinds} & {own, family, "*/*"}:
        return file.media
    exact = [one for one in kinds if "*" not in one and one != OCTET_STREAM]
    return exact[0] if exact else file.media or OCTET_STREAM
