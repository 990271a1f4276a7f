"""Chat models on OpenAI-compatible servers: vLLM, llama-server, Ollama, LM Studio.

``Endpoint`` is the address of one server. Imports no HTTP library.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from toolsrv_registry.errors import UsageError


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One server. ``url`` is the API's root without a slash at its end; ``name`` its host.

    ``model`` is the name of a model there, "" for the first that it names.
    """

    url: str
    name: str
    model: str = ""


SILENCE_S = 120.0
"""How long a server may say nothing."""


def is_url(text: str) -> bool:
    """Whether a text is meant as the address of a server."""
    return text.lower().startswith(("http://", "https://"))


def parse_endpoints(text: str) -> Sequence[Endpoint]:
    """Return the servers that a text names, several separated by commas.

    ``http://host:8000`` is short for ``http://host:8000/v1``; ``#NAME`` at the end chooses a model.

    Raises:
        UsageError: an address that cannot be used; the text of a password is not repeated.
    """
    found = [_endpoint(part.strip()) for part in text.split(",") if part.strip()]
    return list(dict.fromkeys(found))


def _endpoint(text: str) -> Endpoint:
    hint = "write http://host:port/v1 or http://host:port/v1#MODEL, several separated by commas"
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise UsageError(f"{text[:80]!r} is not an address", hint=hint) from None
    if parts.username is not None or parts.password is not None:
        raise UsageError(
            f"the address of {host!r} has a name or password in it",
            hint="put the key in TOOLSRV_ENGINE_KEY, where no log shows it",
        )
    if not is_url(text) or not host:
        raise UsageError(f"{text[:80]!r} is not an address of http or https", hint=hint)
    if parts.query:
        raise UsageError(f"{text[:80]!r} has more than a path after its host", hint=hint)
    shown = f"[{host}]" if ":" in host else host
    name = shown if port is None else f"{shown}:{port}"
    path = parts.path.rstrip("/") or "/v1"
    return Endpoint(f"{parts.scheme.lower()}://{name}{path}", name, unquote(parts.fragment))
