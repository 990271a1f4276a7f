"""A response's body, read within limits and understood: bytes, then text, then JSON.

The limit holds on the wire and after decompression, so a small bomb never grows large in memory.
Knows nothing of who sent it.
"""

from __future__ import annotations

import codecs
import html
import json
import math
import re
import zlib
from collections.abc import AsyncGenerator, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, quote_plus

from toolsrv_catalogs.text import clean
from toolsrv_registry import wellformed
from toolsrv_registry.media import bare, is_json
from toolsrv_runtime.calls.attachment import Attachment, is_textual, media_of, name_in, sniffed

if TYPE_CHECKING:  # heavy, and named in annotations alone
    import httpx

SHOWN_OF_TOO_LARGE = 20_000
"""Characters that are kept of a body that is over the limit."""

_HTML = re.compile(r"<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE)
_OPENING = 8_192
"""Characters of a body in which a web page has to begin, whatever comments stand before it."""

_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]{1,40})", re.IGNORECASE | re.ASCII)
_ENCODINGS = frozenset(
    [
        *("utf-8", "utf-8-sig", "ascii"),
        *("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"),
        *(f"iso8859-{part}" for part in (*range(1, 12), *range(13, 17))),
        *(f"cp125{page}" for page in range(9)),
        *("shift_jis", "cp932", "euc_jp", "iso2022_jp"),
        *("gb2312", "gbk", "gb18030", "big5", "euc_kr", "cp949"),
        *("koi8-r", "koi8-u", "mac-roman"),
    ]
)
"""Python's names of the encodings that a body may have. Others of its codecs are quadratic
(punycode), read escapes (unicode_escape) or are for no text at all (hex)."""

_WIDE = ("utf-16", "utf-32")
_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
_BINARY = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")
"""Bytes that no text has (https://mimesniff.spec.whatwg.org, "binary data byte")."""

_SHORT_SECRET = 4
PIECE = 1 << 20
"""Most bytes of a piece of a body that is decompressed."""


class EncodingError(Exception):
    """A body is compressed in a way that was not offered, or its compression is broken."""


@dataclass(frozen=True, slots=True)
class Body:
    """What was read: the JSON value or the text, and what is wrong with it.

    Of bytes that are no text (``binary``) ``value`` says size and media type, and ``file`` has them.
    """

    value: Any
    too_large: bool = False
    binary: bool = False
    web_page: bool = False
    broken_json: bool = False
    file: Attachment | None = None


async def read(response: httpx.Response, limit: int) -> tuple[bytes, bool]:
    """Return at most ``limit`` bytes of a body, decompressed, and whether there is more.

    Raises:
        EncodingError: the compression is unknown or broken.
        httpx.TransportError: the connection breaks.
    """
    unpack = _unpacker(response.headers.get("content-encoding", ""))
    parts: list[bytes] = []
    got = wire = 0
    async for part in response.aiter_raw():
        wire += len(part)
        plain = part if unpack is None else unpack.feed(part, limit - got + 1)
        parts.append(plain)
        got += len(plain)
        if got > limit or wire > limit:
            return b"".join(parts)[:limit], True
    if unpack is not None:
        unpack.end()
    return b"".join(parts), False


async def pieces(response: httpx.Response) -> AsyncGenerator[bytes]:
    """Yield a body decompressed, in pieces of bounded size.

    Raises:
        EncodingError: the compression is unknown or broken.
        httpx.TransportError: the connection breaks.
    """
    unpack = _unpacker(response.headers.get("content-encoding", ""))
    async for part in response.aiter_raw():
        if unpack is None:
            yield part
            continue
        while part:
            yield unpack.feed(part, PIECE)
            part = unpack.left  # noqa: PLW2901 - of the same part
    if unpack is not None:
        unpack.end()


class _Unpacker:
    """gzip and deflate, never more bytes than asked for."""

    def __init__(self) -> None:
        self._stream = zlib.decompressobj(zlib.MAX_WBITS | 32)
        self._fed = False

    def feed(self, data: bytes, most: int) -> bytes:
        self._fed = self._fed or bool(data)
        try:
            return self._stream.decompress(data, max(1, most)) if data else b""
        except zlib.error as error:
            raise EncodingError(f"its compression is broken: {error}") from error

    @property
    def left(self) -> bytes:
        """What was fed and not decompressed yet, as no more was asked for."""
        return self._stream.unconsumed_tail

    def end(self) -> None:
        if self._fed and not self._stream.eof:
            raise EncodingError("its compressed body breaks off")


def _unpacker(encoding: str) -> _Unpacker | None:
    name = encoding.strip().lower()
    if name in {"", "identity"}:
        return None
    if name in {"gzip", "x-gzip", "deflate"}:
        return _Unpacker()
    raise EncodingError(f"its body is compressed as {name[:40]!r}, which was not asked for")


def understand(
    data: bytes,
    headers: httpx.Headers,
    *,
    too_large: bool,
    secrets: Collection[str] = (),
    size: int | None = None,
) -> Body:
    """Return what a body says. ``secrets`` that it repeats are taken out.

    ``size`` is that of the whole body where ``too_large`` says that ``data`` is its beginning, None
    where it is not known.
    """
    if is_binary(data, headers):
        return _as_file(data, headers, too_large=too_large, secrets=secrets, size=size)
    text = without(_decoded(data, headers), secrets)
    if too_large:
        return Body(clean(text[:SHOWN_OF_TOO_LARGE], SHOWN_OF_TOO_LARGE), too_large=True)
    kind = bare(headers.get("content-type", ""))
    says_json = is_json(kind)
    try:
        value = wellformed.loads(text, parse_constant=_no_number, parse_float=_finite)
    except (ValueError, RecursionError):
        plain = clean(text, len(text))
        page = kind in {"text/html", "application/xhtml+xml"} or _opens_as_page(text)
        return Body(plain, web_page=page, broken_json=says_json and not page and bool(text.strip()))
    if wellformed.too_deep(value):
        return Body(clean(text, len(text)), broken_json=True)
    return Body(_spelt_out(value, secrets) if secrets else value)


def _as_file(
    data: bytes,
    headers: httpx.Headers,
    *,
    too_large: bool,
    secrets: Collection[str],
    size: int | None,
) -> Body:
    """Return bytes as a file; what is too large, or repeats a key, is not kept."""
    declared = headers.get("content-type", "")
    count = f"{len(data) if size is None else size:,}"
    known = not too_large or size is not None
    told = f"binary, {count if known else f'more than {count}'} bytes, {without(media_of(data, declared), secrets)}, not shown"
    says_json = is_json(declared) and not sniffed(data)
    name = without(name_in(headers.get("content-disposition", "")), secrets)
    file = None if too_large else Attachment.of(data, declared, name)
    if file is not None and file.holds([one for one in secrets if is_long(one)]):
        file, told = None, f"{told} and not kept, because it repeats a key"
    return Body(clean(told, 200), too_large, binary=True, broken_json=says_json, file=file)


def is_binary(data: bytes, headers: httpx.Headers) -> bool:
    """Whether a body is no text, whatever its media type says.

    Bytes that begin as a known kind of file are none, and bytes that no text has, except in an
    encoding of two or four bytes a character. Anything else is text if its media type or charset
    says so, or if it is UTF-8.
    """
    declared, head = headers.get("content-type", ""), data[:_OPENING]
    kind, charset = bare(declared), _CHARSET.search(declared)
    if sniffed(head):
        return True
    if head.startswith(_MARKS) or (charset and _encoding(charset[1]).startswith(_WIDE)):
        return False
    if b"\0" in head:
        return True
    if charset or is_textual(kind):
        return False
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return bool(kind) or _BINARY.search(head) is not None
    return False


def _opens_as_page(text: str) -> bool:
    """Whether a text begins as HTML, behind comments or not. Linear in the comments."""
    start = text[:_OPENING].lstrip()
    while start.startswith("<!--"):
        start = start.partition("-->")[2].lstrip()
    return bool(_HTML.match(start))


def _spelt_out(value: Any, secrets: Collection[str]) -> Any:
    """Take keys out of JSON's texts, which some writers spell with escapes for ``+`` and ``&``."""
    if isinstance(value, str):
        return without(value, secrets)
    if isinstance(value, list):
        return [_spelt_out(one, secrets) for one in value]
    if isinstance(value, dict):
        return {without(key, secrets): _spelt_out(one, secrets) for key, one in value.items()}
    return value


def _no_number(word: str) -> None:
    """Read NaN and Infinity, which are no JSON and cannot be written as such, as null."""
    del word


def _finite(text: str) -> float | None:
    value = float(text)
    return value if math.isfinite(value) else None


def _decoded(data: bytes, headers: httpx.Headers) -> str:
    found = _CHARSET.search(headers.get("content-type", ""))
    return data.decode(_encoding(found[1]) if found else "utf-8-sig", errors="replace")


def _encoding(charset: str) -> str:
    """Return the encoding that a host names; UTF-8 for one that does not exist, or may not be."""
    try:
        name = codecs.lookup(charset).name
    except LookupError:
        return "utf-8"
    return name if name in _ENCODINGS else "utf-8"


def is_long(secret: str) -> bool:
    """Whether a key is long enough to be looked for in responses."""
    return len(secret) >= _SHORT_SECRET


def without(text: str, secrets: Collection[str]) -> str:
    """Return a text with every spelling of these keys taken out."""
    for secret in sorted(secrets, key=len, reverse=True):
        if not is_long(secret):
            continue
        quoted = json.dumps(secret)[1:-1]
        for spelt in {
            secret,
            quoted,
            quoted.replace("/", "\\/"),
            quote(secret, safe=""),
            quote_plus(secret),
            html.escape(secret),
        }:
            text = text.replace(spelt, "[key]")
    return text
