"""Models that are no GGUF file: a script, servers, or the MCP client's own.

Knows how the setting ``model`` spells them, and loads them; knows nothing of the other settings.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from toolsrv_registry.errors import UsageError

if TYPE_CHECKING:  # numpy, httpx and llama.cpp come along
    from toolsrv_runtime.contract.chat import ChatModel
    from toolsrv_runtime.engine.base import Engine
    from toolsrv_runtime.profile import Profile

SAMPLING = "sampling"
"""The MCP client's own model (``mcp_server.sampling``); only ``serve`` has a client."""

_SCRIPT = "scripted:"


def is_special(text: str) -> bool:
    """Whether a text names no GGUF file.

    Raises:
        UsageError: it is an address that cannot be used.
    """
    from toolsrv_runtime.models.openai.place import is_url, places

    if is_url(text):
        places(text)
        return True
    return text == SAMPLING or text.startswith(_SCRIPT)


def script_path(text: str) -> Path | None:
    """Return the file of a script, None where a text names none."""
    return Path(text.removeprefix(_SCRIPT)).expanduser() if text.startswith(_SCRIPT) else None


def load_special(
    model: str, *, engine_model: str, silence_s: float, within_s: float
) -> tuple[Engine | ChatModel, Profile]:
    """Return the model that a special spelling names, ready, and how it is run. Blocks.

    ``engine_model``, ``silence_s`` and ``within_s`` are for servers: see ``load_servers``.

    Raises:
        NotFoundError: there is no such script.
        DataError: the script cannot be used, or no server answers.
        UsageError: the client's model is meant, and there is no client.
    """
    if model == SAMPLING:
        raise UsageError(
            "the model 'sampling' is an MCP client's own, and here is no client",
            hint="use it with toolsrv serve; here name a GGUF file or a server with --model",
        )
    if (script := script_path(model)) is not None:
        from toolsrv_runtime.models.scripted import load_script

        return load_script(script)
    from toolsrv_runtime.models.openai.load import load_servers

    return load_servers(model, model=engine_model, silence_s=silence_s, within_s=within_s)
