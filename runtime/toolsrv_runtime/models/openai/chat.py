"""``OpenAIChat``: one chat model over several servers with failover, loaded from settings.

A failing server is left out for a while, longer each time, and the reply is requested from the next
one. The API key comes from TOOLSRV_ENGINE_KEY or the keyring.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from pydantic import BaseModel, ConfigDict

from toolsrv_registry.errors import UsageError
from toolsrv_runtime.contract.models import ChatReply, ChatRequest
from toolsrv_runtime.errors import ServerError
from toolsrv_runtime.models.openai import SILENCE_S, parse_endpoints
from toolsrv_runtime.models.openai.http import LIST_SILENCE_S
from toolsrv_runtime.models.openai.messages import CallMode
from toolsrv_runtime.models.openai.server import OpenAIServer
from toolsrv_runtime.profiles import REMOTE, Profile
from toolsrv_runtime.stop import Stop

TRIES = 4
"""Of one reply, at one server; each further server adds one."""

LONGEST_WAIT_S = 30.0
"""A reply waits no longer for a server that is left out; that ends with its error."""

MOST_PATIENCE_S = 30.0
"""How long one that has not answered yet may be silent while another is well: a model that is
being loaded goes on loading, and is asked again."""

_FIRST_REST_S = 0.5
_REFUSED_REST_S = 300.0
_STEP_S = 0.05


@dataclass(slots=True)
class _Health:
    """Of one server: failures in a row, and until when it is left out (monotonic seconds)."""

    server: OpenAIServer
    failures: int = 0
    out_until: float = 0.0
    error: ServerError | None = None


class OpenAIChat:
    """A ``ChatModel`` over one or more servers; any thread may ask."""

    def __init__(
        self, servers: Sequence[OpenAIServer], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._all = [_Health(server) for server in servers]
        self._clock = clock
        self._turn = 0
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """The models and their servers."""
        return ", ".join(f"{one.server.model} at {one.server.place.name}" for one in self._all)

    @property
    def models(self) -> str:
        """The models without their servers, each once: what stays when replicas come and go."""
        return ", ".join(dict.fromkeys(one.server.model for one in self._all))

    @property
    def syntax(self) -> str:
        """How the servers hold calls in shape (``messages.CallMode``), each once; "" before a reply."""
        return ", ".join(dict.fromkeys(one.server.mode for one in self._all if one.server.mode))

    @property
    def context(self) -> int | None:
        """The least that a server says it takes; None where one of them does not say."""
        known = [one.server.context for one in self._all]
        found = [one for one in known if one is not None]
        return min(found) if found and len(found) == len(known) else None

    def count(self, request: ChatRequest) -> int | None:
        """Return None: only the server can count."""
        del request
        return None

    def check(self, *, stop: Stop, within_s: float = math.inf) -> None:
        """Ask every server for its models, so that a wrong address is told at once.

        All are asked within ``within_s`` seconds: one that is silent leaves the rest their share.

        Raises:
            ServerError: none of them answers; a server without a list of models does, where the
                model is named.
        """
        end = self._clock() + within_s
        for left, health in zip(range(len(self._all), 0, -1), self._all, strict=True):
            share = min((end - self._clock()) / left, LIST_SILENCE_S)
            try:
                health.server.models(stop=stop, within_s=share)
            except ServerError as error:
                if not (error.status in (404, 405, 501) and health.server.model):
                    self._leave_out(health, error)
        errors = [one.error for one in self._all if one.error is not None]
        if len(errors) == len(self._all):
            raise errors[0]

    def reply(self, request: ChatRequest, *, stop: Stop) -> ChatReply | None:
        """Return the reply of the next server that gives one; see ``ChatModel.reply``."""
        last: ServerError | None = None
        for _ in range(TRIES + len(self._all) - 1):
            health = self._next()
            wait = health.out_until - self._clock()
            if wait > LONGEST_WAIT_S and health.error is not None:
                raise health.error
            if not self._pause(wait, stop):
                return None
            begun = self._clock()
            try:
                reply = health.server.reply(
                    request, stop=stop, patience=partial(self._patience, health, stop)
                )
            except ServerError as error:
                last = error
                self._leave_out(health, error, lost_s=self._clock() - begun)
                if error.status in (400, 413, 422):  # ours to mend, the same everywhere
                    raise
                continue
            health.failures, health.error = 0, None
            return reply
        raise last or ServerError("no model server is named", hint="give one with --model URL")

    def close(self) -> None:
        """Do nothing: no connection stays open between replies."""

    def _next(self) -> _Health:
        """Return the next in turn that is well, else the one that is well again soonest."""
        with self._lock:
            count, now = len(self._all), self._clock()
            for step in range(count):
                health = self._all[(self._turn + step) % count]
                if health.out_until <= now:
                    self._turn = (self._turn + step + 1) % count
                    return health
            return min(self._all, key=lambda one: one.out_until)

    def _patience(self, health: _Health, stop: Stop) -> float:
        """Return for how many seconds a server may be silent; the last one that is well, always.

        Beside others it has its share of the time left, and less after each failure, so that a
        silent one does not take the time of those that would answer.
        """
        now = self._clock()
        well = sum(one.out_until <= now for one in self._all if one is not health)
        if not well:
            return math.inf
        share = stop.left() / (well + 1) / (health.failures + 1)
        return share if health.server.mode else min(share, MOST_PATIENCE_S)

    def _leave_out(self, health: _Health, error: ServerError, *, lost_s: float = 0.0) -> None:
        """Leave a server out for a while; beside others for as long as it kept a reply waiting."""
        health.error = error
        if error.again:
            rest = max(error.wait_s, _FIRST_REST_S * 2 ** min(health.failures, 6))
            if len(self._all) > 1:
                rest = max(rest, min(lost_s, LONGEST_WAIT_S))
        elif error.status in (400, 413, 422):
            rest = 0.0
        else:
            rest = _REFUSED_REST_S
        health.failures += 1
        health.out_until = self._clock() + rest

    def _pause(self, seconds: float, stop: Stop) -> bool:
        """Wait; False when ``stop`` was set meanwhile."""
        end = self._clock() + seconds
        while (left := end - self._clock()) > 0:
            if stop.is_set():
                return False
            time.sleep(min(left, _STEP_S))
        return not stop.is_set()


KEY_VARIABLE = "TOOLSRV_ENGINE_KEY"
KEYRING = ("toolsrv", "engine")
"""Service and user name of the key in the keyring."""

INSPECT_S = 30.0
"""How long a server may take to show what it offers, where a person waits for that alone."""


class ServerInfo(BaseModel):
    """What a server said of itself. ``mode`` is how it holds calls in shape (``messages.CallMode``).

    ``error`` says why the rest is missing, "" where nothing is.
    """

    model_config = ConfigDict(frozen=True)

    url: str
    models: tuple[str, ...] = ()
    model: str = ""
    mode: CallMode | None = None
    error: str = ""
    hint: str = ""


def load_servers(
    urls: str, *, silence_s: float = SILENCE_S, within_s: float = math.inf
) -> tuple[OpenAIChat, Profile]:
    """Return the servers at ``urls`` (several separated by commas) as one chat model. Blocks.

    ``within_s`` is how long all of them may
    take to name their models: the time of the solve that waits for it.

    Raises:
        UsageError: an address or the key is not acceptable.
        ServerError: none of them answers.
    """
    key = api_key()
    servers = [
        OpenAIServer(place, model=place.model, key=key, silence_s=silence_s)
        for place in parse_endpoints(urls)
    ]
    chat = OpenAIChat(servers)
    chat.check(stop=Stop(), within_s=within_s)
    return chat, REMOTE


def inspect_servers(
    urls: str,
    *,
    within_s: float = INSPECT_S,
    say: Callable[[str], None] = lambda _: None,
) -> tuple[ServerInfo, ...]:
    """Return what the servers at ``urls`` are and offer; asks each for a few short replies.

    ``within_s`` is how many seconds these may take at each. ``say`` is told, in words, what is
    waited for.

    Raises:
        UsageError: an address or the key is not acceptable.
    """
    key = api_key()
    servers = [
        OpenAIServer(place, model=place.model, key=key, silence_s=SILENCE_S)
        for place in parse_endpoints(urls)
    ]
    return tuple(_inspect(one, within_s, say) for one in servers)


def _inspect(server: OpenAIServer, within_s: float, say: Callable[[str], None]) -> ServerInfo:
    models: tuple[str, ...] = ()
    name = server.place.name
    list_s = min(within_s, LIST_SILENCE_S)
    try:
        say(f"asking {name} for its models, {list_s:g} s at most")
        models = server.models(stop=Stop(), within_s=list_s)
        say(f"asking {name} for a short reply, {within_s:g} s at most")
        mode = server.detect(stop=Stop(), within_s=within_s)
    except ServerError as error:
        return ServerInfo(
            url=server.place.url,
            models=models,
            model=server.model,
            error=error.message,
            hint=error.hint,
        )
    return ServerInfo(url=server.place.url, models=models, model=server.model, mode=mode)


def api_key() -> str:
    """Return the key for model servers, "" for none.

    Raises:
        UsageError: it has characters that no HTTP header may have.
    """
    key = os.environ.get(KEY_VARIABLE, "") or _from_keyring()
    if key and not (key.isascii() and key.isprintable() and " " not in key):
        raise UsageError(
            "the API key for model servers has characters that no header may have",
            hint=f"set {KEY_VARIABLE} to the key alone, without quotes, blanks or line ends",
        )
    return key


def _from_keyring() -> str:
    try:
        import keyring  # noqa: PLC0415 - slow, and for those who have a server
        import keyring.errors  # noqa: PLC0415
    except ImportError:
        return ""
    try:
        return keyring.get_password(*KEYRING) or ""
    except keyring.errors.KeyringError:  # no keyring on this machine, or it stays locked
        return ""
