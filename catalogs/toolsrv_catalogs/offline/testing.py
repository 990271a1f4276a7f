"""A blocking client of the offline application, for tests and interactive sessions.

Requests go through the same in-process transport as in a solve; no port is opened.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any, Self

import httpx

from toolsrv_catalogs.offline import OFFLINE_HOST, create_app


class OfflineClient:
    """Sends requests to a fresh offline application on an event loop of its own."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._client = httpx.AsyncClient(
            transport=httpx.ASGITransport(create_app()), base_url=f"https://{OFFLINE_HOST}"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._runner.run(self._client.aclose())
        self._runner.close()

    def request(
        self, method: str, path: str, params: list[tuple[str, str]] | None = None
    ) -> httpx.Response:
        """Send one request; ``path`` is taken as it is, percent-encoded where needed."""
        query = httpx.QueryParams(tuple(params or ()))
        return self._runner.run(self._client.request(method, path, params=query))

    def get(self, path: str, **params: str) -> httpx.Response:
        """GET ``path`` with query parameters."""
        return self.request("GET", path, list(params.items()))

    def answer(self, path: str, **params: str) -> dict[str, Any]:
        """Return the JSON object of a 200 answer; an ``AssertionError`` shows any other."""
        response = self.get(path, **params)
        if response.status_code != 200:
            raise AssertionError(f"{path}: {response.status_code} {response.text}")
        body: dict[str, Any] = response.json()
        return body

    def error(self, status: int, path: str, **params: str) -> str:
        """Return the error text of an answer with ``status``; anything else is an error."""
        response = self.get(path, **params)
        if response.status_code != status:
            raise AssertionError(f"{path}: {response.status_code} {response.text}")
        message: str = response.json()["error"]
        return message
