"""Near matches and short listings for error hints. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

_NEAREST = 3
_SHOWN = 12
_LENGTH = 80


def nearest(wanted: str, known: Iterable[str], *, cutoff: float = 0.5) -> list[str]:
    """Return up to three known names that resemble the wanted one, best first."""
    by_case = {name.casefold(): name for name in known}
    found = difflib.get_close_matches(wanted[:200].casefold(), by_case, n=_NEAREST, cutoff=cutoff)
    return [by_case[name] for name in found]


def listed(found: Sequence[str]) -> str:
    """Return names as ``'a', 'b' or 'c'``, at most twelve of them."""
    shown = [repr(name) for name in found[:_SHOWN]]
    if len(found) > _SHOWN:
        return f"{', '.join(shown)} and {len(found) - _SHOWN} more"
    return f"{', '.join(shown[:-1])} or {shown[-1]}" if len(shown) > 1 else "".join(shown)


def short(text: str) -> str:
    """Return a text that fits into one line of a message."""
    return text if len(text) <= _LENGTH else text[: _LENGTH - 3] + "..."
