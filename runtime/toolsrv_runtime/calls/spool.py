"""A response that is larger than what is read into memory, written to a file as it arrives.

The file is a part file in a folder that the caller of ``read`` names; whoever gets it moves it to
its place or removes it. What breaks off, is too large or repeats a key leaves nothing behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from toolsrv_catalogs.text import clean
from toolsrv_runtime.calls import body as bodies
from toolsrv_runtime.calls.attachment import (
    NAME_LIMIT,
    is_textual,
    media_of,
    name_in,
    sniffed,
)

if TYPE_CHECKING:  # heavy, and named in annotations alone
    import httpx

PART_PREFIX = ".toolsrv-"
PART_SUFFIX = ".part"
_LOOKED_AT = 8_192
_WRITTEN_AT_ONCE = 1 << 20
_FILE_MODE = 0o600


def _ignore(_done: int, _in_all: int | None) -> None:
    """Do nothing with progress."""


@dataclass(frozen=True, slots=True)
class Spool:
    """Where a large response goes: the folder of its part file, and the most bytes of it.

    ``texts``: text and JSON go there too, not only bytes that are no text. ``progress`` is called
    with (bytes here, bytes in all or None) on the event loop's thread.
    """

    folder: Path
    limit: int
    texts: bool = False
    progress: Callable[[int, int | None], None] = field(default=_ignore, repr=False)


@dataclass(frozen=True, slots=True)
class Spooled:
    """A response in a part file: its media type and the name that its host gives it (untrusted)."""

    part: Path
    size: int
    media: str
    name: str


class SpoolError(Exception):
    """A response could not be kept whole; says why, and ``hint`` what to do where that is known."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


def declared_size(response: httpx.Response) -> int | None:
    """Return the size of a body as its headers state it, None where they do not.

    A compressed body's is unknown.
    """
    length = response.headers.get("content-length", "")
    plain = response.headers.get("content-encoding", "").strip().lower() in {"", "identity"}
    return int(length) if plain and length.isascii() and length.isdecimal() else None


async def read(
    response: httpx.Response, limit: int, spool: Spool, hidden: Collection[str] = ()
) -> tuple[bytes, Spooled | None, bool]:
    """Return a body of up to ``limit`` bytes, or the part file that a larger one was written to.

    The third value says that the bytes are only the beginning of a body that is not written: a text,
    or one that is known to be larger than the spool's limit.

    Raises:
        SpoolError: it grew larger than the spool's limit, repeats one of ``hidden``, or cannot be
            written.
        body.EncodingError: the compression is unknown or broken.
        httpx.TransportError: the connection breaks.
    """
    head = bytearray()
    pieces = bodies.pieces(response)
    async with contextlib.aclosing(pieces):
        async for piece in pieces:
            head += piece
            if len(head) > limit:
                break
        else:
            return bytes(head), None, False
        size = declared_size(response)
        is_wanted = spool.texts or bodies.is_binary(bytes(head), response.headers)
        if not is_wanted or (size or 0) > spool.limit:
            return bytes(head[:limit]), None, True
        with _part(spool.folder) as (path, file):
            written = _Writing(file, spool, size, hidden)
            await written.add(bytes(head))
            async for piece in pieces:
                await written.add(piece)
            await written.flush()
    declared = response.headers.get("content-type", "")
    name = bodies.without(name_in(response.headers.get("content-disposition", "")), hidden)
    shown = clean(" ".join(name.split()), NAME_LIMIT)
    media = bodies.without(_media(bytes(head[:_LOOKED_AT]), declared), hidden)
    return b"", Spooled(path, written.size, media, shown), False


def _media(head: bytes, declared: str) -> str:
    """Return the media type of a body; a text's is the declared one."""
    kind = declared.partition(";")[0].strip().lower()
    return kind if is_textual(kind) and not sniffed(head) else media_of(head, declared)


class _Writing:
    """Bytes that are written in large pieces, and looked through for keys."""

    def __init__(
        self, file: BinaryIO, spool: Spool, in_all: int | None, hidden: Collection[str]
    ) -> None:
        self.size = 0
        self._file = file
        self._spool = spool
        self._in_all = in_all
        self._hidden = [one.encode(errors="replace") for one in hidden if bodies.is_long(one)]
        self._tail = b""
        self._waiting = bytearray()

    async def add(self, piece: bytes) -> None:
        self.size += len(piece)
        if self.size > self._spool.limit:
            raise SpoolError(
                f"the response has more than {self._spool.limit:,} bytes, the most that is saved"
            )
        self._waiting += piece
        if len(self._waiting) >= _WRITTEN_AT_ONCE:
            await self.flush()

    async def flush(self) -> None:
        seen = self._tail + bytes(self._waiting)
        if any(one in seen for one in self._hidden):
            raise SpoolError(
                "the response repeats a key and is not kept",
                "choose another API, or ask its provider",
            )
        longest = max(map(len, self._hidden), default=1)
        self._tail = seen[-longest:]
        data, self._waiting = bytes(self._waiting), bytearray()
        try:
            await asyncio.to_thread(self._file.write, data)
        except OSError as error:
            raise _unwritable(self._spool.folder, error) from error
        self._spool.progress(self.size, self._in_all)


@contextlib.contextmanager
def _part(folder: Path) -> Iterator[tuple[Path, BinaryIO]]:
    """Open a new file of a folder that stays only if the block ends well."""
    path = folder / f"{PART_PREFIX}{secrets.token_hex(8)}{PART_SUFFIX}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _FILE_MODE)
    except OSError as error:
        raise _unwritable(folder, error) from error
    ended = False
    try:
        with os.fdopen(handle, "wb", buffering=0) as file:
            yield path, file
        ended = True
    finally:
        if not ended:
            with contextlib.suppress(OSError):
                path.unlink()


def _unwritable(folder: Path, error: OSError) -> SpoolError:
    return SpoolError(
        f"the response cannot be written to {folder}: {error.strerror or error}",
        "free some space, or save it somewhere else",
    )
