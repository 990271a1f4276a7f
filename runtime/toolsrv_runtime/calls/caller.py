"""The Caller: binds arguments, asks the policy, makes the call, says where the answer came from."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Self

import httpx
from pydantic import BaseModel, ConfigDict

from toolsrv_registry.api import Api
from toolsrv_runtime.calls import arguments as args
from toolsrv_runtime.calls import http
from toolsrv_runtime.calls.policy import Policy
from toolsrv_runtime.errors import ArgumentError, PolicyError
from toolsrv_runtime.outcome import Source


class CallResult(BaseModel):
    """One call and what it came to.

    ``status`` is the HTTP status, 0 when no response came; ``response`` is the JSON value or the
    text; ``error`` is empty exactly when the call succeeded; ``seconds`` is wall time.
    """

    model_config = ConfigDict(frozen=True)

    api_id: str
    arguments: dict[str, Any]
    url: str
    status: int
    response: Any
    error: str
    source: Source
    seconds: float

    @property
    def ok(self) -> bool:
        """Whether the API answered with a 2xx status."""
        return 200 <= self.status < 300


class Caller:
    """Calls APIs through one transport per host. Use as an async context manager or aclose it."""

    def __init__(
        self,
        *,
        policy: Policy | None = None,
        transports: Mapping[str, httpx.AsyncBaseTransport],
        source: Source = "offline",
        timeout: float = 20.0,
    ) -> None:
        self._policy = policy or Policy()
        self._source: Source = source
        self._timeout = timeout
        self._clients = {
            host: httpx.AsyncClient(
                transport=transport, follow_redirects=False, timeout=timeout, trust_env=False
            )
            for host, transport in transports.items()
        }

    async def call(self, api: Api, arguments: Mapping[str, Any]) -> CallResult:
        """Call ``api``. An API that fails, or never answers, gives a result that says so.

        Raises:
            ArgumentError: an argument is unknown, missing or wrong; names it.
            PolicyError: the call is not allowed.
        """
        bound = args.bind(api, arguments)
        try:
            url, body = http.build(api.method, api.url, bound)
        except ValueError as error:
            raise ArgumentError(
                f"{api.id}: {error}", hint="give a value with letters or digits in it"
            ) from None
        except httpx.InvalidURL as error:
            raise PolicyError(
                f"{api.id} has no usable address ({error})", hint="choose another API"
            ) from None
        self._policy.check(api, url, self._clients.keys())
        client = self._clients[url.host]
        request = client.build_request(api.method.upper(), url, json=body or None)
        start = time.monotonic()
        got = await http.exchange(client, request, seconds=self._timeout)
        return CallResult(
            api_id=api.id,
            arguments=bound,
            url=str(url),
            status=got.status,
            response=got.response,
            error=got.error,
            source=self._source,
            seconds=time.monotonic() - start,
        )

    async def aclose(self) -> None:
        """Close all connections."""
        for client in self._clients.values():
            await client.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def default_caller() -> Caller:
    """Return a read-only caller of the catalog that ships."""
    from toolsrv_runtime.calls.offline import transports  # noqa: PLC0415 - loads starlette

    return Caller(transports=transports())
