"""Open a source: a folder, an archive (``.tar``, ``.zip``), or one JSON or YAML file.

Archives are read without unpacking them to disk, within limits of size and ratio. Damage is a
DataError.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Self

from toolsrv_catalogs.sources import (
    COUNT_LIMIT,
    FILE_LIMIT,
    MIB,
    TOTAL_LIMIT,
    Sibling,
    Source,
    SourceFile,
    Watch,
    content,
    ours,
    placed,
    read_folder,
    too_large,
    unreadable,
)
from toolsrv_registry.errors import DataError, NotFoundError

RATIO_LIMIT = 1000
"""A zip member above 1 MiB that unpacks to more than this many times its size is a bomb."""
HEADER_LIMIT = MIB
"""Bytes of a tar member's extended header."""

Reader = Callable[[Watch], Iterator[SourceFile]]

_LONG_HEADERS = frozenset(
    {
        tarfile.XHDTYPE,
        tarfile.XGLTYPE,
        tarfile.SOLARIS_XHDTYPE,
        tarfile.GNUTYPE_LONGNAME,
        tarfile.GNUTYPE_LONGLINK,
    }
)
_CUT = "it is cut or damaged"
# What the standard library's unpackers raise over damaged files, found by damaging some.
_FAULTS: tuple[type[Exception], ...] = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    OSError,
    ValueError,
    LookupError,
    OverflowError,
    RuntimeError,  # encrypted; NotImplementedError, an unknown method, is one too
)
_GZIP, _BZIP2, _XZ = b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00"


class _EndError(Exception):
    """The reading of an archive ends here; the message says why."""


def reader_of(path: Path) -> Reader | None:
    """Return a reader for the archive at ``path``; None when it is none, by its first bytes.

    Raises DataError when it cannot be read.
    """
    try:
        with path.open("rb") as file:
            head = file.read(512)
        if head.startswith((_GZIP, _BZIP2, _XZ)) or head[257:262] == b"ustar":
            return lambda watch: _tar(path, watch)
        if head.startswith((b"PK\x03\x04", b"PK\x05\x06")) or path.suffix.lower() == ".zip":
            return lambda watch: _zip(path, watch)
    except OSError as error:
        raise unreadable(path, error) from error
    if path.suffix.lower() == ".tar" or ".tar." in path.name.lower():
        return lambda watch: _tar(path, watch)
    return None


def _damaged(path: Path, why: object) -> DataError:
    return DataError(
        f"the archive {str(path)!r} cannot be read: {why}",
        hint="nothing was imported; fetch or pack it again",
    )


class _Counted(io.RawIOBase):
    """What comes out of an unpacker, counted and limited."""

    def __init__(self, file: gzip.GzipFile | bz2.BZ2File | lzma.LZMAFile | BinaryIO) -> None:
        self._file = file
        self.left = TOTAL_LIMIT

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self.left -= len(data)
        if self.left < 0:
            raise _EndError(f"it unpacks to more than {TOTAL_LIMIT // MIB} MiB")
        return data


class _Header(tarfile.TarInfo):
    """A tar header that is looked at before tarfile acts on it."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        try:
            header = super().frombuf(buf, encoding, errors)
        except (tarfile.EOFHeaderError, tarfile.EmptyHeaderError):  # type: ignore[attr-defined]
            raise
        except tarfile.HeaderError as error:
            # tarfile would take a broken header in the middle for the end.
            raise _EndError(_CUT) from error
        if header.type in _LONG_HEADERS and header.size > HEADER_LIMIT:
            raise _EndError("a member has a header of more than 1 MiB")
        return header


def _tar(path: Path, watch: Watch) -> Iterator[SourceFile]:
    """Read a tar file from front to end, once."""
    total = path.stat().st_size
    try:
        with path.open("rb") as packed, _unpacker(packed) as plain:
            counted = _Counted(plain)
            with tarfile.open(fileobj=counted, mode="r|", tarinfo=_Header) as archive:
                for member in _members(archive, counted, watch):
                    watch.progress(min(packed.tell(), total), total)
                    if file := _tar_member(archive, member, watch):
                        yield file
    except _EndError as end:
        if str(end) == _CUT:
            raise _damaged(path, end) from end
        watch.refuse("", f"{end}; what comes after is not read")
        watch.complete = False
    except _FAULTS as error:
        raise _damaged(path, f"{_CUT} ({error})") from error


def _unpacker(file: BinaryIO) -> gzip.GzipFile | bz2.BZ2File | lzma.LZMAFile | BinaryIO:
    head = file.read(8)
    file.seek(0)
    if head.startswith(_GZIP):
        return gzip.GzipFile(fileobj=file, mode="rb")
    if head.startswith(_BZIP2):
        return bz2.BZ2File(file)
    return lzma.LZMAFile(file) if head.startswith(_XZ) else file


def _members(
    archive: tarfile.TarFile, counted: _Counted, watch: Watch
) -> Iterator[tarfile.TarInfo]:
    for number, member in enumerate(archive):
        if number >= COUNT_LIMIT:
            raise _EndError(f"it has more than {COUNT_LIMIT} members")
        if member.size > counted.left:
            watch.refuse(member.name, too_large(member.size))
            raise _EndError(f"it unpacks to more than {TOTAL_LIMIT // MIB} MiB")
        yield member


def _tar_member(
    archive: tarfile.TarFile, member: tarfile.TarInfo, watch: Watch
) -> SourceFile | None:
    place = placed(member.name)
    if place is None:
        watch.refuse(member.name, "its path leads out of the archive")
    elif member.isdir():
        return None
    elif member.islnk() or member.issym():
        watch.refuse(member.name, "is a link")
    elif not member.isreg() or member.issparse():
        watch.refuse(member.name, "is no regular file")
    elif not watch.wanted(place):
        watch.passed += 1
    elif member.size > FILE_LIMIT:
        watch.refuse(member.name, too_large(member.size))
    elif (file := archive.extractfile(member)) is not None:
        return SourceFile(place, file.read())
    return None


def _zip(path: Path, watch: Watch) -> Iterator[SourceFile]:
    total = path.stat().st_size
    done = taken = 0
    try:
        archive = zipfile.ZipFile(path)
    except _FAULTS as error:
        raise _damaged(path, f"{_CUT} ({error})") from error
    with archive:
        for number, member in enumerate(archive.infolist()):
            done += member.compress_size
            watch.progress(min(done, total), total)
            if number >= COUNT_LIMIT:
                watch.refuse("", f"it has more than {COUNT_LIMIT} members; the rest is not read")
                watch.complete = False
                return
            place = placed(member.filename)
            if (reason := _zip_fault(member, place)) or place is None:
                watch.refuse(member.filename, reason)
            elif member.is_dir() or not watch.wanted(place):
                watch.passed += not member.is_dir()
            elif taken + member.file_size > TOTAL_LIMIT:
                watch.refuse(member.filename, f"more than {TOTAL_LIMIT // MIB} MiB in all")
                watch.complete = False
                return
            elif (content := _zip_content(archive, member, watch)) is not None:
                taken += len(content)
                yield SourceFile(place, content)


def _zip_fault(member: zipfile.ZipInfo, place: object) -> str:
    """Return why a member is refused by its header, ``""`` when it is not."""
    if not member.filename:
        return "has no name"
    kind = stat.S_IFMT(member.external_attr >> 16)
    if place is None:
        return "its path leads out of the archive"
    if stat.S_ISLNK(kind):
        return "is a link"
    if kind and not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):
        return "is no regular file"
    if member.is_dir():
        return ""
    if member.flag_bits & 1:
        return "is encrypted"
    unpacks = member.file_size / max(1, member.compress_size)
    if member.file_size > MIB and unpacks > RATIO_LIMIT:
        return f"is a zip bomb: it unpacks to {unpacks:.0f} times its size"
    return too_large(member.file_size) if member.file_size > FILE_LIMIT else ""


def _zip_content(archive: zipfile.ZipFile, member: zipfile.ZipInfo, watch: Watch) -> bytes | None:
    try:
        with archive.open(member) as file:
            content = file.read(FILE_LIMIT + 1)
    except _FAULTS as error:
        watch.refuse(member.filename, f"cannot be unpacked: {error}")
        return None
    if len(content) > FILE_LIMIT:
        watch.refuse(member.filename, "unpacks to more than it claims")
        return None
    return content


def open_source(path: Path, sibling: Sibling | None = None) -> Source:
    """Return the source at ``path``: a folder, an archive, or one JSON or YAML file.

    ``sibling`` reads other files of that one file, in place of those in its folder.

    Raises:
        NotFoundError: there is nothing at ``path``.
        DataError: it can be none of these, or cannot be read.
    """
    try:
        kind = path.stat()
    except FileNotFoundError as error:
        raise NotFoundError(
            f"there is nothing at {str(path)!r}",
            hint="name a folder, an archive, or one JSON or YAML file",
        ) from error
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from error
    if stat.S_ISDIR(kind.st_mode):
        return Source(path.resolve().name, lambda watch: read_folder(path, watch), lambda _: None)
    if not stat.S_ISREG(kind.st_mode):
        raise DataError(
            f"{str(path)!r} is neither a file nor a folder", hint="name a file or a folder"
        )
    if reader := reader_of(path):
        return Source(path.name, reader, lambda _: None)
    if kind.st_size > FILE_LIMIT:
        raise DataError(
            f"{str(path)!r} is too large: {kind.st_size // MIB} MiB, at most {FILE_LIMIT // MIB}",
            hint="split it into smaller files",
        )
    folder = path.resolve().parent
    return Source(
        path.name,
        lambda watch: _single_file(path, watch),
        sibling or (lambda wanted: _sibling_file(folder, wanted)),
    )


def _single_file(path: Path, watch: Watch) -> Iterator[SourceFile]:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise unreadable(path, error) from error
    watch.progress(len(data), len(data))
    yield SourceFile(PurePosixPath(path.name), data)


def _sibling_file(folder: Path, wanted: PurePosixPath) -> bytes | None:
    """Read a file below ``folder`` that another one refers to; None where that is not allowed."""
    path = folder.joinpath(*wanted.parts)
    try:
        if path.resolve(strict=True) != path or not path.is_relative_to(folder):
            return None
        return content(path) if ours(PurePosixPath(path.name)) else None
    except (OSError, ValueError):
        return None
