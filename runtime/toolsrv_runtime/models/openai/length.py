"""Whether a server's error means that a conversation is too long, and how much has room.

Servers say it in many ways: a code of its own, status 413, words. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from toolsrv_runtime.errors import RefusedLengthError

_KINDS = frozenset({"context_length_exceeded", "exceed_context_size_error"})
_STATUSES = frozenset({0, 400, 422, 500})
"""With which the words may come; 0 stands for an error in the middle of a good answer."""

_WORDS = re.compile(
    r"(?:context|sequence|input|prompt) (?:length|size|window)|(?:prompt|input) is too long",
    re.IGNORECASE,
)
_ROOM = re.compile(r"context (?:length|size|window)\D{0,40}?(\d{3,8})(?!\d)", re.IGNORECASE)


def refused_length(
    server: str, said: str, *, status: int = 0, kinds: Collection[str] = ()
) -> RefusedLengthError | None:
    """Return the error that ``said`` means where it means that; ``kinds`` are its code and type."""
    words = status in _STATUSES and _WORDS.search(said) is not None
    if not (words or not _KINDS.isdisjoint(kinds) or status == 413):
        return None
    room = _ROOM.search(said)
    return RefusedLengthError(
        f"the model of {server} refuses the conversation as too long: {said or status}",
        hint="start the server with a larger context, or offer fewer APIs: --candidates",
        context=int(room[1]) if room else 0,
    )
