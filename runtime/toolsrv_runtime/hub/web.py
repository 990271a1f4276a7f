"""Files of web addresses: what is there, a resumable fetch, and small files read into memory.

All goes over the checked connections of ``calls``, redirects too, and within limits in bytes.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import zlib
from collections.abc import AsyncIterator
from pathlib import Path, PurePosixPath
from typing import IO, Any, Self
from urllib.parse import unquote, urlsplit

import httpx

from toolsrv_catalogs.hosts import address_fault
from toolsrv_registry.errors import NotFoundError, UsageError
from toolsrv_runtime.calls.addresses import AddressResolver
from toolsrv_runtime.calls.transports import Connections, Proxies
from toolsrv_runtime.files import open_atomic
from toolsrv_runtime.hub import HubError, RemoteFile, status_error
from toolsrv_runtime.hub.download import DownloadSink

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
