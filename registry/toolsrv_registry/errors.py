"""The error tree of toolsrv, and near matches for the hints of its messages.

Every error carries a message and a hint. Knows nothing about who raises or renders it. Pure.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence


class ToolsrvError(Exception):
    """Something went wrong that can be told in one line, with what to do next."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(ToolsrvError):
    """The request is off; repeating it unchanged cannot help."""


class NotFoundError(ToolsrvError):
    """A named thing does not exist."""


class DataError(ToolsrvError):
    """Something stored or shipped cannot be read."""


class DamagedError(DataError):
    """What a file holds is damaged."""


class MemoryShortError(DataError):
    """The program, or a model, needs more memory than there is."""


class BusyError(ToolsrvError):
    """Another process or run holds what is needed; trying again later can help."""


_NEAREST = 3
_LISTED_NAMES = 12
_SHORTENED_LENGTH = 80


def nearest_names(wanted: str, known: Iterable[str], *, cutoff: float = 0.5) -> list[str]:
    """Return up to three known names that resemble the wanted one, best first."""
    by_case = {name.casefold(): name for name in known}
    found = difflib.get_close_matches(wanted[:200].casefold(), by_case, n=_NEAREST, cutoff=cutoff)
    return [by_case[name] for name in found]


def list_names(found: Sequence[str]) -> str:
    """Return names as ``'a', 'b' or 'c'``, at most twelve of them."""
    shown = [repr(name) for name in found[:_LISTED_NAMES]]
    if len(found) > _LISTED_NAMES:
        return f"{', '.join(shown)} and {len(found) - _LISTED_NAMES} more"
    return f"{', '.join(shown[:-1])} or {shown[-1]}" if len(shown) > 1 else "".join(shown)


def shorten(text: str) -> str:
    """Return a text that fits into one line of a message."""
    return text if len(text) <= _SHORTENED_LENGTH else text[: _SHORTENED_LENGTH - 3] + "..."
