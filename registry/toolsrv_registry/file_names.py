"""Names of files that every system can write: Windows is the strictest of them."""

from __future__ import annotations

_FORBIDDEN = frozenset('/\\:*?"<>|')
_DEVICES = frozenset(
    ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"]
    + [f"{kind}{number}" for kind in ("COM", "LPT") for number in "0123456789¹²³"]
)


def portable_name(name: str) -> str:
    """Return ``name`` as one component of a path, unchanged where it is one on every system.

    A forbidden or control character becomes ``_``, dots and blanks at the end are dropped, and the
    name of a device, with or without a suffix, gets a ``_``. The result can be empty.
    """
    safe = "".join("_" if one in _FORBIDDEN or one < " " or one == "\x7f" else one for one in name)
    safe = safe.rstrip(". ")
    stem, dot, suffix = safe.partition(".")
    return f"{stem}_{dot}{suffix}" if stem.rstrip().upper() in _DEVICES else safe
