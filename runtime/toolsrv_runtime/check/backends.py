"""Backends of a check: offline, live over the network, and replies recorded in a file.

Live calls use one connection each, so that latencies compare; which hosts may be called is the
policy's decision. A recording has one JSON object a line: ``{"api_id", "status", "seconds",
"headers", "body", "failure", "error"}``, of which ``api_id`` and ``status`` are required. The last
line of an API counts. Bodies stay in the file until they are needed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Literal, Self

import httpx
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from toolsrv_catalogs.offline import OFFLINE_HOST
from toolsrv_registry import wellformed
from toolsrv_registry.api import Api
from toolsrv_registry.errors import DataError, NotFoundError, UsageError
from toolsrv_runtime.calls.addresses import AddressResolver
from toolsrv_runtime.calls.authenticated import FixedValuesLookup, no_fixed_values
from toolsrv_runtime.calls.caller import ApiOrigin, Caller, Network, unknown_origin
from toolsrv_runtime.calls.credentials import is_rapidapi_host
from toolsrv_runtime.calls.policy import Policy
from toolsrv_runtime.calls.rate_limits import CallUsage
from toolsrv_runtime.calls.transports import Connections, Proxies, offline_transports
from toolsrv_runtime.check.replies import (
    ApiReply,
    Backend,
    CallerBackend,
    CapturingTransport,
    host_of,
)


class LiveTransport(httpx.AsyncBaseTransport):
    """Sends requests to their host; a private address is refused, but for ``own`` hosts.

    ``key`` goes to RapidAPI's hosts and nowhere else. ``via`` is another server that gets every
    request instead, with the host in the ``Host`` header and without the key: a mirror, a mock or
    a gateway, which may be on a private address since a person named it.
    """

    def __init__(
        self, *, key: str = "", via: httpx.URL | None = None, own: Collection[str] = ()
    ) -> None:
        named = own if via is None else {*own, via.host.lower()}
        self._key = key
        self._via = via
        self._inner = Connections(
            AddressResolver(own=named), reuse=False, proxies=Proxies.of_environment()
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request."""
        host, url = request.url.host, request.url
        headers = request.headers.copy()
        if self._via is not None:
            url = self._via.copy_with(raw_path=request.url.raw_path)
        elif self._key and is_rapidapi_host(host):
            headers["x-rapidapi-key"] = self._key
            headers["x-rapidapi-host"] = host
        return await self._inner.handle_async_request(
            httpx.Request(
                request.method,
                url,
                headers=headers,
                stream=request.stream,
                extensions=request.extensions,
            )
        )

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()


LINE_LIMIT = 8_000_000
"""Bytes of a line: a body of 1 MB, escaped."""


class RecordedReply(BaseModel):
    """One recorded reply."""

    model_config = ConfigDict(frozen=True)

    api_id: str
    status: int = Field(ge=0, le=999)
    seconds: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    headers: dict[str, str] = {}
    body: Any = None
    failure: Literal["", "timed_out", "unreachable", "broken"] = ""
    error: str = ""


class RecordedBackend:
    """A backend that answers from a file. Raises NotFoundError and DataError for a bad file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._file = path.open("rb")
        except OSError as error:
            raise NotFoundError(
                f"cannot read the recording {path}: {error.strerror}",
                hint="make one with: toolsrv catalog check --record FILE",
            ) from error
        try:
            self._places = self._index()
        except DataError:
            self._file.close()
            raise

    def refuses(self, api: Api) -> str:
        """Return why the API cannot be judged here, "" when it can."""
        return "" if api.id in self._places else "it is not in the recording"

    async def ask(self, api: Api, arguments: Mapping[str, Any]) -> ApiReply:
        """Return the recorded reply."""
        del arguments
        self._file.seek(self._places[api.id])
        line = self._parse(self._file.readline(LINE_LIMIT), 0)
        if line is None or line.api_id != api.id:
            raise DataError(f"{self._path} was changed while it was read", hint="start again")
        return ApiReply(
            status=line.status,
            seconds=line.seconds,
            headers={name.lower(): value for name, value in line.headers.items()},
            body=line.body,
            failure=line.failure or ("" if line.status else "broken"),
            error=line.error,
            source="recorded",
        )

    async def aclose(self) -> None:
        """Close the file."""
        self._file.close()

    def _index(self) -> dict[str, int]:
        places: dict[str, int] = {}
        number = place = 0
        while content := self._file.readline(LINE_LIMIT):
            number += 1
            if content.strip() and (line := self._parse(content, number)) is not None:
                places[line.api_id] = place
            place = self._file.tell()
        return places

    def _parse(self, content: bytes, number: int) -> RecordedReply | None:
        if not content.endswith(b"\n"):
            if len(content) >= LINE_LIMIT:
                raise DataError(f"{self._path}: line {number} is longer than {LINE_LIMIT:,} bytes")
            return None  # a recorder that was killed leaves half a line
        try:
            return RecordedReply.model_validate(wellformed.loads(content))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            why = f"{where + ': ' if where else ''}{first['msg']}"
        except (ValueError, RecursionError) as error:
            why = f"not JSON: {error}"
        raise DataError(
            f"{self._path}: line {number}: {why}",
            hint="every line is one JSON object with api_id and status",
        )


class ReplyRecorder:
    """Appends replies to a file. Use as a context."""

    def __init__(self, path: Path) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("a+b")
        except OSError as error:
            raise DataError(
                f"cannot write the recording {path}: {error.strerror}", hint="name another file"
            ) from error
        _drop_half_line(self._file)

    def add(self, api_id: str, reply: ApiReply) -> None:
        """Append one reply."""
        line = {
            "api_id": api_id,
            "status": reply.status,
            "seconds": round(reply.seconds, 3),
            "headers": dict(reply.headers),
            "body": reply.body,
            "failure": reply.failure,
            "error": reply.error,
        }
        text = wellformed.json_text(json.dumps(line, ensure_ascii=False)).encode()
        self._file.write(text + b"\n")
        self._file.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._file.close()


def _drop_half_line(file: BinaryIO) -> None:
    """Cut what follows the last line feed: half a line of a recorder that was killed."""
    end = file.seek(0, 2)
    keep = end
    while keep:
        start = max(0, keep - 65_536)
        file.seek(start)
        found = file.read(keep - start).rfind(b"\n")
        if found >= 0:
            keep = start + found + 1
            break
        keep = start
    if keep < end:
        file.truncate(keep)


NO_KEY = "RapidAPI needs a key, and none is stored"
ONLINE = "it is called over the network (--mode live)"


def offline_backend(*, timeout: float) -> Backend:
    """Return the backend of the catalog that ships; no other host is called."""
    policy = Policy()
    caller = _offline_caller(policy, timeout)
    return CallerBackend(
        {OFFLINE_HOST: caller}, policy=policy, timeout=timeout, elsewhere=lambda _: ONLINE
    )


def live_backend(
    apis: Iterable[Api],
    *,
    timeout: float,
    key: str = "",
    via: str | None = None,
    own: Collection[str] = (),
    home: Callable[[Api], ApiOrigin] = unknown_origin,
    fixed: FixedValuesLookup = no_fixed_values,
    paid: Collection[str] = (),
    usage: CallUsage | None = None,
) -> Backend:
    """Return the backend of the hosts that these APIs name, and of the catalog that ships.

    RapidAPI's hosts need ``key``. ``via`` is the URL of a server that gets every call instead.
    ``own`` are a person's own hosts: at any address and over plain HTTP, as in other calls.
    ``fixed`` returns what is sent with each call of the catalog that ``home`` names. ``paid`` are
    ids of APIs that are left alone since they cost money, ``usage`` counts the calls.

    Raises:
        UsageError: ``via`` is no http or https URL.
    """
    policy = Policy()
    target = None if via is None else _via(via)
    hosts = {host_of(api) for api in apis} - {"", OFFLINE_HOST}
    if not key and target is None:
        hosts = {host for host in hosts if not is_rapidapi_host(host)}
    is_own = AddressResolver(own=own).allows_any
    network = Network(
        transport=CapturingTransport(LiveTransport(key=key, via=target, own=own)),
        hosts=None,
        own=is_own,
        fixed=fixed,
    )
    live = Caller(policy=policy, transports={}, timeout=timeout, network=network, home=home)
    return CallerBackend(
        {**dict.fromkeys(hosts, live), OFFLINE_HOST: _offline_caller(policy, timeout)},
        policy=policy,
        timeout=timeout,
        secrets=(key,),
        own=is_own,
        paid=() if target else paid,
        usage=None if target else usage,
        catalog=lambda api: home(api).catalog,
        elsewhere=lambda host: (
            NO_KEY if is_rapidapi_host(host) else "its host is not in the catalog"
        ),
    )


def recorded_backend(path: Path) -> Backend:
    """Return the backend of a file that a check recorded.

    Raises:
        NotFoundError, DataError: the file cannot be read.
    """
    return RecordedBackend(path)


def _offline_caller(policy: Policy, timeout: float) -> Caller:
    served = {
        host: CapturingTransport(transport) for host, transport in offline_transports().items()
    }
    return Caller(policy=policy, transports=served, source="offline", timeout=timeout)


def _via(text: str) -> httpx.URL:
    try:
        url = httpx.URL(text)
    except httpx.InvalidURL as error:
        raise UsageError(
            f"--via {text!r} is no URL: {error}", hint="for example http://localhost:8080"
        ) from error
    if url.scheme not in {"http", "https"} or not url.host or url.userinfo:
        raise UsageError(
            f"--via {text!r} is no http or https URL", hint="for example http://localhost:8080"
        )
    return url
