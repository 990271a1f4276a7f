"""APIs by their full names: whoever writes a tool's name and an API's name means that API.

A name is known by its letters and digits alone, so that ``NHL Stats getDraft``, ``nhl_stats:
get_draft`` and ``getDraft for NHL Stats`` are one. Kept are 64-bit hashes of both orders, which
need no memory to speak of. Pure.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from toolsrv_registry.words import words

Keys = npt.NDArray[np.uint64]

# No catalog has longer names than some 25 words; a text of more is a task.
_MOST_WORDS = 30
# What may stand between the two names.
_JOINING = frozenset({"by", "for", "from", "in", "of", "on"})


def keys(tool: str, name: str) -> tuple[int, int]:
    """Return the keys of an API from the words of its tool's name and of its own."""
    return _key(f"{tool} {name}".split()), _key(f"{name} {tool}".split())


def may_be_a_name(text: str) -> bool:
    """Say whether a text is short enough for a name; cheap, and known before anything is read."""
    return len(text.split(maxsplit=_MOST_WORDS)) <= _MOST_WORDS


def called(known: Keys, text: str) -> list[int]:
    """Return the rows of ``known`` (n, 2) that the text names and nothing beside."""
    said = words(text) if may_be_a_name(text) else []
    if not 1 < len(said) <= _MOST_WORDS:
        return []
    wanted = {_key(said)}
    for at, word in enumerate(said[1:-1], start=1):
        if word in _JOINING:
            wanted.add(_key([*said[:at], *said[at + 1 :]]))
    return np.flatnonzero(np.isin(known, np.asarray(list(wanted), np.uint64)).any(axis=1)).tolist()


def _key(said: Sequence[str]) -> int:
    letters = "".join(said).encode("utf-8", "replace")
    return int.from_bytes(hashlib.blake2b(letters, digest_size=8).digest(), "little")
