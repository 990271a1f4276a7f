"""Responses as a model reads them: JSON text of a bounded size."""

from __future__ import annotations

from typing import Any

from toolsrv_runtime.calls.compress import Budget, compressed
from toolsrv_runtime.engine.base import Engine, Piece

_RESPONSES = 8
"""So many responses as long as may be fill a context."""

_TOKEN = 8
"""Characters that a token of JSON hardly ever exceeds."""


def budget(engine: Engine, tokens: int) -> Budget:
    """Return the room of a response: at most ``tokens``, and an eighth of the model's context."""
    return Budget(
        min(tokens, engine.context // _RESPONSES),
        lambda text: engine.count((Piece(text),)),
        _TOKEN,
    )


def observation(response: Any, error: str, room: Budget, schema: Any = None) -> str:
    """Return a response as JSON text; an error as an object, to which no schema applies."""
    if not error:
        return compressed(response, room, schema)
    said = {"error": error} if response is None else {"error": error, "body": response}
    return compressed(said, room)
