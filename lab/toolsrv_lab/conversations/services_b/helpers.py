"""Names of the expressions in the files of services, and sentences with expressions."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Callable
from datetime import date, timedelta
from typing import Any

from toolsrv_lab.conversations.services_b.expressions import Record, evaluate
from toolsrv_lab.conversations.services_b.values import Draw, code, countries, pools
from toolsrv_lab.conversations.wording import WEEKDAYS, enumerated

_BUILTINS: tuple[Callable[..., Any], ...] = (
    *(abs, all, any, bin, chr, dict, enumerate, float, hex, int, len, list, max, min, ord, range),
    *(reversed, round, set, sorted, str, sum, zip),
)
_MATH = (
    *("ceil", "comb", "dist", "factorial", "gcd", "hypot", "lcm", "log", "log10", "log2", "pi"),
    *("radians", "sin", "sqrt"),
)
_STATISTICS = ("median", "pstdev", "stdev")


def _shown(value: Any) -> str:
    if value is None or isinstance(value, Record):
        raise LookupError("nothing to show")
    if isinstance(value, bool):
        return "yes" if value else "no"
    return enumerated([_shown(one) for one in value]) if isinstance(value, list) else str(value)


def _days_between(first: str, last: str) -> int:
    return (date.fromisoformat(last[:10]) - date.fromisoformat(first[:10])).days


class Helpers:
    """Evaluates expressions with functions that draw from one episode's values."""

    def __init__(self, draw: Draw) -> None:
        rng = draw.rng

        def decimal(low: float, high: float, digits: int = 2) -> float:
            return round(rng.uniform(low, high), digits)

        def some(pool: str, low: int, high: int) -> list[str]:
            return [one[0] for one in rng.sample(pools()[pool][1], rng.randint(low, high))]

        def day(low: int, high: int) -> str:
            return (draw.now + timedelta(rng.randint(low, high))).isoformat()

        self._table: dict[str, Any] = {
            **{one.__name__: one for one in _BUILTINS},
            **{f"math.{name}": getattr(math, name) for name in _MATH},
            **{f"stats.{name}": getattr(statistics, name) for name in _STATISTICS},
            "rng.choice": rng.choice,
            "rng.sample": rng.sample,
            "now": draw.now.isoformat(),
            "year": draw.now.year,
            "I": rng.randint,
            "F": decimal,
            "P": lambda text: rng.choice(text.split(";")),
            "Q": lambda pool: draw.once(pool)[0],
            "SP": lambda text, low, high: rng.sample(text.split(";"), rng.randint(low, high)),
            "SQ": some,
            "B": lambda chance=0.5: rng.random() < chance,
            "D": day,
            "T": lambda: f"{rng.randint(0, 23):02d}:{rng.randint(0, 59):02d}",
            "ID": lambda text: code(rng, text),
            "plus": lambda first, days: (
                date.fromisoformat(first[:10]) + timedelta(days)
            ).isoformat(),
            "days": _days_between,
            "dow": lambda day: WEEKDAYS[date.fromisoformat(day[:10]).weekday()],
            "R": _rounded,
            "J": lambda parts, last="and": enumerated([_shown(one) for one in parts], last),
            "Y": lambda fact, yes, no="": yes if fact else no,
            "of": lambda key, name, value: next(
                one[value] for one in countries() if one[key] == name
            ),
        }

    def value(self, text: str, **more: Any) -> Any:
        """Return the value of an expression; ``more``: further names, such as the arguments."""
        return evaluate(text, {**self._table, **more})

    def sentence(self, text: str, **more: Any) -> str:
        """Return a sentence with its ``{expressions}`` evaluated.

        Raises:
            LookupError: The value of one is absent, empty, or an object.
        """
        return re.sub(
            r"\{([^{}]+)\}", lambda found: _shown(self.value(found[1].strip(), **more)), text
        )


def _rounded(value: float, digits: int = 2) -> float | int:
    out = round(value, digits)
    return int(out) if out == int(out) and abs(out) < 1e15 else out
