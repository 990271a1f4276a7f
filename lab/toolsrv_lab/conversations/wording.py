"""Wording of the generators: days, numbers, lists, and answer forms with response fields.

A form is a sentence with fields of a response (``r``) and of a call's arguments (``a``). ``DATA``
is the folder of the generators' tables.
"""

from __future__ import annotations

import calendar
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"
MONTHS = tuple(calendar.month_name[1:])
WEEKDAYS = tuple(calendar.day_name)
NUMBERS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen"),
    *("eighteen", "nineteen"),
)
"""The English words of the numbers below twenty."""


def ordinal(number: int) -> str:
    """Return ``1st``, ``2nd``, ``3rd``, ``11th``."""
    if 10 <= number % 100 <= 20:
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"


def enumerated(items: Sequence[str], last: str = "and") -> str:
    """Return ``a``, ``a and b``, ``a, b and c``. Raise LookupError for no items."""
    if not items:
        raise LookupError("no items to enumerate")
    if len(items) == 1:
        return items[0]
    return f"{', '.join(items[:-1])} {last} {items[-1]}"


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


def fill(form: str, response: Any, arguments: Mapping[str, Any]) -> str:
    """Return the form with its fields filled in."""
    return re.sub(r"\s+", " ", _fill(form, {"r": response, "a": arguments})).strip()


def _fill(form: str, values: Mapping[str, Any]) -> str:
    out = []
    for kind, text in _pieces(form):
        out.append(_field(text, values) if kind else text)
    return "".join(out)


def _pieces(form: str) -> Iterator[tuple[bool, str]]:
    """Yield (is a field, text), with braces that hold braces as one field."""
    depth, start = 0, 0
    for at, sign in enumerate(form):
        if sign == "{":
            if depth == 0:
                yield False, form[start:at]
                start = at + 1
            depth += 1
        elif sign == "}":
            depth -= 1
            if depth == 0:
                yield True, form[start:at]
                start = at + 1
            if depth < 0:
                raise ValueError(f"a brace too many in {form!r}")
    if depth:
        raise ValueError(f"a brace too few in {form!r}")
    yield False, form[start:]


def _field(text: str, values: Mapping[str, Any]) -> str:
    path, _, rest = text.partition("|")
    name, _, detail = rest.partition(":")
    value, there = _value(path.strip(), values)
    if name == "if":
        return _fill(detail, values) if there and value not in (None, "", [], {}, False) else ""
    if not there:
        raise LookupError(path)
    if name == "yesno":
        yes, no = _split(detail)
        return _fill(yes if value else no, values)
    if name == "count":
        return str(len(value))
    if name == "join":
        parts = [_shown(one) for one in value]
        return enumerated(parts)
    if name:
        raise ValueError(f"no filter {name!r}")
    return _shown(value)


def _split(text: str) -> tuple[str, str]:
    depth = 0
    for at, sign in enumerate(text):
        depth += (sign == "{") - (sign == "}")
        if sign == ":" and depth == 0:
            return text[:at], text[at + 1 :]
    return text, ""


def _value(path: str, values: Mapping[str, Any]) -> tuple[Any, bool]:
    found: Any = values
    for key in path.split("."):
        if isinstance(found, Mapping) and key in found:
            found = found[key]
        elif (
            isinstance(found, list)
            and key.lstrip("-").isdigit()
            and -len(found) <= int(key) < len(found)
        ):
            found = found[int(key)]
        else:
            return None, False
    return found, True


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(not isinstance(one, dict | list) for one in value):
        return ", ".join(map(_shown, value))
    return json.dumps(value, ensure_ascii=False)
