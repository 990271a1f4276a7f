"""Numbers as people write them: ``1,200``, ``3.5``, ``-4``, ``12%``, ``$1,200``, ``1e6``."""

from __future__ import annotations

import math
import re
from typing import Annotated

from toolsrv_catalogs.offline.endpoint import Field, quoted
from toolsrv_registry.errors import UsageError

_LIMIT = 1e15
_WIDTH = 60
_KNOWN_DIGITS = 15
"""Of a float."""
_NUMBER = re.compile(
    r"[$€£¥]?\s*([+-]?)\s*[$€£¥]?\s*"
    r"((?:[0-9]{1,3}(?:[,' \u00a0\u202f_][0-9]{3})+|[0-9]+)?)((?:[.,][0-9]+)?)([eE][+-]?[0-9]{1,2})?\s*%?"
)


def parse_number(text: str) -> float:
    """Return the number written in ``text``; a lone comma before other than 3 digits is a point.

    Raises:
        UsageError: not a number, or beyond 1e15.
    """
    match = _NUMBER.fullmatch(text.strip().replace("\u2212", "-")) if len(text) < _WIDTH else None
    if match is None or not (match[2] or match[3]):
        raise UsageError(f"{quoted(text)} is not a number; write it like 42, 3.5 or 1,200")
    whole = re.sub(r"[^0-9]", "", match[2]) or "0"
    value = float(f"{match[1]}{whole}{match[3].replace(',', '.')}{match[4] or ''}")
    if abs(value) > _LIMIT:
        raise UsageError(f"{quoted(text)} is beyond the largest number accepted, 1e15")
    return value


def between(low: float, high: float) -> Field:
    """Return a field for a number from ``low`` to ``high``, both included."""

    def parse(text: str) -> float:
        value = parse_number(text)
        if not low <= value <= high:
            raise UsageError(f"{quoted(text)} is outside {tidy(low)} to {tidy(high)}")
        return value

    return Field(parse)


def whole(low: int, high: int) -> Field:
    """Return a field for a whole number from ``low`` to ``high``, both included."""

    def parse(text: str) -> int:
        digits = re.sub(r"[,_' \u00a0\u202f]", "", text) if len(text) < _WIDTH else ""
        if re.fullmatch(r"[+-]?[0-9]{1,40}", digits):
            value = int(digits)
        else:
            number = parse_number(text)
            value = int(number)
            if value != number:
                raise UsageError(f"{quoted(text)} is not a whole number")
        if not low <= value <= high:
            raise UsageError(f"{quoted(text)} is outside {low} to {high}")
        return value

    return Field(parse)


def parse_numbers(text: str) -> list[float]:
    """Return the numbers of a list such as ``4, 8, 15`` or ``4 8 15`` (at most 500).

    A comma separates here, so thousands are written without one.
    """
    parts = [part for part in re.split(r"[,;\s]+|\band\b", text.strip("[]() ")) if part]
    if not parts or len(parts) > 500:
        raise UsageError("give 1 to 500 numbers with commas between them, like 4, 8, 15")
    return [parse_number(part) for part in parts]


def tidy(value: float, digits: int = 4) -> float | int:
    """Return ``value`` rounded to ``digits`` decimals, as an int where nothing is lost."""
    rounded = round(value, digits)
    return int(rounded) if rounded == int(rounded) else rounded


def significant(value: float, digits: int = 8) -> float | int:
    """Return ``value`` rounded to ``digits`` significant digits, as an int where possible.

    Digits before the point are all kept, as far as a float knows them: no zero stands for one.
    """
    before_point = len(str(int(abs(value)))) if math.isfinite(value) else 0
    kept = max(digits, min(before_point, _KNOWN_DIGITS))
    rounded = float(f"{value:.{kept}g}")
    return int(rounded) if rounded == int(rounded) and abs(rounded) < 1e15 else rounded


Number = Annotated[float, Field(parse_number)]
Positive = Annotated[float, between(1e-9, 1e12)]
NonNegative = Annotated[float, between(0, 1e12)]
Numbers = Annotated[list[float], Field(parse_numbers)]
Seed = Annotated[int, whole(0, 2**53)]
