"""Formats of schemas: values that plainly are none are refused, any spelling of one passes.

Documents name formats loosely (times without a zone, addresses without a scheme are common), so
only what cannot be meant is a fault, and a format that is not known here holds nobody. Pure.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from datetime import date
from typing import Any
from uuid import UUID

_TIME = r"([01]\d|2[0-3]):[0-5]\d(:([0-5]\d|60)([.,]\d+)?)?( ?(Z|[+-]\d\d(:?\d\d)?))?"
_CLOCK = re.compile(_TIME, re.ASCII | re.IGNORECASE)
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_MOMENT = re.compile(rf"(?P<day>\d{{4}}-\d\d-\d\d)[T ]{_TIME}", re.ASCII | re.IGNORECASE)
_EMAIL = re.compile(r"[^\s@]+@[^\s@]+|\"[^\"]+\"@[^\s@]+")
_URI = re.compile(r"[a-z][a-z0-9+.-]*:[^\s<>\"{}|\\^`]*", re.ASCII | re.IGNORECASE)
_HOST = re.compile(
    r"(?=.{1,253}\.?$)[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_-]+)*\.?", re.IGNORECASE
)
_INTEGERS = {"int32": 31, "int64": 63}


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
    "uuid": ("a UUID", _without_error(UUID)),
    "ipv4": ("an IPv4 address", _without_error(ipaddress.IPv4Address)),
    "ipv6": ("an IPv6 address", _without_error(ipaddress.IPv6Address)),
    "uri": ("an address with its scheme (https://…)", lambda text: bool(_URI.fullmatch(text))),
    "hostname": ("a host name", lambda text: bool(_HOST.fullmatch(text))),
}


def is_checked(name: Any) -> bool:
    """Whether values are held to a format."""
    return name in _INTEGERS or name in _CHECKS


def format_fault(name: Any, value: Any) -> str:
    """Return why a value is not of a format, as a sentence without its subject; ``""`` if it is.

    Args:
        name: a format of JSON Schema or OpenAPI; one that is not known holds nobody.
        value: any JSON value: a format speaks of one type only.
    """
    if not isinstance(name, str):
        return ""
    bits = _INTEGERS.get(name)
    if bits and isinstance(value, int | float) and not isinstance(value, bool):
        fits = -(2**bits) <= value < 2**bits
        return "" if fits else f"must be a whole number of {bits + 1} bits, not {value!r:.80}"
    if isinstance(value, str) and name in _CHECKS:
        wanted, is_one = _CHECKS[name]
        return "" if is_one(value) else f"must be {wanted}, not {value!r:.80}"
    return ""
