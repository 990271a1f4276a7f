"""JSON values as text: written for a request, and read only where a text says exactly a value."""

from __future__ import annotations

import json
import math
import re
from decimal import Decimal
from typing import Any, Self

from toolsrv_registry.wellformed import too_deep

_LARGEST_EXPONENT = 400
_PLAIN = re.compile(r"-?(?:0|[1-9][0-9]{0,400})(?:\.[0-9]{1,400})?", re.ASCII)


class WrittenNumber(float):
    """A number that a float spells otherwise: ``text`` has its digits as they were given."""

    text: str

    def __new__(cls, text: str) -> Self:
        """Return the number that a JSON text spells."""
        made = super().__new__(cls, text)
        made.text = text
        return made

    def __repr__(self) -> str:
        return self.text

    def __reduce__(self) -> tuple[type[Self], tuple[str]]:
        return type(self), (self.text,)


def real(text: str) -> float:
    """Return the float that a JSON number spells, with its digits where a float has other ones."""
    value = float(text)
    if repr(value) == text or abs(Decimal(text).adjusted()) > _LARGEST_EXPONENT:
        return value
    return WrittenNumber(text) if math.isfinite(value) else value


def number(text: str) -> int | float | None:
    """Return the number that a text spells in plain decimal digits, None where it spells none.

    ``"02134"``, ``"1,2,4"``, ``"12%"``, ``"1e3"``, ``"+49"`` and ``"1_000"`` are texts.
    """
    if not _PLAIN.fullmatch(text):
        return None
    if "." not in text:
        return 0 if text == "-0" else int(text)
    value = real(text)
    return value if math.isfinite(value) else None


def canonical(text: str) -> int | float | None:
    """Return the number that a text spells as JSON writes it, None where it does not."""
    value = number(text)
    kept = value is not None and not isinstance(value, WrittenNumber) and spell(value) == text
    return value if kept else None


def boolean(text: str) -> bool | None:
    """Return the boolean that a text names, in any case."""
    return {"true": True, "false": False}.get(text.lower())


def structure(text: str) -> list[Any] | dict[str, Any] | None:
    """Return the JSON list or object that a text spells, None where no JSON could say it again."""
    if not text.lstrip().startswith(("[", "{")):
        return None
    try:
        value = read(text)
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):  # NaN, half a surrogate pair, an endless integer
        return None
    return value if isinstance(value, list | dict) and not too_deep([value]) else None


class TwiceError(ValueError):
    """A name, which the error has, stands twice in one object: nobody knows which value is meant."""


def read(text: str) -> Any:
    """Return the value of a JSON text, with the digits of its numbers as they are given.

    Raises:
        ValueError: it is no JSON, or has an endless integer; TwiceError, a kind of it.
        RecursionError: it is nested too deep.
    """
    return json.loads(text, parse_float=real, object_pairs_hook=_once)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise TwiceError(next(name for name in names if names.count(name) > 1))
    return found


def spell(value: Any) -> str:
    """Return a value as a query string spells it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else dumps(value)


def dumps(value: Any, comma: str = ", ", colon: str = ": ") -> str:
    """Return a value as JSON, with the digits of its numbers as they were given.

    Args:
        value: a JSON value that is not too deep (``wellformed.too_deep``).
        comma: what parts items.
        colon: what parts a name from its value.

    Raises:
        ValueError: NaN, infinity or an endless integer stands in it.
    """
    if isinstance(value, WrittenNumber):
        return value.text
    if isinstance(value, list):
        return f"[{comma.join(dumps(one, comma, colon) for one in value)}]"
    if isinstance(value, dict):
        pairs = (f"{_text(name)}{colon}{dumps(one, comma, colon)}" for name, one in value.items())
        return f"{{{comma.join(pairs)}}}"
    return _text(value)


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
