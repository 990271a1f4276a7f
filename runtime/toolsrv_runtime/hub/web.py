"""A file at a plain web address, brought over the connections that calls go over.

Every hop of a redirect is held to the address policy: public addresses, and hosts of one's own. No
key and no token is sent. How a file becomes whole is ``pull``'s business.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from pathlib import Path, PurePosixPath
from typing import IO, Any
from urllib.parse import unquote, urlsplit

import httpx

from toolsrv_catalogs.hosts import address_fault
from toolsrv_registry.errors import NotFoundError, UsageError
from toolsrv_runtime.atomic import fresh_bytes
from toolsrv_runtime.calls.addresses import Addresses
from toolsrv_runtime.calls.connection import Connections
from toolsrv_runtime.calls.proxies import Proxies
from toolsrv_runtime.hub.errors import HubError, refusal
from toolsrv_runtime.hub.listing import RemoteFile
from toolsrv_runtime.hub.pull import Sink

UNSIZED_LIMIT = 128 * 1024 * 1024
"""Bytes of a file of which its server does not say how large it is."""
SECONDS = 30.0
"""How long a server may say nothing."""
_PLAIN = {"Accept-Encoding": "identity", "Accept": "*/*"}
_RANGE = re.compile(r"bytes (\d+)-\d+/\d+")


class UnsizedError(HubError):
    """A server that writes a file while it sends it, and does not know its size before."""


def is_web_address(text: str) -> bool:
    """Whether a text names something on the web and not a file here."""
    return text.startswith(("http://", "https://"))


def web_file(url: str, addresses: Addresses, *, sha256: str | None = None) -> RemoteFile:
    """Return the file at ``url`` with its size (bytes); ``commit`` changes with its content.

    Raises:
        UsageError: ``url`` is no address.
        NotFoundError: There is nothing.
        PolicyError: It leads to an address that is neither public nor one's own.
        HubError: The server cannot be reached or refuses.
        UnsizedError: It does not tell a size; ``fetch_unsized`` brings such a file.
    """
    if fault := address_fault(url):
        raise UsageError(fault, hint="write it as https://host/file.tar.gz")
    headers = asyncio.run(_headers(url, addresses))
    size = headers.get("content-length", "")
    if not size.isdecimal():
        raise UnsizedError(
            f"{url} does not tell how large it is",
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
    )


def fetch_web(file: RemoteFile, sink: Sink, addresses: Addresses) -> None:
    """Append to ``sink`` what is missing of ``file``.

    Raises:
        ConnectionError: The connection broke; what came is there.
        NotFoundError, PolicyError, HubError: As ``web_file``.
    """
    asyncio.run(_append(file, sink, addresses))


def fetch_unsized(url: str, target: Path, addresses: Addresses) -> None:
    """Bring a file of unknown size to ``target`` in one go: whole or not at all.

    Raises:
        NotFoundError, PolicyError, HubError: As ``web_file``; HubError also where the connection
            breaks, or there is more than ``UNSIZED_LIMIT``.
    """
    with fresh_bytes(target) as sink:
        try:
            asyncio.run(_copy(url, sink, addresses))
        except (httpx.TransportError, httpx.TooManyRedirects) as error:
            raise HubError(
                f"{url} broke off: {error or type(error).__name__}", hint="try it again"
            ) from error


async def _copy(url: str, sink: IO[bytes], addresses: Addresses) -> None:
    async with _client(addresses) as client, client.stream("GET", url) as got:
        _check(got, url)
        async for piece in got.aiter_raw():
            sink.write(piece)
            if sink.tell() > UNSIZED_LIMIT:
                raise HubError(
                    f"{url} sends more than {UNSIZED_LIMIT >> 20} MiB",
                    hint="download it yourself and name the file",
                )


def _client(addresses: Addresses) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        transport=Connections(addresses, proxies=Proxies.of_environment()),
        timeout=SECONDS,
        follow_redirects=True,
        headers=_PLAIN,
    )


async def _headers(url: str, addresses: Addresses) -> httpx.Headers:
    try:
        async with _client(addresses) as client, client.stream("GET", url) as answer:
            _check(answer, url)
            return answer.headers
    except (httpx.TransportError, httpx.TooManyRedirects, OSError) as error:
        raise HubError(
            f"{url} cannot be reached: {error or type(error).__name__}",
            hint="check the address and the connection",
        ) from error


async def _append(file: RemoteFile, sink: Sink, addresses: Addresses) -> None:
    url, here = file.repo, sink.tell()
    headers: dict[str, Any] = {"Range": f"bytes={here}-"} if here else {}
    if here and file.etag and not file.etag.startswith("W/"):
        headers["If-Range"] = file.etag
    try:
        async with _client(addresses) as client, client.stream("GET", url, headers=headers) as got:
            _check(got, url)
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


def _check(answer: httpx.Response, url: str) -> None:
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
    raise refusal(host, url, status, answer.headers.get("retry-after"))
