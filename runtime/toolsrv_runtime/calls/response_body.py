"""Read and parse response bodies: decompression, character sets, JSON, and files as attachments.

The size limit holds on the wire and after decompression, so a compression bomb stays small in
memory. A media type is detected from the first bytes where the host names none, or a wrong one.
File names of a host are untrusted; ``safe_filename`` sanitises them. Writes no file and knows
nothing of the sender.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import html
import json
import math
import mimetypes
import re
import zlib
from collections.abc import AsyncGenerator, Collection
from dataclasses import dataclass
from email.message import Message
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote, quote_plus, unquote

from pydantic import BaseModel, ConfigDict, Field, field_validator

from toolsrv_catalogs.text import clean
from toolsrv_registry import wellformed
from toolsrv_registry.file_names import portable_name
from toolsrv_registry.media import bare, is_json

if TYPE_CHECKING:
    import httpx

OCTET_STREAM = "application/octet-stream"
NAME_LIMIT = 100
"""Characters of a file's name."""

_MEDIA = re.compile(r"[\w.+-]{1,80}/[\w.+-]{1,80}", re.ASCII)
_MAGIC: tuple[tuple[bytes, str], ...] = (
    (rb"\x89PNG\r\n\x1a\n", "image/png"),
    (rb"\xff\xd8\xff", "image/jpeg"),
    (rb"GIF8[79]a", "image/gif"),
    (rb"RIFF.{4}WEBP", "image/webp"),
    (rb"RIFF.{4}WAVE", "audio/wav"),
    (rb"RIFF.{4}AVI ", "video/x-msvideo"),
    (rb".{4}ftyp(?:avif|avis)", "image/avif"),
    (rb".{4}ftyp(?:heic|heix|mif1)", "image/heic"),
    (rb".{4}ftypM4A", "audio/mp4"),
    (rb".{4}ftypqt", "video/quicktime"),
    (rb".{4}ftyp", "video/mp4"),
    (rb"BM.{4}\x00{4}", "image/bmp"),
    (rb"II\*\x00|MM\x00\*", "image/tiff"),
    (rb"\x00\x00\x01\x00[^\x00]\x00", "image/x-icon"),
    (rb"%PDF-", "application/pdf"),
    (rb"PK(?:\x03\x04|\x05\x06)", "application/zip"),
    (rb"\x1f\x8b\x08", "application/gzip"),
    (rb"BZh[1-9]1AY&SY", "application/x-bzip2"),
    (rb"\xfd7zXZ\x00", "application/x-xz"),
    (rb"\x28\xb5\x2f\xfd", "application/zstd"),
    (rb"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (rb"Rar!\x1a\x07", "application/vnd.rar"),
    (rb"ID3[\x02-\x04]", "audio/mpeg"),
    (rb"\xff[\xfb\xf3\xf2][^\x00\xff]", "audio/mpeg"),
    (rb"OggS\x00", "audio/ogg"),
    (rb"fLaC\x00", "audio/flac"),
    (rb"MThd\x00\x00\x00\x06", "audio/midi"),
    (rb"\x1a\x45\xdf\xa3", "video/webm"),
    (rb"wOFF(?:\x00\x01\x00\x00|OTTO)", "font/woff"),
    (rb"wOF2(?:\x00\x01\x00\x00|OTTO)", "font/woff2"),
    (rb"\x00\x01\x00\x00\x00", "font/ttf"),
    (rb"OTTO\x00", "font/otf"),
    (rb"\x00asm", "application/wasm"),
    (rb"SQLite format 3\x00", "application/vnd.sqlite3"),
    (rb"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "application/x-ole-storage"),
)
_KINDS = tuple((re.compile(magic, re.DOTALL), media) for magic, media in _MAGIC)
_NAMES_NO_KIND = frozenset(
    {"", "text", "application/octet-stream", "binary/octet-stream", "application/download"}
    | {"application/force-download", "application/x-download", "application/binary"}
)
_TEXTUAL = re.compile(r"^text/|[/+](json|xml|yaml|javascript)$|urlencoded|json", re.ASCII)
_SHOWN = ("image", "audio", "video", "font")
_SUFFIXES = {
    "image/jpeg": ".jpg",
    "image/webp": ".webp",
    "image/x-icon": ".ico",
    "image/avif": ".avif",
    "image/heic": ".heic",
    "audio/mpeg": ".mp3",
    "audio/wav": ".wav",
    "audio/ogg": ".ogg",
    "audio/flac": ".flac",
    "audio/mp4": ".m4a",
    "application/gzip": ".gz",
    "application/zstd": ".zst",
    "application/vnd.rar": ".rar",
    "application/vnd.sqlite3": ".sqlite",
    "font/woff": ".woff",
    "font/woff2": ".woff2",
    "font/ttf": ".ttf",
    "font/otf": ".otf",
}
_EXTENDED = re.compile(
    r";\s*filename\*\s*=\s*(utf-8|iso-8859-1)'[^']*'([^;\s]+)", re.ASCII | re.IGNORECASE
)
_TYPES = mimetypes.MimeTypes(filenames=())  # the same on every system


class Attachment(BaseModel):
    """A file that a call brought.

    ``media`` is its media type without parameters, ``name`` what the host calls it (untrusted, may
    be empty), ``blob`` its bytes in base64.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    media: str = Field(default=OCTET_STREAM, max_length=200)
    name: str = Field(default="", max_length=NAME_LIMIT)
    blob: str

    @field_validator("blob")
    @classmethod
    def _is_base64(cls, blob: str) -> str:
        try:
            base64.b64decode(blob, validate=True)
        except (binascii.Error, ValueError):
            raise ValueError("is no base64") from None
        return blob

    @classmethod
    def from_bytes(cls, content: bytes, media: str = "", name: str = "") -> Self:
        """Return a file; ``media`` is what its host says, which its bytes may contradict."""
        blob = base64.b64encode(content).decode("ascii")
        shown = clean(" ".join(name.split()), NAME_LIMIT)
        return cls(media=detect_media_type(content, media), name=shown, blob=blob)

    @cached_property
    def content(self) -> bytes:
        """Its bytes."""
        return base64.b64decode(self.blob)

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return len(self.content)

    @property
    def summary(self) -> str:
        """Its size and media type, for people and models."""
        return f"{self.size:,} bytes, {self.media}"

    def contains_any(self, secrets: Collection[str]) -> bool:
        """Whether one of these keys stands in its bytes."""
        return any(one.encode(errors="replace") in self.content for one in secrets if one)


def sniff_media_type(content: bytes) -> str:
    """Return the media type that the first bytes prove, "" for text and what is not known."""
    return next((media for kind, media in _KINDS if kind.match(content)), "")


def is_textual(media: str) -> bool:
    """Whether a media type, without parameters and in lower case, stands for text."""
    return _TEXTUAL.search(media) is not None


def detect_media_type(content: bytes, declared: str) -> str:
    """Return the media type of bytes: the declared one, unless it says nothing or is wrong."""
    said = bare(declared)
    found = sniff_media_type(content)
    if said in _NAMES_NO_KIND or is_textual(said) or not _MEDIA.fullmatch(said):
        return found or OCTET_STREAM
    if not found or found == said:
        return said
    family, other = said.partition("/")[0], found.partition("/")[0]
    if {family, other} <= {"audio", "video"}:  # containers hold either
        return said
    wrong = family in _SHOWN or (other in _SHOWN and other != "font")
    return found if wrong else said


def content_disposition_filename(disposition: str) -> str:
    """Return the file name of a ``Content-Disposition`` header (RFC 6266), "" without one."""
    if extended := _EXTENDED.search(disposition[:2_000]):
        return unquote(extended[2], encoding=extended[1])
    message = Message()
    try:
        message["Content-Disposition"] = " ".join(disposition[:2_000].split())
        plain = message.get_param("filename", header="content-disposition")
        name = message.get_filename("")
    except (ValueError, LookupError, TypeError):  # a charset that does not exist
        return ""
    return name or (plain if isinstance(plain, str) else "")


def safe_filename(name: str, media: str, otherwise: str = "file") -> str:
    """Return a name for a file of one's own: no path, no hidden or odd characters, a suffix.

    ``otherwise`` stands in for a name that leaves nothing.
    """
    last = re.split(r"[/\\]", clean(name, 1_000).strip())[-1]
    plain = portable_name(" ".join(last.split())).lstrip(".~- ")
    stem, dot, suffix = plain.rpartition(".")
    if not dot or not stem or not re.fullmatch(r"\w{1,10}", suffix):
        stem, suffix = plain, suffix_for_media_type(media).removeprefix(".")
    stem = stem[: NAME_LIMIT - len(suffix) - 1].rstrip(". ") or otherwise
    return f"{stem}.{suffix}" if suffix else stem


def suffix_for_media_type(media: str) -> str:
    """Return the usual suffix of files of a media type, with its dot; ``.bin`` where none is."""
    return _SUFFIXES.get(media) or _TYPES.guess_extension(media) or ".bin"


def guess_media_type(name: str) -> str:
    """Return the media type that a file's name speaks for, "" where it speaks for none."""
    return _TYPES.guess_type(name)[0] or ""


EXCERPT_LENGTH = 20_000
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
CHUNK_BYTES = 1 << 20
"""Most bytes of a piece of a body that is decompressed."""


class EncodingError(Exception):
    """A body is compressed in a way that was not offered, or its compression is broken."""


@dataclass(frozen=True, slots=True)
class ParsedBody:
    """What was read: the JSON value or the text, and what is wrong with it.

    Of bytes that are no text (``binary``) ``value`` says size and media type, and ``file`` has
    them.
    """

    value: Any
    too_large: bool = False
    binary: bool = False
    web_page: bool = False
    broken_json: bool = False
    file: Attachment | None = None


async def read_body(response: httpx.Response, limit: int) -> tuple[bytes, bool]:
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


async def iter_decompressed(response: httpx.Response) -> AsyncGenerator[bytes]:
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
            yield unpack.feed(part, CHUNK_BYTES)
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


def parse_body(
    data: bytes,
    headers: httpx.Headers,
    *,
    too_large: bool,
    secrets: Collection[str] = (),
    size: int | None = None,
) -> ParsedBody:
    """Return what a body says. ``secrets`` that it repeats are taken out.

    ``size`` is that of the whole body where ``too_large`` says that ``data`` is its beginning, None
    where it is not known.
    """
    if is_binary(data, headers):
        return _as_file(data, headers, too_large=too_large, secrets=secrets, size=size)
    text = redact(_decoded(data, headers), secrets)
    if too_large:
        return ParsedBody(clean(text[:EXCERPT_LENGTH], EXCERPT_LENGTH), too_large=True)
    kind = bare(headers.get("content-type", ""))
    says_json = is_json(kind)
    try:
        value = wellformed.loads(text, parse_constant=_null_for_constant, parse_float=_finite)
    except (ValueError, RecursionError):
        plain = clean(text, len(text))
        page = kind in {"text/html", "application/xhtml+xml"} or _starts_as_html(text)
        return ParsedBody(
            plain, web_page=page, broken_json=says_json and not page and bool(text.strip())
        )
    if wellformed.too_deep(value):
        return ParsedBody(clean(text, len(text)), broken_json=True)
    return ParsedBody(_redact_json(value, secrets) if secrets else value)


def _as_file(
    data: bytes,
    headers: httpx.Headers,
    *,
    too_large: bool,
    secrets: Collection[str],
    size: int | None,
) -> ParsedBody:
    """Return bytes as a file; what is too large, or repeats a key, is not kept."""
    declared = headers.get("content-type", "")
    count = f"{len(data) if size is None else size:,}"
    known = not too_large or size is not None
    told = f"binary, {count if known else f'more than {count}'} bytes, {redact(detect_media_type(data, declared), secrets)}, not shown"
    says_json = is_json(declared) and not sniff_media_type(data)
    name = redact(content_disposition_filename(headers.get("content-disposition", "")), secrets)
    file = None if too_large else Attachment.from_bytes(data, declared, name)
    if file is not None and file.contains_any([one for one in secrets if is_redactable(one)]):
        file, told = None, f"{told} and not kept, because it repeats a key"
    return ParsedBody(clean(told, 200), too_large, binary=True, broken_json=says_json, file=file)


def is_binary(data: bytes, headers: httpx.Headers) -> bool:
    """Whether a body is no text, whatever its media type says.

    Bytes that begin as a known kind of file are none, and bytes that no text has, except in an
    encoding of two or four bytes a character. Anything else is text if its media type or charset
    says so, or if it is UTF-8.
    """
    declared, head = headers.get("content-type", ""), data[:_OPENING]
    kind, charset = bare(declared), _CHARSET.search(declared)
    if sniff_media_type(head):
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


def _starts_as_html(text: str) -> bool:
    """Whether a text begins as HTML, behind comments or not. Linear in the comments."""
    start = text[:_OPENING].lstrip()
    while start.startswith("<!--"):
        start = start.partition("-->")[2].lstrip()
    return bool(_HTML.match(start))


def _redact_json(value: Any, secrets: Collection[str]) -> Any:
    """Take keys out of JSON's texts, which some writers spell with escapes for ``+`` and ``&``."""
    if isinstance(value, str):
        return redact(value, secrets)
    if isinstance(value, list):
        return [_redact_json(one, secrets) for one in value]
    if isinstance(value, dict):
        return {redact(key, secrets): _redact_json(one, secrets) for key, one in value.items()}
    return value


def _null_for_constant(word: str) -> None:
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


def is_redactable(secret: str) -> bool:
    """Whether a key is long enough to be looked for in responses."""
    return len(secret) >= _SHORT_SECRET


def redact(text: str, secrets: Collection[str]) -> str:
    """Return a text with every spelling of these keys taken out."""
    for secret in sorted(secrets, key=len, reverse=True):
        if not is_redactable(secret):
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
