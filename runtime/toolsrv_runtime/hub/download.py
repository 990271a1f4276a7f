"""Download a file from a hub or a web address, whole or not at all.

A broken download is resumed by a range request, also by a later call. The file appears only when
its SHA-256 is the expected one. Web addresses go over the checked connections of ``calls``.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import logging
import os
import re
import shutil
import zlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path, PurePosixPath
from typing import IO, Any, BinaryIO, NoReturn, Protocol, Self
from urllib.parse import unquote, urlsplit

import httpx

from toolsrv_catalogs.hosts import address_fault
from toolsrv_registry.errors import BusyError, DataError, NotFoundError, UsageError
from toolsrv_registry.file_lock import HeldLock, lock_beside
from toolsrv_registry.file_names import portable_name
from toolsrv_runtime.calls.addresses import AddressResolver
from toolsrv_runtime.calls.transports import Connections, Proxies
from toolsrv_runtime.files import open_atomic
from toolsrv_runtime.hub import (
    HubError,
    RemoteFile,
    configure,
    etag_sha256,
    status_error,
    translate_errors,
)

Progress = Callable[[int, int], None]
"""Called with (bytes here, bytes in all), of the file that is on its way."""


class DownloadSink(Protocol):
    """What a download is appended to: the part of a file that fetching needs."""

    def write(self, data: bytes) -> int:
        """Append bytes; return how many."""

    def tell(self) -> int:
        """Return how many bytes are here."""

    def seek(self, place: int) -> int:
        """Go back to a place."""

    def truncate(self) -> int:
        """Drop what stands behind the place."""


Fetch = Callable[[RemoteFile, DownloadSink], None]
"""Appends what is missing of a file; raises OSError without a number when a connection breaks."""

TRIES = 3
"""Attempts in a row without a new byte, after those that huggingface_hub makes itself."""


def pull(
    file: RemoteFile,
    folder: Path,
    *,
    endpoint: str | None = None,
    progress: Progress | None = None,
    fetch: Fetch | None = None,
) -> Path:
    """Bring ``file`` into ``folder`` and return its path; one that is here already stays.

    ``fetch`` brings the bytes; else they come from the hub at ``endpoint``.

    Raises:
        NotFoundError: The file is gone, or needs a token.
        HubError: The connection broke and did not come back, or the content is wrong.
        DataError: The disk has no room.
        BusyError: Another process brings the same file.
    """
    target = folder / file_name(file)
    if target.is_file() and _is_complete(target, file):
        return target
    tag = (file.sha256 or file.commit)[:12]
    partial = target.with_name(f"{target.name}.{tag}.partial")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(partial):
            with partial.open("ab") as stream:
                _check_room(file, stream.tell(), folder)
                _fetch(file, stream, fetch or _from_hub(endpoint), progress)
                stream.flush()
                os.fsync(stream.fileno())
            _verify_digest(file, partial)
            partial.replace(target)
    except OSError as error:
        raise _disk_error(error, file, partial) from error
    return target


def file_name(file: RemoteFile) -> str:
    """Return the name that a file of a hub has on this machine."""
    return portable_name(Path(file.name).name)


def _is_complete(path: Path, file: RemoteFile) -> bool:
    if path.stat().st_size != file.size_bytes:
        return False
    return file.sha256 is None or file_sha256(path) == file.sha256


def file_sha256(path: Path) -> str:
    """Return a file's SHA-256 in hexadecimal digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _locked(partial: Path) -> HeldLock:
    try:
        return lock_beside(partial)
    except BlockingIOError:
        raise BusyError(f"another process is bringing {partial.name}", hint="wait for it") from None


def _check_room(file: RemoteFile, here: int, folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    if (need := file.size_bytes - here) > free:
        raise DataError(
            f"{file.name} needs {need:,} more bytes and the disk of {folder} has {free:,} free",
            hint="free some space, or name another data folder with --data-dir",
        )


def _from_hub(endpoint: str | None) -> Fetch:
    def fetch(file: RemoteFile, sink: DownloadSink) -> None:
        with translate_errors(f"{file.repo}:{file.name}", endpoint):
            _get(file, sink, endpoint)

    return fetch


def _fetch(file: RemoteFile, stream: BinaryIO, fetch: Fetch, progress: Progress | None) -> None:
    """Append to ``stream`` what is missing; a broken connection is taken up again."""
    import httpx2  # noqa: PLC0415 - what huggingface_hub talks with

    configure()
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # it tells of every retry
    if stream.tell() > file.size_bytes:
        stream.truncate(0)
        stream.seek(0)
    counted = _Counted(stream, file.size_bytes, progress)
    tries = TRIES
    while counted.tell() < file.size_bytes:
        before = counted.tell()
        try:
            fetch(file, counted)
        except (httpx2.TransportError, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise  # the disk's, not the connection's
            tries = TRIES if counted.tell() > before else tries - 1
            if not tries:
                _connection_error(file, counted.tell(), error)


def _get(file: RemoteFile, counted: DownloadSink, endpoint: str | None) -> None:
    from huggingface_hub import get_hf_file_metadata, hf_hub_url  # noqa: PLC0415 - heavy
    from huggingface_hub.file_download import http_get  # noqa: PLC0415 - heavy
    from huggingface_hub.utils._headers import build_hf_headers  # noqa: PLC0415 - heavy
    from huggingface_hub.utils.tqdm import silent_tqdm  # noqa: PLC0415 - heavy

    url = hf_hub_url(
        file.repo, file.name, repo_type=file.kind, revision=file.commit, endpoint=endpoint
    )
    told = get_hf_file_metadata(url, endpoint=endpoint)
    if told.size not in (None, file.size_bytes):
        raise HubError(
            f"{file.repo}:{file.name} has {told.size:,} bytes at the hub, and {file.size_bytes:,} "
            "were expected",
            hint="nothing was read; its owner may have replaced it",
        )
    listed = etag_sha256(told.etag)
    if file.sha256 and listed and listed != file.sha256:
        raise HubError(
            f"the hub lists the SHA-256 {listed} for {file.repo}:{file.name}, not {file.sha256}",
            hint="nothing was read; its owner may have replaced it",
        )
    place = told.location
    own_host = place.split("/")[2:3] == url.split("/")[2:3]
    http_get(
        place,
        counted,  # type: ignore[arg-type]  # the part of BinaryIO that it uses
        resume_size=counted.tell(),
        headers=build_hf_headers() if own_host else {},  # a token goes to the hub alone
        expected_size=file.size_bytes,
        displayed_filename=file.name,
        tqdm_class=silent_tqdm,
    )


class _Counted:
    """A file that is appended to and tells how long it is."""

    def __init__(self, stream: BinaryIO, total: int, progress: Progress | None) -> None:
        self._stream = stream
        self._total = total
        self._progress = progress

    def write(self, data: bytes) -> int:
        count = self._stream.write(data)
        if self._progress is not None:
            self._progress(self._stream.tell(), self._total)
        return count

    def tell(self) -> int:
        return self._stream.tell()

    def seek(self, place: int) -> int:
        return self._stream.seek(place)

    def truncate(self) -> int:
        return self._stream.truncate()


def _verify_digest(file: RemoteFile, partial: Path) -> None:
    """Remove a download that is not what the hub lists, and say so."""
    if file.sha256 is None or (found := file_sha256(partial)) == file.sha256:
        return
    partial.unlink()
    raise HubError(
        f"what arrived as {file.repo}:{file.name} is not what the hub lists: SHA-256 {found} "
        f"instead of {file.sha256}",
        hint="nothing was kept; pull it again, and mistrust the connection if it happens twice",
    )


def _disk_error(error: OSError, file: RemoteFile, partial: Path) -> DataError:
    if error.errno not in (errno.ENOSPC, errno.EDQUOT):
        return DataError(
            f"cannot write {partial}: {error.strerror or error}",
            hint="name another data folder with --data-dir",
        )
    return DataError(
        f"the disk is full: {partial.stat().st_size:,} of {file.size_bytes:,} bytes of "
        f"{file.name} are here",
        hint="free some space and pull again: it goes on from there",
    )


def _connection_error(file: RemoteFile, here: int, error: Exception) -> NoReturn:
    raise HubError(
        f"the connection broke at {here:,} of {file.size_bytes:,} bytes of {file.name}: "
        f"{error or type(error).__name__}",
        hint="pull again: it goes on from there",
    ) from error


UNSIZED_LIMIT = 128 * 1024 * 1024
"""Bytes of a file of which its server does not say how large it is."""
WEB_TIMEOUT_S = 30.0
"""How long a server may say nothing."""
_PLAIN = {"Accept-Encoding": "identity", "Accept": "*/*"}
_ARCHIVES = frozenset({".gz", ".tgz", ".bz2", ".xz", ".zip", ".zst", ".whl"})
_EITHER_HEADER = 32 + zlib.MAX_WBITS
"""Makes zlib take the header of gzip and its own."""
_PIECE = 1 << 20
_RANGE = re.compile(r"bytes (\d+)-\d+/\d+")


class UnsizedError(HubError):
    """A server that writes a file while it sends it, and does not know its size before."""


def is_web_address(text: str) -> bool:
    """Whether a text names something on the web and not a file here."""
    return text.startswith(("http://", "https://"))


def web_file(url: str, addresses: AddressResolver, *, sha256: str | None = None) -> RemoteFile:
    """Return the file at ``url`` with its size (bytes); ``commit`` changes with its content.

    Raises:
        UsageError: ``url`` is no address.
        NotFoundError: There is nothing.
        PolicyError: It leads to an address that is neither public nor one's own.
        HubError: The server cannot be reached or refuses.
        UnsizedError: It does not tell the file's size, or compresses it; ``fetch_unsized`` brings such
            a file.
    """
    if fault := address_fault(url):
        raise UsageError(fault, hint="write it as https://host/file.tar.gz")
    place, headers = asyncio.run(_headers(url, addresses))
    size = headers.get("content-length", "")
    if not size.isdecimal() or _encoding(headers, url, place):
        raise UnsizedError(
            f"{url} does not tell how large its file is",
            hint="download it yourself and name the file",
        )
    mark = headers.get("etag") or headers.get("last-modified") or size
    return RemoteFile(
        repo=url,
        name=PurePosixPath(unquote(urlsplit(url).path)).name or "download",
        size_bytes=int(size),
        sha256=sha256,
        commit=hashlib.sha256(f"{url}\n{mark}".encode()).hexdigest(),
        etag=headers.get("etag", ""),
        place=place,
    )


def fetch_web(file: RemoteFile, sink: DownloadSink, addresses: AddressResolver) -> None:
    """Append to ``sink`` what is missing of ``file``.

    Raises:
        ConnectionError: The connection broke; what came is there.
        NotFoundError, PolicyError, HubError: As ``web_file``.
    """
    asyncio.run(_append(file, sink, addresses))


def fetch_unsized(url: str, target: Path, addresses: AddressResolver) -> str:
    """Bring a file of unknown size to ``target``, whole or not at all; return where ``url`` leads to.

    What is compressed on its way arrives as it was.

    Raises:
        NotFoundError, PolicyError, HubError: As ``web_file``; HubError also where the connection
            breaks, or there is more than ``UNSIZED_LIMIT``.
    """
    with open_atomic(target) as sink:
        try:
            return asyncio.run(_copy(url, sink, addresses))
        except (httpx.TransportError, httpx.TooManyRedirects) as error:
            raise HubError(
                f"{url} broke off: {error or type(error).__name__}", hint="try it again"
            ) from error


async def _copy(url: str, sink: IO[bytes], addresses: AddressResolver) -> str:
    async with _client(addresses) as client, client.stream("GET", url) as got:
        _check_response(got, url)
        async for piece in _pieces(got, url):
            sink.write(piece)
            if sink.tell() > UNSIZED_LIMIT:
                raise HubError(
                    f"{url} sends more than {UNSIZED_LIMIT >> 20} MiB",
                    hint="download it yourself and name the file",
                )
        return str(got.url)


def _encoding(headers: httpx.Headers, *urls: str) -> str:
    """Return how a file is compressed on its way although nobody asked; "" where it is not.

    An archive is what it is: some servers call its own compression one for the way. ``urls`` are its
    address and where that leads to.
    """
    encoding = headers.get("content-encoding", "").strip().lower()
    suffixes = {PurePosixPath(urlsplit(one).path).suffix.lower() for one in urls}
    return "" if suffixes & _ARCHIVES or encoding == "identity" else encoding


async def _pieces(got: httpx.Response, url: str) -> AsyncIterator[bytes]:
    """Yield a response's file, at most ``_PIECE`` bytes at a time where it was compressed.

    Raises:
        HubError: it is compressed otherwise than with gzip or zlib, or damaged.
    """
    encoding = _encoding(got.headers, url, str(got.url))
    if not encoding:
        async for piece in got.aiter_raw():
            yield piece
        return
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise HubError(
            f"{url} is sent compressed as {encoding[:40]!r}",
            hint="download it yourself and name the file",
        )
    inflate = zlib.decompressobj(_EITHER_HEADER)
    try:
        async for piece in got.aiter_raw():
            rest = piece
            while rest and not inflate.eof:
                yield inflate.decompress(rest, _PIECE)
                rest = inflate.unconsumed_tail
        yield inflate.flush()
    except zlib.error as error:
        raise HubError(f"what {url} sends is damaged: {error}", hint="try it again") from error
    if not inflate.eof:
        raise HubError(f"{url} broke off", hint="try it again")


class WebReader:
    """Reads small files of web addresses into memory, over connections that are kept.

    A context manager, outside of any event loop.
    """

    def __init__(self, addresses: AddressResolver) -> None:
        self._addresses = addresses
        self._runner = asyncio.Runner()
        self._open: httpx.AsyncClient | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._open is not None:
            self._runner.run(self._open.aclose())
        self._runner.close()

    def read(self, url: str, limit: int) -> bytes:
        """Return what is at ``url``, at most ``limit`` bytes.

        Raises:
            NotFoundError: There is nothing.
            PolicyError: It leads to an address that is neither public nor one's own.
            HubError: The server cannot be reached or refuses, or there is more.
        """
        try:
            return self._runner.run(self._read(url, limit))
        except (httpx.RequestError, OSError) as error:
            raise _unreachable(url, error) from error

    async def _read(self, url: str, limit: int) -> bytes:
        if self._open is None:
            self._open = _client(self._addresses)
        content = bytearray()
        async with self._open.stream("GET", url) as got:
            _check_response(got, url)
            async for piece in _pieces(got, url):
                content += piece
                if len(content) > limit:
                    raise HubError(
                        f"{url} sends more than {limit:,} bytes",
                        hint="download it yourself and name the file",
                    )
        return bytes(content)


def _client(addresses: AddressResolver) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        transport=Connections(addresses, proxies=Proxies.of_environment()),
        timeout=WEB_TIMEOUT_S,
        follow_redirects=True,
        headers=_PLAIN,
    )


async def _headers(url: str, addresses: AddressResolver) -> tuple[str, httpx.Headers]:
    """Return where an address leads to, and the headers there."""
    try:
        async with _client(addresses) as client, client.stream("GET", url) as answer:
            _check_response(answer, url)
            return str(answer.url), answer.headers
    except (httpx.TransportError, httpx.TooManyRedirects, OSError) as error:
        raise _unreachable(url, error) from error


def _unreachable(url: str, error: Exception) -> HubError:
    return HubError(
        f"{url} cannot be reached: {error or type(error).__name__}",
        hint="check the address and the connection",
    )


async def _append(file: RemoteFile, sink: DownloadSink, addresses: AddressResolver) -> None:
    url, here = file.repo, sink.tell()
    headers: dict[str, Any] = {"Range": f"bytes={here}-"} if here else {}
    if here and file.etag and not file.etag.startswith("W/"):
        headers["If-Range"] = file.etag
    try:
        async with _client(addresses) as client, client.stream("GET", url, headers=headers) as got:
            _check_response(got, url)
            found = _RANGE.match(got.headers.get("content-range", ""))
            if here and (got.status_code != 206 or not found or int(found[1]) != here):
                sink.seek(0)  # the server starts again
                sink.truncate()
            async for piece in got.aiter_raw():
                if sink.tell() + len(piece) > file.size_bytes:
                    raise HubError(
                        f"{url} sends more than the {file.size_bytes:,} bytes that it told",
                        hint="pull again",
                    )
                sink.write(piece)
    except (httpx.TransportError, httpx.TooManyRedirects) as error:
        raise ConnectionError(str(error) or type(error).__name__) from error


def _check_response(answer: httpx.Response, url: str) -> None:
    if answer.is_success:
        return
    status = answer.status_code
    if status in (404, 410):
        raise NotFoundError(f"there is nothing at {url} ({status})", hint="check the address")
    host = urlsplit(url).netloc
    if status in (401, 403):
        raise HubError(
            f"{host} answered {status} for {url}",
            hint="it wants an account: download it yourself and name the file",
        )
    if status == 304:  # nothing was asked that this could be an answer to
        raise HubError(
            f"{host} answered 304 (not modified) for {url}, and sent nothing",
            hint="a cache on the way answers so: try again later, or download it yourself and name "
            "the file",
        )
    raise status_error(host, url, status, answer.headers.get("retry-after"))
