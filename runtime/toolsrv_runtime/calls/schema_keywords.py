"""Check the JSON Schema keywords ``format`` and ``pattern``.

A format refuses only values that cannot be meant: documents name formats loosely. Unknown formats
accept everything. Patterns are ECMA regular expressions, searched with the ``regex`` library for a
limited time; a pattern that cannot be compiled or is too slow is not decided. Pure.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from datetime import date
from functools import lru_cache
from typing import Any
from uuid import UUID

import regex  # type: ignore[import-untyped]

_SECONDS = 0.05
_LENGTH = 1_000
_KEPT = 1_000
_given_up: set[str] = set()
"""Patterns that took too long once; the next text would take as long."""
_ECMA = re.compile(r"\\(?P<escape>[dDwW])|\\.|(?P<open>\[)|(?P<close>\])|(?P<end>\$)", re.DOTALL)
_CLASSES = {"d": "0-9", "w": "A-Za-z0-9_"}


def pattern_matches(pattern: Any, text: str) -> bool | None:
    """Return whether a pattern is found in a text; None where that stays open."""
    compiled = _compiled(pattern) if isinstance(pattern, str) else None
    if compiled is None or pattern in _given_up:
        return None
    try:
        return compiled.search(text, timeout=_SECONDS) is not None
    except (TimeoutError, RecursionError, MemoryError):
        if len(_given_up) < _KEPT:
            _given_up.add(pattern)
        return None


@lru_cache(maxsize=1_000)
def _compiled(pattern: str) -> Any:
    if len(pattern) > _LENGTH:
        return None
    try:
        return regex.compile(_to_python_pattern(pattern))
    except (regex.error, RecursionError, OverflowError, ValueError):
        return None


def _to_python_pattern(pattern: str) -> str:
    r"""Return an ECMA pattern as one of ``regex``: its digits are ASCII, its ``$`` the very end."""
    inside = False

    def translate(found: re.Match[str]) -> str:
        nonlocal inside
        if found["open"]:
            inside = True
        elif found["close"]:
            inside = False
        elif found["end"] and not inside:
            return r"\Z"
        elif kind := found["escape"]:
            members = _CLASSES[kind.lower()]
            if kind.islower():
                return members if inside else f"[{members}]"
            return found[0] if inside else f"[^{members}]"
        return found[0]

    return _ECMA.sub(translate, pattern)


_TIME = r"([01]\d|2[0-3]):[0-5]\d(:([0-5]\d|60)([.,]\d+)?)?( ?(Z|[+-]\d\d(:?\d\d)?))?"
_CLOCK = re.compile(_TIME, re.ASCII | re.IGNORECASE)
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_MOMENT = re.compile(rf"(?P<day>\d{{4}}-\d\d-\d\d)[T ]{_TIME}", re.ASCII | re.IGNORECASE)
_EMAIL = re.compile(r"[^\s@]+@[^\s@]+|\"[^\"]+\"@[^\s@]+")
_URI = re.compile(r"[a-z][a-z0-9+.-]*:[^\s<>\"{}|\\^`]*", re.ASCII | re.IGNORECASE)
_HOST = re.compile(
    r"(?=.{1,253}\.?$)[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_-]+)*\.?", re.IGNORECASE
)
_INTEGERS = {f"int{bits}": (-(2 ** (bits - 1)), 2 ** (bits - 1)) for bits in (8, 16, 32, 64)}
_INTEGERS |= {f"uint{bits}": (0, 2**bits) for bits in (8, 16, 32, 64)}
"""Whole numbers by format: the least, and the first that is too large."""


def _is_day(text: str) -> bool:
    if not _DAY.fullmatch(text):
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _is_moment(text: str) -> bool:
    found = _MOMENT.fullmatch(text)
    return found is not None and _is_day(found["day"])


def _without_error(read: Callable[[str], object]) -> Callable[[str], bool]:
    def reads(text: str) -> bool:
        try:
            read(text)
        except ValueError:
            return False
        return True

    return reads


_CHECKS: dict[str, tuple[str, Callable[[str], bool]]] = {
    "date": ("a date (2026-01-31)", _is_day),
    "time": ("a time of day (14:30:00Z)", lambda text: bool(_CLOCK.fullmatch(text))),
    "date-time": ("a date and time (2026-01-31T14:30:00Z)", _is_moment),
    "email": ("an e-mail address", lambda text: bool(_EMAIL.fullmatch(text))),
    "idn-email": ("an e-mail address", lambda text: bool(_EMAIL.fullmatch(text))),
    "uuid": ("a UUID", _without_error(UUID)),
    "ipv4": ("an IPv4 address", _without_error(ipaddress.IPv4Address)),
    "ipv6": ("an IPv6 address", _without_error(ipaddress.IPv6Address)),
    "uri": ("an address with its scheme (https://…)", lambda text: bool(_URI.fullmatch(text))),
    "hostname": ("a host name", lambda text: bool(_HOST.fullmatch(text))),
}


def is_known_format(name: Any) -> bool:
    """Whether values are held to a format."""
    return isinstance(name, str) and (name in _INTEGERS or name in _CHECKS)


def format_fault(name: Any, value: Any) -> str:
    """Return why a value is not of a format, as a sentence without its subject; ``""`` if it is.

    Args:
        name: a format of JSON Schema or OpenAPI; one that is not known holds nobody.
        value: any JSON value: a format speaks of one type only.
    """
    if not isinstance(name, str):
        return ""
    ends = _INTEGERS.get(name)
    if ends and isinstance(value, int | float) and not isinstance(value, bool):
        fits = ends[0] <= value < ends[1]
        bits = name.removeprefix("u").removeprefix("int")
        lead = "a whole number from 0 up" if name[0] == "u" else "a whole number"
        return "" if fits else f"must be {lead} of {bits} bits, not {value!r:.80}"
    if isinstance(value, str) and name in _CHECKS:
        wanted, is_one = _CHECKS[name]
        return "" if is_one(value) else f"must be {wanted}, not {value!r:.80}"
    return ""
