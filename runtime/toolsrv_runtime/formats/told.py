"""What chat models are told of responses and of what was tried, as JSON. Asks nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from toolsrv_catalogs.text import clean
from toolsrv_runtime.formats.base import Step

_DIVERSITY = (
    "From this point these calls were already tried, with these responses:\n{tried}\n"
    "They did not lead to an answer. Choose something different now."
)


def observation(response: Any, error: str, limit: int) -> str:
    """Return a response as JSON text of at most ``limit`` characters; an error as an object."""
    if error:
        response = {"error": error} if response is None else {"error": error, "body": response}
    text = clean(json.dumps(response, ensure_ascii=False), 100_000)
    return text if len(text) <= limit else f"{text[:limit]}..."


def diversity(steps: Sequence[Step]) -> str:
    """Return the message that another step is wanted than those tried before."""
    rows = [
        {"name": s.move.function, "arguments": s.move.arguments, "response": s.observation}
        for s in steps
    ]
    return _DIVERSITY.format(tried=json.dumps(rows, ensure_ascii=False, indent=1))
