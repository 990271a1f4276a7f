"""Numbers in other bases: which base one is told in, and which is wanted. Pure.

"BEEF as hex, what is that in decimal?": from 16 to 10. By the words of the task alone.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from toolsrv_registry.api import Api, Parameter
from toolsrv_runtime.planner.reading.wish import Wish
from toolsrv_runtime.values.facts import words

DECIMAL = "10"
_NAMES = {"binary": "2", "octal": "8", "decimal": "10", "denary": "10", "hexadecimal": "16"}
_NAMES |= {"zeros and ones": "2", "ones and zeros": "2", "0s and 1s": "2", "1s and 0s": "2"}
_NAMES |= {
    f"{kind} number": "10" for kind in ("ordinary", "normal", "regular", "everyday", "usual")
}
_PREFIXES = {"x": "16", "b": "2", "o": "8"}
_BASE = re.compile(
    rf"(?P<and>\b(?:and|or)\s+(?:then\s+|also\s+)?(?:the\s+|its\s+)?)?(?P<to>\b(?:to|into|in|as)\s+(?:(?:normal|plain|ordinary|regular|proper)\s+)?)?(?:\b(?P<name>{'|'.join(_NAMES)}|hex)\b(?!\s+(?:places?|points?))"
    r"|\bbase[ -]?(?P<digits>\d{1,2})\b)"
    r"(?P<of>\s+(?:(?:form|version|equivalent|value|representation|notation)\s+)?(?:of|for)\b)?"
    r"(?P<too>\s+(?:too|as well|also)\b)?|\b0(?P<prefix>[xbo])(?=[\da-f]+\b)",
    re.IGNORECASE,
)
_BASE_DIGITS = re.compile(r"\bbase[ -]?\d{1,2}\b", re.IGNORECASE)
_NUMBER = re.compile(
    r"(?<![\w.])(?:0[xXbBoO])?(?:(?=[A-Za-z]*\d)[\da-fA-F]+|[A-F]{2,})(?![\w.]*\w)"
)


_TOLD_IN = re.compile(
    rf"(?<![\w.])(?P<number>[\da-f]+) (?:in|as) (?P<name>(?:{'|'.join(_NAMES)}|hex)|base[ -]?\d{{1,2}})"
    r" (?:has|have|must|needs?|should|to|into|back)\b",
    re.IGNORECASE,
)


class _Base(NamedTuple):
    value: str
    is_wanted: bool
    is_prefix: bool
    is_joined: bool


def told(parameter: Parameter, api: Api, wish: Wish) -> str:
    """Return what is stated for one of a function's number, its base, and the base wanted; else "".

    By the part, or by the task where that names two bases and the part one of them.
    """
    roles = {_role(one): one for one in api.parameters}
    if not {"from", "to"} <= roles.keys() or parameter not in roles.values():
        return ""
    part, _, task = wish
    here, whole = _named(part), _named(task)
    text = part
    if len(here) == 1 and len(whole) == 2:
        here, text = whole, task
    source, target = _way(here)
    number = next(iter(_NUMBER.findall(_BASE_DIGITS.sub(" ", task))), "") if source else ""
    foreign = source == "10" and bool(number and target) and not _reads(number, 10)
    if target and len(here) == 2 and (foreign or _is_told_in(target, task)):
        source, target = target, source
    if not target and source != "10" and number.isdigit() and not _reads(number, int(source or 10)):
        source, target = "", source  # "1987 and the binary for it"
    if parameter == roles["from"]:
        return source if source != str(parameter.default) else ""
    if parameter == roles["to"]:
        return target or ("10" if source and source != "10" else "")
    return _number(text, source or "10") if here else ""


def is_source(name: str) -> bool:
    """Whether a parameter of this name is the base that a number is told in."""
    name = words(name)
    return "from" in name.split() and re.search(r"\b(?:base|radix)\b", name) is not None


def _role(parameter: Parameter) -> str:
    name = words(parameter.name)
    if re.search(r"\b(?:base|radix)\b", name):
        return next((way for way in ("from", "to") if way in name.split()), "")
    return "number" if name in {"number", "value"} else ""


def _named(text: str) -> list[_Base]:
    """Return the bases that a text names, each once, in order; one with a number in its notation."""
    found: dict[str, _Base] = {}
    for match in _BASE.finditer(text):
        name = (match["name"] or "").lower()
        prefix = (match["prefix"] or "").lower()
        base = _PREFIXES.get(prefix) or match["digits"] or _NAMES.get(name, "16")
        wanted = bool(match["to"] or match["of"] or (match["and"] and match["too"]))
        one = _Base(base, wanted, bool(prefix), bool(match["and"]))
        if base not in found or one.is_prefix:
            found[base] = one
    return list(found.values())


def _way(named: list[_Base]) -> tuple[str, str]:
    """Return the base that the number is told in and the one wanted, "" for what is not said."""
    if len(named) == 1:
        only = named[0]
        return ("", only.value) if only.is_wanted and not only.is_prefix else (only.value, "")
    if len(named) != 2:
        return "", ""
    first, second = named
    if first.is_wanted and second.is_wanted and second.is_joined:
        return "", first.value  # "in base 16 and in octal": both are wanted, one after the other
    back = second.is_prefix or (first.is_wanted and not second.is_wanted and not first.is_prefix)
    return (second.value, first.value) if back else (first.value, second.value)


def _is_told_in(base: str, text: str) -> bool:
    """Whether a number is said to be in a base, and has to be something else: "101 in binary has to"."""
    return any(
        _reads(told["number"], int(base)) and base in {one.value for one in _named(told["name"])}
        for told in _TOLD_IN.finditer(text)
    )


def _number(text: str, base: str) -> str:
    """Return the one number of a text that can be written in a base, "" for none or several."""
    found = {one for one in _NUMBER.findall(_BASE_DIGITS.sub(" ", text)) if _reads(one, int(base))}
    return found.pop() if len(found) == 1 else ""


def _reads(number: str, base: int) -> bool:
    try:
        int(number, base)
    except ValueError:
        return False
    return True
