"""Pieces of grammars in Lark's notation, as llguidance reads it. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

MOST_CHUNKS = 2_000

# Numbers and names are whole; the owner is free of his "'s".
_CHUNK = re.compile(
    r"\d+(?:[.,:]\d+)*|[^\W\d_]+(?:['’](?!s\b)[^\W\d_]+)*|\s+|.", re.DOTALL | re.IGNORECASE
)


def literal(text: str) -> str:
    """Return ``text`` as a Lark string."""
    return json.dumps(text, ensure_ascii=False)


def choice(options: Iterable[str]) -> str:
    """Return the Lark expression that allows exactly ``options``."""
    return " | ".join(literal(option) for option in options)


def chunks(text: str) -> list[str]:
    """Return the text in pieces that a copy takes whole: words, digits, blanks, single signs."""
    return _CHUNK.findall(text)[:MOST_CHUNKS]
