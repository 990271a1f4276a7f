"""Simulate responses of APIs that cannot be called; off unless a person turns it on.

``SchemaSimulator`` generates values in the shape of a response schema, the same for the same seed
and call. ``ModelSimulator`` prompts a model in MirrorAPI's format. Every result has the source
``simulated``. Arguments and policy are checked as for a live call, and nothing is sent. Knows no
settings.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import random
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import httpx

from toolsrv_registry import wellformed
from toolsrv_registry.api import Api, Parameter
from toolsrv_registry.errors import ToolsrvError
from toolsrv_registry.names import standardize
from toolsrv_runtime.calls.caller import Caller, Network
from toolsrv_runtime.calls.exchange import Exchange
from toolsrv_runtime.calls.request import OutgoingRequest
from toolsrv_runtime.calls.result import CallReadiness, CallResult, Consent, Spool
from toolsrv_runtime.contract.models import (
    ChatModel,
    ChatRequest,
    Engine,
    Piece,
    Sampling,
    SystemMessage,
    UserMessage,
)
from toolsrv_runtime.errors import ModelError
from toolsrv_runtime.outcome import Source
from toolsrv_runtime.profiles import Profile
from toolsrv_runtime.stop import Stop
from toolsrv_runtime.templates.rendering import render_chat

MIRROR_INSTRUCTIONS = (
    "You stand in for an API server. The user shows the API's document and a request. Invent the "
    "response that this API would give to it: plausible, in keeping with the document and with the "
    "values of the request. Reply with one JSON object and nothing else, with two keys: error, "
    "empty where the request succeeds, and response, the body."
)
MIRROR_TEMPERATURE = 0.1
MIRROR_MAX_TOKENS = 2048
MIRROR_SEED = 42
"""How the reference samples."""

_HIDDEN = "toolbench_key"
_PLAIN_REPLY = re.compile(r'"error":\s*"([^"]*)",\s*"response":\s*"(.*)', re.DOTALL)
_REASONED_REPLY = re.compile(
    r'"mechanism_of_the_api"\s*:\s*".*?",\s*"error"\s*:\s*"(.*?)",\s*"response"\s*:\s*"(.*)',
    re.DOTALL,
)


def mirror_document(api: Api, *, normalised: bool = False) -> dict[str, Any]:
    """Return an API as MirrorAPI reads it; ``normalised`` gives its name as MirrorAPI-Cache does."""
    return {
        "api_name": api.id.rpartition("/")[2] if normalised else api.name,
        "api_description": api.description,
        "required_parameters": [_parameter(one) for one in api.required],
        "optional_parameters": [_parameter(one) for one in api.optional],
        "tool_description": api.tool_description,
        "tool_name": api.tool,
        "tool_category": api.category,
    }


def mirror_prompt(doc: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    """Return what MirrorAPI is asked."""
    request = {key: value for key, value in arguments.items() if key != _HIDDEN}
    return f"API doc:\n{dict(doc)}\n\nRequest:\n{request}"


def parse_mirror_reply(text: str) -> tuple[Any, Any] | None:
    """Return the error and the response that a reply holds, None where it holds neither.

    A broken reply is read as far as it goes: the error up to a quote, the response to the end.
    """
    try:
        value = wellformed.loads(text)
    except (ValueError, RecursionError):
        found = (_REASONED_REPLY if "mechanism_of_the_api" in text else _PLAIN_REPLY).search(text)
        return None if found is None else (found[1], found[2])
    if not isinstance(value, dict) or "error" not in value or "response" not in value:
        return None
    return value["error"], value["response"]


def _parameter(one: Parameter) -> dict[str, Any]:
    return {
        "name": one.name,
        "type": one.type,
        "description": one.description,
        "default": one.default,
    }


_LIST = re.compile(r"list of (\w+)(?: with length (\d{1,9}))?")
_LENGTH = "_list_length"
_ITEMS = 3
_MOST_ITEMS = 20
_DEPTH = 32
_VALUES = 1_000
"""Values of a response from which on its lists get no further items."""

_WORDS = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "harbor", "indigo", "jade")


def generate_response(
    schema: Any, arguments: Mapping[str, Any], rng: random.Random, stop: Stop | None = None
) -> Any:
    """Return a value of the schema's shape; a key that is an argument's has the argument's value.

    Lists of lists grow no further than ``_VALUES``, nor once ``stop`` is set: those that are left
    have one item. Linear in the schema.
    """
    given = {standardize(key): value for key, value in arguments.items()}
    return _Generator(given, rng, stop or Stop()).value(schema)


def default_schema(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema for an API that has none: its arguments come back, with a result."""
    return {**dict.fromkeys(arguments, "str"), "result": "str"}


class _Generator:
    """Makes the values of one response, and counts them."""

    def __init__(self, given: Mapping[str, Any], rng: random.Random, stop: Stop) -> None:
        self._given = given
        self._rng = rng
        self._stop = stop
        self._made = 0

    def value(self, schema: Any, key: str = "", depth: int = 0) -> Any:
        """Return a value for a part of the schema that stands under ``key``."""
        self._made += 1
        if depth > _DEPTH:
            return None
        if isinstance(schema, dict):
            return {
                name: self.value(one, name, depth + 1)
                for name, one in schema.items()
                if name != _LENGTH
            }
        if isinstance(schema, list):
            return self._items(schema, key, depth)
        if standardize(key) in self._given:
            return self._given[standardize(key)]
        return self._leaf(str(schema), key.lower())

    def _items(self, schema: list[Any], key: str, depth: int) -> list[Any]:
        if not schema:
            return []
        first = schema[0]
        if isinstance(first, str) and (_LIST.fullmatch(first) or first == "empty list"):
            made = self._leaf(first, key.lower())
            return made if isinstance(made, list) else [made]
        wanted = first.get(_LENGTH) if isinstance(first, dict) else None
        count = wanted if isinstance(wanted, int) else self._rng.randint(1, _ITEMS)
        return [self.value(first, key, depth + 1) for _ in self._up_to(count)]

    def _up_to(self, count: int) -> Iterator[int]:
        """Yield a number for each item of a list, as many as there is room for: one, at least."""
        for number in range(min(count, _MOST_ITEMS)):
            if number and (self._made >= _VALUES or self._stop.is_set()):
                return
            yield number

    def _leaf(self, word: str, key: str) -> Any:
        if found := _LIST.fullmatch(word):
            items: list[Any] = []
            for _ in self._up_to(int(found[2] or _ITEMS)):
                self._made += 1
                items.append(self._leaf(found[1], key))
            return items
        match word:
            case "int":
                return self._rng.randint(1, 1_000)
            case "float":
                return round(self._rng.uniform(0, 1_000), 2)
            case "bool":
                return self._rng.random() < 0.5
            case "NoneType":
                return None
            case "empty list":
                return []
            case _:
                return _text(key, self._rng)


def _text(key: str, rng: random.Random) -> str:
    word, number = rng.choice(_WORDS), rng.randint(100, 999)
    if "url" in key or "link" in key:
        return f"https://example.com/{word}/{number}"
    if "mail" in key:
        return f"{word}@example.com"
    if "date" in key or "time" in key or key.endswith("_at"):
        return str(dt.date(2024, 1, 1) + dt.timedelta(days=number))
    if key == "id" or key.endswith("_id"):
        return f"{word}-{number}"
    return f"{word} {rng.choice(_WORDS)}"


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
        shape = schema or default_schema(arguments)
        rng = random.Random(key)  # noqa: S311 - to be repeated
        return Simulated(generate_response(shape, arguments, rng, stop))


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
        text = self._reply(mirror_prompt(mirror_document(api), arguments), stop)
        said = parse_mirror_reply(text.rpartition("</think>")[2].strip())
        if said is None or not any(said):
            return Simulated(None, "the model that simulates gave no response")
        error, response = said
        return Simulated(_value(response), str(error or ""))

    def _reply(self, message: str, stop: Stop) -> str:
        model, profile = self._load()
        if isinstance(model, ChatModel):
            request = ChatRequest(
                (SystemMessage(MIRROR_INSTRUCTIONS), UserMessage(message)),
                max_tokens=MIRROR_MAX_TOKENS,
                temperature=MIRROR_TEMPERATURE,
                seed=MIRROR_SEED,
            )
            reply = model.reply(request, stop=stop)
            return "" if reply is None else reply.text
        if profile.format == "compact":
            raise ModelError(
                f"{model.name} is too small to simulate an API",
                hint="name another with the setting simulate, or simulate by schema",
            )
        turns = (("system", (Piece(MIRROR_INSTRUCTIONS),)), ("user", (Piece(message),)))
        prompt = render_chat(
            turns, profile.chat_template, profile.chat_template_from, model.special_tokens
        )
        generated = model.generate(
            prompt,
            grammar=_GRAMMAR,
            max_tokens=min(MIRROR_MAX_TOKENS, model.context // 2),
            sampling=Sampling(MIRROR_TEMPERATURE, seed=MIRROR_SEED),
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
        self, api: Api, outgoing: OutgoingRequest, spool: Spool | None
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

    def ready(self, api: Api) -> CallReadiness:
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
