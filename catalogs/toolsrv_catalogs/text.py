"""Making text from outside harmless before it reaches a model's context.

Knows characters and lengths; does not know which text it is given or what becomes of it.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple

DESCRIPTION_LIMIT = 8192
PARAMETER_DESCRIPTION_LIMIT = 2048
NAME_LIMIT = 256

# C0 and C1 controls but tab and newline; soft hyphen; zero-width characters, bidi marks,
# embeddings, overrides and isolates; invisible operators; byte-order mark; interlinear
# annotation; lone surrogates; tag characters (text that is invisible but that a model reads).
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e0fff]"
)


class Cleaned(NamedTuple):
    """A clean text, how many hidden characters went, and whether its end went too."""

    text: str
    hidden: int
    cut: bool


def cleaned(text: str, limit: int) -> Cleaned:
    """Return ``text`` without hidden characters, cut to ``limit`` characters, and what that took.

    Newlines (CRLF counts as one) and tabs stay; the rest keeps its order. Idempotent.
    """
    head = text[: 4 * limit]
    if "\r" in head:
        head = head.replace("\r\n", "\n").replace("\r", "\n")
    shown, hidden = _HIDDEN.subn("", head)
    return Cleaned(shown[:limit], hidden, len(shown) > limit or len(text) > 4 * limit)


def clean(text: str, limit: int) -> str:
    """Return ``text`` as ``cleaned`` leaves it."""
    return cleaned(text, limit).text


def escaped(text: str) -> str:
    """Return JSON text with its hidden characters as JSON escapes: the same value."""
    return _HIDDEN.sub(lambda one: json.dumps(one[0])[1:-1], text)
