"""From settings to a chat model on OpenAI-compatible servers, and what such a server is.

The counterpart of ``gguf_models.py`` for addresses. The API key is taken from the environment or the
keyring when it is needed, and handed to the servers only.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable

from pydantic import BaseModel, ConfigDict

from toolsrv_registry.errors import UsageError
from toolsrv_runtime.errors import ServerError
from toolsrv_runtime.models.openai.body import Mode
from toolsrv_runtime.models.openai.http import LIST_SILENCE_S
from toolsrv_runtime.models.openai.place import places
from toolsrv_runtime.models.openai.server import Server
from toolsrv_runtime.models.openai.servers import OpenAIChat
from toolsrv_runtime.profile import REMOTE, Profile
from toolsrv_runtime.stop import Stop

KEY_VARIABLE = "TOOLSRV_ENGINE_KEY"
KEYRING = ("toolsrv", "engine")
"""Service and user name of the key in the keyring."""

SILENCE_S = 120.0

INSPECT_S = 30.0
"""How long a server may take to show what it offers, where a person waits for that alone."""


class ServerInfo(BaseModel):
    """What a server said of itself. ``mode`` is how it holds calls in shape (``body.Mode``).

    ``error`` says why the rest is missing, "" where nothing is.
    """

    model_config = ConfigDict(frozen=True)

    url: str
    models: tuple[str, ...] = ()
    model: str = ""
    mode: Mode | None = None
    error: str = ""
    hint: str = ""


def load_servers(
    urls: str, *, model: str = "", silence_s: float = SILENCE_S, within_s: float = math.inf
) -> tuple[OpenAIChat, Profile]:
    """Return the servers at ``urls`` (several separated by commas) as one chat model. Blocks.

    ``model`` "" takes the first that each server names. ``within_s`` is how long all of them may
    take to name their models: the time of the solve that waits for it.

    Raises:
        UsageError: an address or the key is not acceptable.
        ServerError: none of them answers.
    """
    key = api_key()
    servers = [Server(place, model=model, key=key, silence_s=silence_s) for place in places(urls)]
    chat = OpenAIChat(servers)
    chat.check(stop=Stop(), within_s=within_s)
    return chat, REMOTE


def inspect_servers(
    urls: str,
    *,
    model: str = "",
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
    servers = [Server(place, model=model, key=key, silence_s=SILENCE_S) for place in places(urls)]
    return tuple(_inspect(one, within_s, say) for one in servers)


def _inspect(server: Server, within_s: float, say: Callable[[str], None]) -> ServerInfo:
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
