"""OpenAPI's ``style``, ``explode`` and ``content``: how a value is written into a request.

Knows which of them can be sent. What cannot is a fault to tell, never a request that means
something else (OpenAPI 3.1, 4.8.12.2.1 and 4.8.12.3).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolsrv_registry import media as media_types
from toolsrv_registry.api import Place, Style
from toolsrv_registry.media import bare

_DEFAULTS: dict[str, str] = {
    "query": "form",
    "cookie": "form",
    "path": "simple",
    "header": "simple",
}
_JOINED: dict[str, Style] = {"form": "commas", "spaceDelimited": "spaces", "pipeDelimited": "pipes"}
_PREFIXED: dict[tuple[str, bool], Style] = {
    ("label", False): "label",
    ("label", True): "label_each",
    ("matrix", False): "matrix",
    ("matrix", True): "matrix_each",
}
_BYTES = frozenset(
    f"application/{kind}"
    for kind in (
        *("octet-stream", "binary", "pdf", "zip", "gzip", "x-gzip", "x-tar", "x-7z-compressed"),
        *("x-bzip2", "x-xz", "zstd", "msword", "wasm", "vnd.rar", "x-protobuf", "protobuf", "cbor"),
        *("msgpack", "x-msgpack", "java-archive", "vnd.sqlite3", "vnd.apache.parquet"),
    )
)
_SCALARS = frozenset({"string", "integer", "number", "boolean"})


class StyleFault(Exception):  # noqa: N818 - a fault of the document, told to its author
    """A parameter is to be written in a way that is not sent."""


def style(about: Mapping[str, Any], place: Place, kind: str) -> Style:
    """Return how a parameter is written, ``""`` where the place's own way does.

    Args:
        about: the parameter object, or a property's encoding object.
        place: where it goes; a property of a form is written as a query is.
        kind: the type of its schema, ``""`` where that is open.

    Raises:
        StyleFault: it cannot be sent so; says why.
    """
    default = _DEFAULTS.get(place, "form")
    told, explode = about.get("style"), about.get("explode")
    name = told if isinstance(told, str) and told else default
    explode = explode if isinstance(explode, bool) else name == "form"
    if place == "path" and name in ("label", "matrix"):
        return _PREFIXED[name, explode and kind not in _SCALARS]
    if place in {"path", "header"}:
        if name != "simple":
            ways = "'simple', 'label' and 'matrix'" if place == "path" else "'simple'"
            raise StyleFault(f"style {name[:40]!r} cannot be sent; in a {place} {ways} can")
        if kind != "object":
            return ""
        return "pairs" if explode else "commas"
    if name in _JOINED and place != "cookie":
        return "" if explode or kind in _SCALARS else _JOINED[name]
    if name == "form":  # lists too stand in one cookie: there is no other way to send them
        if explode and kind == "object":
            return "pairs"  # a cookie for each entry
        return "commas" if kind == "object" else ""
    if name == "deepObject" and place != "cookie":
        return "" if kind in _SCALARS else "brackets"
    raise StyleFault(f"style {name[:40]!r} cannot be sent in a {place}")


def content_style(media: str, kind: str) -> Style:
    """Return how a parameter is written whose ``content`` has a media type, in place of a style.

    JSON is written as JSON, texts and numbers too; of any other media type those alone can be.

    Raises:
        StyleFault: it cannot be sent so; says why.
    """
    if is_json(media):
        return "json"
    if kind in {"array", "object"}:
        raise StyleFault(f"its content {media[:40]!r} cannot be sent; JSON can")
    return ""


def is_json(media: str) -> bool:
    """Whether a media type is JSON, or anything."""
    return bare(media) in {"*/*", "application/*"} or media_types.is_json(media)


def is_bytes(media: str) -> bool:
    """Whether a media type is that of bytes and not of text."""
    plain = bare(media)
    family, _, kind = plain.partition("/")
    if family in {"image", "audio", "video", "font"}:
        return not kind.endswith("+xml")
    return plain in _BYTES or kind.startswith(("vnd.openxmlformats-", "vnd.ms-"))
