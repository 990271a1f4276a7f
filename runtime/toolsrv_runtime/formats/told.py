"""What chat models are told of responses and of what was tried, as JSON. Asks nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from toolsrv_catalogs.text import clean
from toolsrv_runtime.calls.compress import Budget, compressed
from toolsrv_runtime.engine.base import Engine, Piece
from toolsrv_runtime.formats.base import Step

_RESPONSES = 8
"""So many responses as long as may be fill a context."""

_TOKEN = 8
"""Characters that a token of JSON hardly ever exceeds."""

_NO_NAME = re.compile(r"[^\w^.-]+")
_END = re.compile(r"</(?=\s*response)", re.IGNORECASE)
_DIVERSITY = (
    "From this point these calls were already tried, with these responses:\n{tried}\n"
    "They did not lead to an answer. Choose something different now."
)


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


def fenced(step: Step) -> str:
    """Return a step's observation between marks that say where it comes from and where it ends.

    What looks like the end mark inside is written as JSON may write it too, so it ends nothing.
    """
    source = _NO_NAME.sub("_", clean(step.move.function, 80))
    inside = _END.sub(r"<\\/", step.observation)
    return f'<response from="{source}">\n{inside}\n</response>'


def diversity(steps: Sequence[Step]) -> str:
    """Return the message that another step is wanted than those tried before."""
    rows = [
        {"name": s.move.function, "arguments": s.move.arguments, "response": s.observation}
        for s in steps
    ]
    return _DIVERSITY.format(tried=json.dumps(rows, ensure_ascii=False, indent=1))
