"""Files that a call brings: bytes with their media type, and the name that the host gave them.

A media type is read off the first bytes where the host names none, or one that they contradict.
Names are untrusted: ``safe_name`` makes a name for a file of them. Pure; nothing is written here.
"""

from __future__ import annotations

import base64
import binascii
import mimetypes
import re
from collections.abc import Collection
from email.message import Message
from functools import cached_property
from typing import Self
from urllib.parse import unquote

from pydantic import BaseModel, ConfigDict, Field, field_validator

from toolsrv_catalogs.text import clean
from toolsrv_registry.file_names import portable_name
from toolsrv_registry.media import bare

BYTES = "application/octet-stream"
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

    media: str = Field(default=BYTES, max_length=200)
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
    def of(cls, content: bytes, media: str = "", name: str = "") -> Self:
        """Return a file; ``media`` is what its host says, which its bytes may contradict."""
        blob = base64.b64encode(content).decode("ascii")
        shown = clean(" ".join(name.split()), NAME_LIMIT)
        return cls(media=media_of(content, media), name=shown, blob=blob)

    @cached_property
    def content(self) -> bytes:
        """Its bytes."""
        return base64.b64decode(self.blob)

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return len(self.content)

    @property
    def about(self) -> str:
        """Its size and media type, for people and models."""
        return f"{self.size:,} bytes, {self.media}"

    def holds(self, secrets: Collection[str]) -> bool:
        """Whether one of these keys stands in its bytes."""
        return any(one.encode(errors="replace") in self.content for one in secrets if one)


def sniffed(content: bytes) -> str:
    """Return the media type that the first bytes prove, "" for text and what is not known."""
    return next((media for kind, media in _KINDS if kind.match(content)), "")


def is_textual(media: str) -> bool:
    """Whether a media type, without parameters and in lower case, stands for text."""
    return _TEXTUAL.search(media) is not None


def media_of(content: bytes, declared: str) -> str:
    """Return the media type of bytes: the declared one, unless it says nothing or is wrong."""
    said = bare(declared)
    found = sniffed(content)
    if said in _NAMES_NO_KIND or is_textual(said) or not _MEDIA.fullmatch(said):
        return found or BYTES
    if not found or found == said:
        return said
    family, other = said.partition("/")[0], found.partition("/")[0]
    if {family, other} <= {"audio", "video"}:  # containers hold either
        return said
    wrong = family in _SHOWN or (other in _SHOWN and other != "font")
    return found if wrong else said


def name_in(disposition: str) -> str:
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


def safe_name(name: str, media: str, otherwise: str = "file") -> str:
    """Return a name for a file of one's own: no path, no hidden or odd characters, a suffix.

    ``otherwise`` stands in for a name that leaves nothing.
    """
    last = re.split(r"[/\\]", clean(name, 1_000).strip())[-1]
    plain = portable_name(" ".join(last.split())).lstrip(".~- ")
    stem, dot, suffix = plain.rpartition(".")
    if not dot or not stem or not re.fullmatch(r"\w{1,10}", suffix):
        stem, suffix = plain, suffix_of(media).removeprefix(".")
    stem = stem[: NAME_LIMIT - len(suffix) - 1].rstrip(". ") or otherwise
    return f"{stem}.{suffix}" if suffix else stem


def suffix_of(media: str) -> str:
    """Return the usual suffix of files of a media type, with its dot; ``.bin`` where none is."""
    return _SUFFIXES.get(media) or _TYPES.guess_extension(media) or ".bin"


def guessed_media(name: str) -> str:
    """Return the media type that a file's name speaks for, "" where it speaks for none."""
    return _TYPES.guess_type(name)[0] or ""
