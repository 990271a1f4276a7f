"""One HTTP request with time and size caps; a failure is a result, not an exception.

Knows requests and responses; does not know whether a call is allowed.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx

from toolsrv_catalogs.text import clean

BODY_LIMIT = 1_000_000
"""Bytes of a response body that are read; the rest is left unread."""

_PLACEHOLDER = re.compile(r"\{([^{}]+)\}")


@dataclass(frozen=True, slots=True)
class Exchange:
    """What came back: ``status`` 0 means no response, and ``error`` says why."""

    status: int
    response: Any
    error: str


def build(
    method: str, template: str, arguments: Mapping[str, Any]
) -> tuple[httpx.URL, dict[str, Any]]:
    """Return the URL with its ``{placeholders}`` filled (quoted whole) and what is left over.

    Raises:
        ValueError: a value cannot stand in a path, or the result is no URL.
    """
    used: set[str] = set()

    def fill(match: re.Match[str]) -> str:
        used.add(match[1])
        value = spell(arguments.get(match[1], ""))
        if value.strip() in {"", ".", ".."}:  # would name another place than the API's
            raise ValueError(f"{value!r} cannot stand in the path")
        return quote(value, safe="")

    url = httpx.URL(_PLACEHOLDER.sub(fill, template))
    rest = {name: value for name, value in arguments.items() if name not in used}
    if method.upper() in {"GET", "HEAD", "DELETE"}:
        url = url.copy_merge_params({name: spell(value) for name, value in rest.items()})
        rest = {}
    return url, rest


def spell(value: Any) -> str:
    """Return a value as a query string spells it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


async def exchange(
    client: httpx.AsyncClient, request: httpx.Request, *, seconds: float
) -> Exchange:
    """Send ``request`` and read at most ``BODY_LIMIT`` bytes within ``seconds`` in all."""
    try:
        async with asyncio.timeout(seconds):
            response = await client.send(request, stream=True)
            try:
                body = await _read(response)
            finally:
                await response.aclose()
    except TimeoutError:
        return Exchange(0, None, f"no answer within {seconds:g} seconds")
    except httpx.HTTPError as error:
        return Exchange(0, None, f"{type(error).__name__}: {error}"[:200])
    return _understand(response, body)


async def _read(response: httpx.Response) -> bytes:
    parts: list[bytes] = []
    size = 0
    async for part in response.aiter_bytes():
        parts.append(part[: BODY_LIMIT - size])
        size += len(parts[-1])
        if size >= BODY_LIMIT:
            break
    return b"".join(parts)


def _understand(response: httpx.Response, body: bytes) -> Exchange:
    try:
        text = body.decode(response.charset_encoding or "utf-8", errors="replace")
    except LookupError:  # a charset that does not exist
        text = body.decode("utf-8", errors="replace")
    value: Any
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = clean(text, BODY_LIMIT)
    error = "" if response.is_success else f"HTTP status {response.status_code}"
    return Exchange(response.status_code, value, error)
