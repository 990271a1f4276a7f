"""One OpenAI-compatible server: its models, its capabilities, and its replies."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import httpx

from toolsrv_catalogs.text import clean
from toolsrv_registry import wellformed
from toolsrv_runtime.calls.compress import count_text
from toolsrv_runtime.contract.models import ChatReply, ChatRequest
from toolsrv_runtime.errors import RefusedLengthError, ServerError
from toolsrv_runtime.models.openai import Endpoint
from toolsrv_runtime.models.openai import messages as bodies
from toolsrv_runtime.models.openai.http import (
    LIST_SILENCE_S,
    HttpClient,
    context_length_error,
    iter_lines,
    read_response,
)
from toolsrv_runtime.models.openai.messages import CallMode, StreamedReply
from toolsrv_runtime.stop import Stop

OnReceived = Callable[[], None]
SilenceLimit = Callable[[], float]


class OpenAIServer:
    """One server, safe for threads. ``model`` "" takes the first that it names.

    ``silence_s`` is how long it may say nothing.
    """

    def __init__(self, place: Endpoint, *, model: str, key: str, silence_s: float) -> None:
        self.place = place
        self.model = model
        self._contexts: dict[str, int] = {}
        self._refused = frozenset[str]()
        self.mode: CallMode | None = None
        self._http = HttpClient(place, key=key, silence_s=silence_s)
        self._detecting = threading.Lock()

    @property
    def context(self) -> int | None:
        """Tokens that prompt and reply may have together, where the list of models tells."""
        return self._contexts.get(self.model)

    def models(self, *, stop: Stop, within_s: float = LIST_SILENCE_S) -> tuple[str, ...]:
        """Return the ids of the server's models, and take the first where none is named.

        It is given ``within_s`` seconds at most.

        Raises:
            ServerError: the server does not answer, or with something else, or lists other models
                than the one that is named.
        """
        found = self._http.send("/models", self._read_models, stop=stop, within_s=within_s) or ()
        if not self.model and found:
            self.model = found[0]
        if found and not _is_listed(self.model, found):
            more = f" and {len(found) - _LISTED} more" if len(found) > _LISTED else ""
            raise self._http.error(
                f"has no model {self.model!r}; it has {', '.join(found[:_LISTED])}{more}",
                hint=f"name one of these behind the address: {self.place.url}#{found[0]}",
                again=False,
            )
        return found

    def detect(self, *, stop: Stop, within_s: float = math.inf) -> CallMode | None:
        """Return how this server holds a call in shape; asked once. None when stopped.

        It is given ``within_s`` seconds at most, for all that it is asked.

        Raises:
            ServerError: the server does not answer at all.
        """
        end = time.monotonic() + within_s
        while not self._detecting.acquire(timeout=_STOP_CHECK_S):
            if stop.is_set():
                return None
            if time.monotonic() >= end:
                raise self._http.error(f"has not told within {within_s:.3g} s what it offers")
        try:
            if self.mode is None:
                self.mode = self._probe(stop, end)
            return self.mode
        finally:
            self._detecting.release()

    def reply(
        self, request: ChatRequest, *, stop: Stop, patience: SilenceLimit = lambda: math.inf
    ) -> ChatReply | None:
        """Return the reply; see ``ChatModel.reply``.

        ``patience`` says, before each thing that is asked, for how many seconds it may be silent.
        """
        if not self.model:
            self.models(stop=stop, within_s=min(LIST_SILENCE_S, patience()))
        mode = self.mode or self.detect(stop=stop, within_s=patience())
        if mode is None:
            return None
        body = bodies.write_request(request, mode, self.model)
        try:
            return self._ask(request, body, mode, stop, patience)
        except RefusedLengthError as error:
            room = self._contexts.get(self.model, 0)
            if error.context or not room:
                raise  # its own words tell how much has room, or nothing does
            said = f"{error.message} (it has room for {room} tokens)"
            raise RefusedLengthError(said, hint=error.hint, context=room) from None

    def _probe(self, stop: Stop, end: float) -> CallMode | None:
        """Return the first mode in which a small request brings the call it asks for.

        Until ``end`` (monotonic seconds) the server may be silent.

        An error status refuses the mode: servers answer 400, 422 or 500 to fields that they do not
        know. One that has nothing but 500 for all of them is out of order.
        """
        refusals = []
        for mode in bodies.PROBED_MODES:
            try:
                request, body = bodies.probe_request(), bodies.probe(mode, self.model)
                reply = self._ask(request, body, mode, stop, lambda: end - time.monotonic())
            except ServerError as error:
                refusals.append(error.status)
                if error.status not in _REFUSED_MODE or refusals == [500] * len(
                    bodies.PROBED_MODES
                ):
                    raise
                continue
            if reply is None:
                return None
            if bodies.is_probe_call(reply):
                return mode
        return "none"

    def _ask(
        self,
        request: ChatRequest,
        body: dict[str, Any],
        mode: CallMode,
        stop: Stop,
        patience: SilenceLimit,
    ) -> ChatReply | None:
        """Return the reply to a body, without the optional fields that the server refuses."""
        optional = bodies.optional_fields(request, mode)
        while True:
            sent = {key: value for key, value in body.items() if key not in self._refused}
            try:
                return self._exchange(request, sent, mode, stop, patience())
            except ServerError as error:
                refused = _named(error, [field for field in optional if field in sent])
                if not refused:
                    raise
                self._refused |= refused

    def _exchange(
        self,
        request: ChatRequest,
        body: dict[str, Any],
        mode: CallMode,
        stop: Stop,
        within_s: float,
    ) -> ChatReply | None:
        limit = 4 * int(body["max_tokens"]) + 1000  # pieces of a reply that ends

        async def receive(response: httpx.Response, heard: OnReceived) -> StreamedReply:
            return await self._gather(response, heard, limit)

        gathered = self._http.send(
            "/chat/completions", receive, stop=stop, body=body, within_s=within_s
        )
        return None if gathered is None else gathered.reply(request, mode)

    async def _gather(
        self, response: httpx.Response, heard: OnReceived, limit: int
    ) -> StreamedReply:
        gathered, done = StreamedReply(), False
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == "text/event-stream":
            async for line in iter_lines(response):
                field, _, data = line.partition(b":")
                if field != b"data":
                    continue  # an empty line, or a comment that keeps the connection open
                heard()
                done = data.strip() == b"[DONE]"
                if done:
                    break
                if not gathered.event(data.decode("utf-8", "replace")):
                    raise self._http.error("sent an event that is not JSON")
                if gathered.error or gathered.pieces > limit:
                    break
        elif kind == "application/json":
            whole = (await read_response(response)).decode("utf-8", "replace")
            if not gathered.event(whole):
                raise self._http.error("answered with something that is not JSON")
            done = True
        else:
            raise self._http.error(f"answered with {kind or 'nothing'!r}, no reply", hint=_ADDRESS)
        self._check(gathered, limit, done=done)
        return gathered

    def _check(self, gathered: StreamedReply, limit: int, *, done: bool) -> None:
        if too_long := context_length_error(self.place.name, clean(gathered.error, 300)):
            raise too_long
        if gathered.error:
            raise self._http.error(f"broke off: {clean(gathered.error, 300)}")
        if gathered.pieces > limit:
            raise self._http.error(f"went on after {limit} pieces of a reply")
        if not done and not gathered.finish:
            raise self._http.error(f"cut the reply after {count_text(gathered.pieces, 'piece')}")
        if not gathered.pieces and not gathered.finish:
            raise self._http.error("answered without a reply", hint=_ADDRESS)

    async def _read_models(self, response: httpx.Response, heard: OnReceived) -> tuple[str, ...]:
        del heard
        try:
            entries = wellformed.loads(await read_response(response))["data"]
            found = {clean(str(one["id"]), 200): one.get("max_model_len") for one in entries}
        except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
            raise self._http.error(
                "answered with no list of models", hint=_ADDRESS, again=False
            ) from None
        self._contexts = {key: room for key, room in found.items() if isinstance(room, int)}
        return tuple(found)


_ADDRESS = "give the address of the API, for example http://127.0.0.1:8000/v1"
_REFUSED_MODE = frozenset({400, 404, 405, 415, 422, 500, 501})

_STOP_CHECK_S = 0.05
"""How often a call looks at its Stop while another one asks what the server offers."""

_LISTED = 10
"""Models of a server that an error names."""


def _named(error: ServerError, fields: Sequence[str]) -> frozenset[str]:
    """Return the fields of a body that a refusal is about.

    Servers name the field that they do not take; of ``response_format`` some say it in other
    words, and name a keyword of the schema.
    """
    if error.status not in (400, 422):
        return frozenset()
    named = {field for field in fields if field in error.message}
    if not named and "response_format" in fields:
        named = {"response_format"}
    return frozenset(named)


def _is_listed(model: str, found: Sequence[str]) -> bool:
    """Whether a server lists a model, with the tag or provider behind a colon left to it."""
    return not {model, f"{model}:latest", model.rpartition(":")[0]}.isdisjoint(found)
