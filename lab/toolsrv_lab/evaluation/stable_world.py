"""The API server of StableToolBench as a caller, and the APIs of a query as its candidates.

``WorldCaller`` speaks ``/virtual`` with a world of ours that replays a cache.
The headers of its replies tell what the cache had: a reply of a real service, one that the cache's
makers had simulated, or nothing.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import httpx

from toolsrv_lab.given_apis import GivenApi, GivenApis
from toolsrv_registry.api import Api
from toolsrv_registry.errors import DataError
from toolsrv_registry.matcher import Match, MatchRequest
from toolsrv_runtime.agent.candidates import ApiRetriever, RetrievedApis
from toolsrv_runtime.agent.concurrency import run_in_thread
from toolsrv_runtime.calls.result import CallResult, Consent
from toolsrv_runtime.calls.simulation import Simulator
from toolsrv_runtime.stop import Stop

Use = Literal["real", "simulated", "missed", "refused"]
"""What a call came to: a hit with a real or a simulated reply, a miss, or refused before a look-up."""

_STATUS: Mapping[str, int] = {
    "ok": 200, "bad_arguments": 400, "unauthorized": 401, "not_subscribed": 403, "not_found": 404,
    "gone": 410, "rate_limited": 429, "timed_out": 0, "network_error": 0, "replay_miss": 0,
}  # fmt: skip
_SECONDS = 60.0


class WorldCaller:
    """Makes the calls of a solve at a world; ``used`` counts what they came to since ``begin``.

    ``simulator`` answers misses, and without one they are errors. ``schemas`` returns the response
    schema of an API, None for unknown. Close it.
    """

    def __init__(
        self,
        where: str,
        token: str,
        *,
        simulator: Simulator | None = None,
        schemas: Any = lambda _api: None,
    ) -> None:
        self.used: Counter[Use] = Counter()
        self._token = token
        self._simulator = simulator
        self._schemas = schemas
        self._client = httpx.AsyncClient(base_url=where, timeout=_SECONDS, trust_env=False)

    def begin(self) -> None:
        """Count from here."""
        self.used.clear()

    async def call(
        self,
        api: Api,
        arguments: Mapping[str, Any],
        *,
        tainted: bool = False,
        consent: Consent | None = None,
    ) -> CallResult:
        """Return what the world replies, or a simulation where it has nothing.

        Raises:
            DataError: the world does not answer as one.
        """
        del tainted, consent
        start = time.monotonic()
        category, tool, name = api.id.split("/")
        body = {
            "category": category,
            "tool_name": tool,
            "api_name": name,
            "tool_input": dict(arguments),
            "strip": "",
            "toolbench_key": self._token,
        }
        try:
            got = await self._client.post("/virtual", json=body)
            found = _result(api, arguments, got, time.monotonic() - start)
        except (httpx.HTTPError, ValueError, KeyError, TypeError) as problem:
            raise DataError(
                f"the API server does not answer: {type(problem).__name__}", hint="start again"
            ) from problem
        use = use_of(found)
        self.used[use] += 1
        if use == "missed" and self._simulator is not None:
            return await self._simulated(api, found, self._simulator)
        return found

    def schema(self, api: Api) -> Any:
        """Return the response schema of an API, None for unknown."""
        return self._schemas(api)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _simulated(self, api: Api, missed: CallResult, simulator: Simulator) -> CallResult:
        stop = Stop()
        try:
            said = await run_in_thread(
                lambda: simulator.answer(api, missed.arguments, self.schema(api), stop), stop
            )
        finally:
            stop.set()
        return missed.model_copy(
            update={
                "status": 500 if said.error else 200,
                "kind": "server_error" if said.error else "ok",
                "response": said.response,
                "error": said.error,
                "source": "simulated",
            }
        )


def use_of(result: CallResult) -> Use:
    """Return what a call came to at a world that replays a cache."""
    if result.kind == "replay_miss":
        return "missed"
    if result.kind in ("bad_arguments", "needs_consent", "blocked_by_policy"):
        return "refused"
    return "simulated" if result.source == "simulated" else "real"


def _result(
    api: Api, arguments: Mapping[str, Any], got: httpx.Response, seconds: float
) -> CallResult:
    """Return what a reply says of a call. Raises ValueError, KeyError or TypeError for no reply."""
    said = got.json()
    error, response = str(said["error"]), said["response"]
    kind = got.headers.get("x-toolsrv-kind") or ("server_error" if error else "ok")
    return CallResult.model_validate(
        {
            "api_id": api.id,
            "arguments": dict(arguments),
            "url": "",
            "status": _STATUS.get(kind, 500) if error else 200,
            "response": None if error and response == "" else response,
            "error": error,
            "source": got.headers.get("x-toolsrv-source") or "recorded",
            "seconds": seconds,
            "kind": kind,
        }
    )


@dataclass(slots=True)
class QueryRetriever:
    """A retriever that offers the APIs that the query came with, where it came with any.

    ``inner`` searches for all others, and judges; set ``candidates`` before each solve.
    """

    inner: ApiRetriever
    candidates: Sequence[Api] = field(default_factory=tuple)

    def search(self, text: str, limit: int = 5, *, category: str | None = None) -> RetrievedApis:
        """Return the query's APIs in its order, or what ``inner`` finds."""
        if not self.candidates:
            return self.inner.search(text, limit, category=category)
        return GivenApis(tuple(GivenApi(one) for one in self.candidates[:limit]))

    def scores(self, text: str, apis: Sequence[Api]) -> Sequence[float]:
        """Return how well each API fits ``text``, each in [0, 1]."""
        return self.inner.scores(text, apis)

    def similarities(self, text: str, apis: Sequence[Api]) -> Sequence[float]:
        """Return how near ``text`` is to a request that people make of each API (cosine)."""
        return self.inner.similarities(text, apis)

    def match(self, asked: MatchRequest, apis: Sequence[Api]) -> Sequence[Match]:
        """Return whether each API serves a clause of a text, and which words are its values."""
        return self.inner.match(asked, apis)
