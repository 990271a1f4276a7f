"""Orders to do something in the world: "text my brother the result", "book us a table". Pure.

A function that only looks something up does not serve them, whatever it knows of brothers and
tables: one that does says so in its document.
"""

from __future__ import annotations

import re
from functools import lru_cache

from toolsrv_registry.api import Api
from toolsrv_runtime.reading.facts import words

_THEM = r"(?:me|us|my|our|him|her|them|both|it|this|that)"
_LEAD = r"(?:(?:and|then|also|please|finally|now|so)\b[\s,]*)*"
_ACTS = {
    rf"(?:e-?mail|mail)\s+(?:{_THEM}|the|an?)\b|e-?mail\s+\S+@": r"send\w*|smtp|mailing|mailbox|inbox",
    rf"(?:text|message|whatsapp|sms)\s+{_THEM}\b": r"send\w*|sms|whatsapp|texting",
    r"send\s+(?:(?:me|us|my|our|him|her|them)\b|an?\s+(?:e-?mail|mail|text|sms|message|letter|parcel)\b"
    r"|(?:it|this|that|both|the\s+\w+)\s+(?:off\s+)?to\b)": r"send\w*|deliver\w*|sms|notif\w*|ship\w*",
    rf"(?:call|phone|ring|dial)\s+(?:{_THEM}|up)\b": r"calls|dial\w*|telephony|voice calls?",
    r"(?:book|reserve)\s+(?:me|us|him|her|them|an?|the|two|three|four|\d+)\b": r"booking\w*|reserv\w*",
    rf"(?:pay|wire|transfer)\s+(?:{_THEM}|the)\b": r"payouts?|wire transfers?|money transfers?|checkout",
    r"set\s+(?:up\s+)?(?:me\s+)?(?:an?\s+|the\s+)?(?:alarm|timer|reminder)\b"
    r"|remind\s+(?:me|us|him|her|them)\s+(?:to|at|on|tomorrow)\b": r"alarms?|timers?|reminders?|schedul\w*",
    rf"(?:tweet|post)\s+(?:{_THEM}|the|about)\b": r"tweets?|posts?|posting|publish\w*",
    r"(?:upload|download)\s+\w": r"upload\w*|download\w*",
}
"""How an order begins -> what the document of a function says that does such things."""

_ORDERS = tuple(
    (re.compile(rf"{_LEAD}(?:{said})", re.IGNORECASE), re.compile(rf"\b(?:{does})\b"))
    for said, does in _ACTS.items()
)


def is_act(part: str) -> bool:
    """Whether a part of a task is such an order."""
    return _does(part) is not None


def may_serve(part: str, api: Api) -> bool:
    """Whether a function may serve a part: any one may, but for orders those that do such things."""
    does = _does(part)
    return does is None or bool(does.search(_document(api)))


@lru_cache(maxsize=512)
def _does(part: str) -> re.Pattern[str] | None:
    return next((does for said, does in _ORDERS if said.match(part)), None)


def _document(api: Api) -> str:
    return f"{words(api.name)} {words(api.tool)} {api.description}".lower()
