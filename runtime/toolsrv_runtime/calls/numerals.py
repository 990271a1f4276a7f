"""JSON values as text: written for a request, and read only where a text says exactly a value."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any

from toolsrv_runtime.calls.body import too_deep

_PLAIN = re.compile(r"-?(?:0|[1-9][0-9]{0,400})(?:\.[0-9]{1,400})?", re.ASCII)


def number(text: str) -> int | float | None:
    """Return the number that a text spells in plain decimal digits, None where it spells none.

    ``"02134"``, ``"1,2,4"``, ``"12%"``, ``"1e3"``, ``"+49"`` and ``"1_000"`` are texts, and so is
    one whose digits a float does not hold.
    """
    if not _PLAIN.fullmatch(text):
        return None
    if "." not in text:
        return 0 if text == "-0" else int(text)
    value = float(text)
    return value if Decimal(text) == Decimal(repr(value)) else None


def canonical(text: str) -> int | float | None:
    """Return the number that a text spells as JSON writes it, None where it does not."""
    value = number(text)
    return value if value is not None and json.dumps(value) == text else None


def boolean(text: str) -> bool | None:
    """Return the boolean that a text names, in any case."""
    return {"true": True, "false": False}.get(text.lower())


def structure(text: str) -> list[Any] | dict[str, Any] | None:
    """Return the JSON list or object that a text spells, None where no JSON could say it again."""
    if not text.lstrip().startswith(("[", "{")):
        return None
    try:
        value = json.loads(text, parse_float=_exact, object_pairs_hook=_once)
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):  # NaN, half a surrogate pair, an endless integer
        return None
    return value if isinstance(value, list | dict) and not too_deep([value]) else None


def _exact(text: str) -> float:
    value = float(text)
    if Decimal(text) != Decimal(repr(value)):
        raise ValueError("more digits than a float holds")
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands twice")
    return found


def spell(value: Any) -> str:
    """Return a value as a query string spells it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
