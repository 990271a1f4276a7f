"""Calls that nobody answers, answered by an invention: off unless a person asks for it.

Every such result has the source ``simulated``. Arguments and policy are checked as for a real
call, and nothing is sent. Knows no settings.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import httpx

from toolsrv_registry import wellformed
from toolsrv_registry.api import Api
from toolsrv_registry.errors import ToolsrvError
from toolsrv_runtime.calls import mirror
from toolsrv_runtime.calls.caller import Caller, Network
from toolsrv_runtime.calls.exchange import Exchange
from toolsrv_runtime.calls.invented import invented, known_fields
from toolsrv_runtime.calls.ready import Ready
from toolsrv_runtime.calls.request import Outgoing
from toolsrv_runtime.calls.result import CallResult, Consent
from toolsrv_runtime.calls.spool import Spool
from toolsrv_runtime.contract.chat import ChatModel, ChatRequest, SystemMessage, UserMessage
from toolsrv_runtime.engine.base import Engine, Piece, Sampling
from toolsrv_runtime.errors import ModelError
from toolsrv_runtime.outcome import Source
from toolsrv_runtime.profile import Profile
from toolsrv_runtime.stop import Stop
from toolsrv_runtime.templates.chat_template import conversation

_GRAMMAR = """start: %json {
"type": "object", "additionalProperties": false, "required": ["error", "response"],
"properties": {"error": {"type": "string"}, "response": {"type": "string"}}}
"""


@dataclass(frozen=True, slots=True)
class Simulated:
    """What an API might have said; ``error`` is "" where it would have succeeded."""

    response: Any
    error: str = ""


class Simulator(Protocol):
    """Something that invents responses."""

    def answer(self, api: Api, arguments: Mapping[str, Any], schema: Any, stop: Stop) -> Simulated:
        """Return a response to bound arguments; ``schema`` is the API's, if any. Blocks."""


class SchemaSimulator:
    """Invents values in the shape of the response schema, the same for the same seed and call."""

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed

    def answer(self, api: Api, arguments: Mapping[str, Any], schema: Any, stop: Stop) -> Simulated:
        """Return a response; see ``Simulator.answer``. Asks nobody."""
        key = json.dumps([self._seed, api.id, arguments], sort_keys=True)
        shape = schema or known_fields(arguments)
        rng = random.Random(key)  # noqa: S311 - to be repeated
        return Simulated(invented(shape, arguments, rng, stop))


class ModelSimulator:
    """Asks a model in MirrorAPI's format."""

    def __init__(self, load: Callable[[], tuple[Engine | ChatModel, Profile]]) -> None:
        """Take what returns the model, asked when there is something to simulate."""
        self._load = load

    def answer(self, api: Api, arguments: Mapping[str, Any], schema: Any, stop: Stop) -> Simulated:
        """Return what the model says; see ``Simulator.answer``.

        Raises:
            ToolsrvError: the model cannot be asked, or writes nothing but the compact format.
        """
        del schema
        text = self._reply(mirror.user_message(mirror.document(api), arguments), stop)
        said = mirror.parse(text.rpartition("</think>")[2].strip())
        if said is None or not any(said):
            return Simulated(None, "the model that simulates gave no response")
        error, response = said
        return Simulated(_value(response), str(error or ""))

    def _reply(self, message: str, stop: Stop) -> str:
        model, profile = self._load()
        if isinstance(model, ChatModel):
            request = ChatRequest(
                (SystemMessage(mirror.INSTRUCTIONS), UserMessage(message)),
                max_tokens=mirror.MAX_TOKENS,
                temperature=mirror.TEMPERATURE,
                seed=mirror.SEED,
            )
            reply = model.reply(request, stop=stop)
            return "" if reply is None else reply.text
        if profile.format == "compact":
            raise ModelError(
                f"{model.name} is too small to simulate an API",
                hint="name another with the setting simulator, or simulate by schema",
            )
        turns = (("system", (Piece(mirror.INSTRUCTIONS),)), ("user", (Piece(message),)))
        prompt = conversation(
            turns, profile.chat_template, profile.chat_template_from, model.special_tokens
        )
        generated = model.generate(
            prompt,
            grammar=_GRAMMAR,
            max_tokens=min(mirror.MAX_TOKENS, model.context // 2),
            sampling=Sampling(mirror.TEMPERATURE, seed=mirror.SEED),
            stop=stop,
        )
        return generated.text


class SilentCaller(Caller):
    """Calls what its transports serve; of other calls it says that nobody answers, unsent."""

    reaches = False

    def __init__(self, **parts: Any) -> None:
        """Take what ``Caller`` takes but a network."""
        network = Network(transport=_Nowhere(), keys=lambda _: "not needed")
        super().__init__(network=network, **parts)

    async def _exchange(
        self, api: Api, outgoing: Outgoing, spool: Spool | None
    ) -> tuple[Exchange, Source]:
        if self._serves(api):
            return await super()._exchange(api, outgoing, spool)
        return Exchange("replay_miss", 0, None, "nobody answers here"), "simulated"


class SimulatingCaller(Caller):
    """Answers with a simulation what another caller has no answer to (``replay_miss``)."""

    def __init__(self, inner: Caller, simulator: Simulator) -> None:
        """Take the other caller, which is closed with this one."""
        super().__init__(transports={})
        self._inner = inner
        self._simulator = simulator

    async def call(
        self,
        api: Api,
        arguments: Mapping[str, Any],
        *,
        tainted: bool = False,
        consent: Consent | None = None,
        spool: Spool | None = None,
    ) -> CallResult:
        """Call ``api``, or simulate what it would say; see ``Caller.call``."""
        result = await self._inner.call(
            api, arguments, tainted=tainted, consent=consent, spool=spool
        )
        if result.kind != "replay_miss":
            return result
        start, stop = time.monotonic(), Stop()
        try:
            said = await asyncio.to_thread(
                self._simulator.answer, api, result.arguments, self.schema(api), stop
            )
        except ToolsrvError as error:
            said = Simulated(None, f"nothing was simulated: {error.message} ({error.hint})")
        finally:
            stop.set()
        return result.model_copy(
            update={
                "status": 500 if said.error else 200,
                "kind": "server_error" if said.error else "ok",
                "response": said.response,
                "error": said.error,
                "source": "simulated",
                "seconds": time.monotonic() - start,
                "hint": "",
                "nearest": None,
            }
        )

    def lacks(self, api: Api) -> str:
        """Return nothing: what is invented needs no credentials."""
        del api
        return ""

    def can_call(self, api: Api, *, asks: bool = False) -> bool:
        """Whether the other caller can."""
        return self._inner.can_call(api, asks=asks)

    def ready(self, api: Api) -> Ready:
        """Return what the other caller says; what is invented needs no key."""
        return replace(self._inner.ready(api), key="", lacks="")

    def schema(self, api: Api) -> Any:
        """Return what the other caller knows of the shape of responses."""
        return self._inner.schema(api)

    async def aclose(self) -> None:
        """Close the other caller."""
        await self._inner.aclose()


class _Nowhere(httpx.AsyncBaseTransport):
    """A transport that sends nothing."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        raise httpx.UnsupportedProtocol("nothing is sent in a simulation", request=request)


def _value(response: Any) -> Any:
    """Return a response as JSON where its text is JSON."""
    if not isinstance(response, str):
        return response
    try:
        return wellformed.loads(response)
    except (ValueError, RecursionError):
        return response
