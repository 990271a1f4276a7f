"""HTTP exchanges with a model server: bounded in time and size, closed when Stop is set.

Every failure is a typed error. A refusal that means that the conversation is too long becomes a
ContextError with the room that the server names.
"""

from __future__ import annotations

import asyncio
import email.utils
import json
import math
import re
import ssl
import time
from collections.abc import AsyncIterator, Callable, Collection, Coroutine
from typing import Any, TypeVar

import httpx

from toolsrv_catalogs.text import clean
from toolsrv_runtime.errors import RefusedLengthError, ServerError
from toolsrv_runtime.models.openai import Endpoint
from toolsrv_runtime.stop import Stop

_KINDS = frozenset({"context_length_exceeded", "exceed_context_size_error"})
_STATUSES = frozenset({0, 400, 422, 500})
"""With which the words may come; 0 stands for an error in the middle of a good answer."""

_WORDS = re.compile(
    r"(?:context|sequence|input|prompt) (?:length|size|window)|(?:prompt|input) is too long",
    re.IGNORECASE,
)
_ROOM = re.compile(r"context (?:length|size|window)\D{0,40}?(\d{3,8})(?!\d)", re.IGNORECASE)


def context_length_error(
    server: str, said: str, *, status: int = 0, kinds: Collection[str] = ()
) -> RefusedLengthError | None:
    """Return the error that ``said`` means where it means that; ``kinds`` are its code and type."""
    words = status in _STATUSES and _WORDS.search(said) is not None
    if not (words or not _KINDS.isdisjoint(kinds) or status == 413):
        return None
    room = _ROOM.search(said)
    return RefusedLengthError(
        f"the model of {server} refuses the conversation as too long: {said or status}",
        hint="start the server with a larger context, or offer fewer APIs: --candidates",
        context=int(room[1]) if room else 0,
    )


_T = TypeVar("_T")
Receive = Callable[[httpx.Response, Callable[[], None]], Coroutine[Any, Any, _T]]
"""Reads a response; calls its second argument whenever the server said something."""

CONNECT_S = 5.0
LIST_SILENCE_S = 10.0
"""Where nothing has to be computed."""
MOST_BYTES = 8_000_000
"""Of one response; a reply of 8,000 tokens has a tenth of it, with all that stands around it."""

MOST_REST_S = 300.0
"""For how long a server may say that it is not to be asked."""

_ERROR_BYTES = 64_000
_LINE_BYTES = 1_000_000
_STOP_CHECK_S = 0.05
_RETRYABLE = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_LONGER = "see what it is doing, or give it longer: toolsrv config set max_seconds"
_SHARED = "see what it is doing (it may be loading its model), and ask again"
_HINTS = {
    401: "put its API key in TOOLSRV_ENGINE_KEY or in the keyring",
    403: "the API key must allow this model",
    404: "give the address up to /v1 with a model that the server has: http://HOST/v1#NAME",
}


class HttpClient:
    """Exchanges with one server. ``silence_s``: how long it may say nothing."""

    def __init__(self, place: Endpoint, *, key: str, silence_s: float) -> None:
        self._place = place
        self._key = key
        self._silence_s = silence_s
        self._tls: ssl.SSLContext | bool = place.url.startswith("https://")

    def send(
        self,
        path: str,
        receive: Receive[_T],
        *,
        stop: Stop,
        body: dict[str, Any] | None = None,
        within_s: float = math.inf,
    ) -> _T | None:
        """POST ``body`` (GET without one) and return what ``receive`` makes of the response.

        ``within_s`` is how long it may say nothing where that is less than the server's own
        ``silence_s``. None when ``stop`` was set first. Blocks; the connection is closed in any
        case.

        Raises:
            ServerError: no answer, an error status, or what ``receive`` raises.
            RefusedLengthError: the server says that the conversation is too long.
        """
        if self._tls is True:
            self._tls = httpx.create_ssl_context()  # slow to make, so once
        return asyncio.run(_until_stopped(self._exchange(path, receive, body, within_s), stop))

    async def _exchange(
        self, path: str, receive: Receive[_T], body: dict[str, Any] | None, within_s: float
    ) -> _T:
        url = f"{self._place.url}{path}"
        headers = {"Accept-Encoding": "identity"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        method, content = "GET", None
        if body is not None:  # in ASCII: half a character of a task or a response can be written so
            method, content = "POST", json.dumps(body).encode("ascii")
            headers["Content-Type"] = "application/json"
        silence_s = min(self._silence_s, max(0.0, within_s))
        timeout = httpx.Timeout(None, connect=CONNECT_S)
        loop = asyncio.get_running_loop()
        try:
            async with (
                asyncio.timeout(silence_s) as silence,
                httpx.AsyncClient(verify=self._tls, timeout=timeout, trust_env=False) as client,
                client.stream(method, url, content=content, headers=headers) as response,
            ):
                if not response.is_success:
                    raise await self._refusal(response)
                return await receive(response, lambda: silence.reschedule(loop.time() + silence_s))
        except TimeoutError:
            raise self.error(
                f"said nothing for {silence_s:.3g} s",
                hint="" if body is None else _SHARED if silence_s < self._silence_s else _LONGER,
            ) from None
        except httpx.ConnectTimeout:
            raise self.error(f"could not be reached within {CONNECT_S:g} s") from None
        except httpx.ConnectError as error:
            raise self.error(f"cannot be reached: {clean(str(error), 200)}") from None
        except httpx.HTTPError as error:
            raise self.error(
                f"broke off: {clean(str(error), 200) or type(error).__name__}"
            ) from None

        except OversizeError as error:
            raise self.error(
                f"sent {error} and was not read further",
                hint="see whether a model server is at that address, and what it writes",
            ) from None

    def error(
        self, what: str, *, hint: str = "", again: bool = True, status: int = 0, wait_s: float = 0.0
    ) -> ServerError:
        """Return the error that says what this server did."""
        message = f"the model server {self._place.name} {what}"
        hint = hint or f"see whether it runs: toolsrv model info {self._place.url}"
        return ServerError(message, hint=hint, again=again, status=status, wait_s=wait_s)

    async def _refusal(self, response: httpx.Response) -> ServerError | RefusedLengthError:
        status = response.status_code
        body = await _beginning(response, _ERROR_BYTES)
        said, kinds = _error_message(body)
        if self._key:
            said = said.replace(self._key, "***")
        if too_long := context_length_error(self._place.name, said, status=status, kinds=kinds):
            return too_long
        told = f"answered {status}" + (f": {said}" if said else "")
        if status in _RETRYABLE:
            wait_s = _retry_after(response.headers.get("retry-after", ""))
            return self.error(told, status=status, wait_s=wait_s)
        if response.is_redirect:
            told = f"answered {status} and names another address; redirects are not followed"
        hint = _HINTS.get(status, "see the server's log")
        return self.error(told, hint=hint, again=False, status=status)


class OversizeError(Exception):
    """A server sends more than ``limit`` bytes, in what is told before that."""

    def __init__(self, limit: int, what: str = "") -> None:
        super().__init__(f"{what}more than {limit // 1_000_000} MB")


async def read_response(response: httpx.Response) -> bytes:
    """Return the body; of more than ``MOST_BYTES`` comes an error of ``HttpClient.send``."""
    body = await _beginning(response, MOST_BYTES + 1)
    if len(body) > MOST_BYTES:
        raise OversizeError(MOST_BYTES)
    return body


async def _beginning(response: httpx.Response, limit: int) -> bytes:
    body = bytearray()
    async for part in response.aiter_bytes():
        body += part
        if len(body) > limit:
            return bytes(body[:limit])
    return bytes(body)


async def iter_lines(response: httpx.Response) -> AsyncIterator[bytes]:
    """Yield the lines of a body as they come.

    Of more than ``MOST_BYTES``, or of an endless line, comes an error of ``HttpClient.send``.
    """
    rest, seen = bytearray(), 0
    async for part in response.aiter_bytes():
        seen += len(part)
        if seen > MOST_BYTES:
            raise OversizeError(MOST_BYTES)
        looked_at = len(rest)
        rest += part
        while (end := rest.find(b"\n", looked_at)) >= 0:
            yield bytes(rest[:end]).rstrip(b"\r")
            del rest[: end + 1]
            looked_at = 0
        if len(rest) > _LINE_BYTES:
            raise OversizeError(_LINE_BYTES, "a line of ")
    if rest:
        yield bytes(rest)


async def _until_stopped(work: Coroutine[Any, Any, _T], stop: Stop) -> _T | None:
    task = asyncio.ensure_future(work)
    while not task.done():
        if stop.is_set():
            task.cancel()
            await asyncio.wait({task})
            return None
        await asyncio.wait({task}, timeout=_STOP_CHECK_S)
    return task.result()


def _error_message(body: bytes) -> tuple[str, tuple[str, ...]]:
    """Return the message of an error body, "" without one, and what names its kind."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        words = clean(" ".join(body.decode("utf-8", "replace").split()), 300)
        return ("" if words.startswith(("<", "{", "[")) else words), ()  # a page says nothing
    error = value.get("error", value) if isinstance(value, dict) else None
    if isinstance(error, str):
        return clean(error, 300), ()
    if not isinstance(error, dict):
        return "", ()
    message = error.get("message") or error.get("detail") or ""
    return clean(str(message), 300), tuple(str(error.get(key)) for key in ("code", "type"))


def _retry_after(text: str) -> float:
    """Return the seconds of a Retry-After header, which may be a date; 0 without one.

    At most ``MOST_REST_S``: nobody may put a server out for good.
    """
    try:
        wait_s = float(text)
    except ValueError:
        try:
            wait_s = email.utils.parsedate_to_datetime(text).timestamp() - time.time()
        except (ValueError, OverflowError):
            return 0.0
    return min(max(0.0, wait_s), MOST_REST_S)
