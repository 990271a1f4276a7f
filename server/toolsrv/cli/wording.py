"""Numbers and values as people read them; ``--json`` has them as they are."""

from __future__ import annotations

from typing import Any

from toolsrv.plain import compact_json


def counted(count: int, one: str, many: str = "") -> str:
    """Return a number with its noun: "1 API", "2,000 APIs"; ``many`` where no "s" makes it."""
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"


def told(value: Any) -> str:
    """Return a value of a table: yes or no, numbers with few digits, "none" for nothing."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.3g}"
    if value in (None, "", [], {}, ()):
        return "none"
    return value if isinstance(value, str) else compact_json(value)
