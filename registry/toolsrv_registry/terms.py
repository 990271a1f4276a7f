"""What a provider asks for its APIs and how well they have served: ToolBench's ``pricing``, ``score``.

Both are what a crawl of RapidAPI found once; nothing here was measured by us. Pure.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict

Pricing = Literal["", "FREE", "FREEMIUM", "PAID"]
_KNOWN = {one: one for one in get_args(Pricing)}
_PRICE_ORDER: dict[Pricing, int] = {"FREE": 0, "": 1, "FREEMIUM": 1, "PAID": 2}


class Terms(BaseModel):
    """The terms of a tool's APIs; empty and None where its source says nothing.

    ``FREEMIUM`` has a free plan and paid ones, ``PAID`` paid ones only. ``service_percent`` and
    ``success_percent`` are shares of calls in [0, 100], ``latency_ms`` is a mean in milliseconds,
    ``popularity`` lies in [0, 10].
    """

    model_config = ConfigDict(frozen=True)

    pricing: Pricing = ""
    service_percent: int | float | None = None
    success_percent: int | float | None = None
    latency_ms: int | float | None = None
    popularity: int | float | None = None

    @property
    def paid(self) -> bool:
        """Whether every plan costs money."""
        return self.pricing == "PAID"

    @property
    def order(self) -> tuple[float, ...]:
        """The place among APIs that fit equally well, smaller first: price, success, speed, fame.

        What is unknown stands in the middle.
        """
        success = 50.0 if self.success_percent is None else self.success_percent
        latency = 1_000.0 if self.latency_ms is None else self.latency_ms
        popularity = 5.0 if self.popularity is None else self.popularity
        # In steps: 97 and 98 per cent, 300 and 310 milliseconds, tell nothing apart.
        return (
            _PRICE_ORDER[self.pricing],
            -round(success / 10),
            round(math.log2(max(latency, 1.0))),
            -popularity,
        )

    @property
    def words(self) -> str:
        """The terms in a few words: ``FREEMIUM, 98 % succeed, 786 ms, popularity 7.9``."""
        parts = [str(self.pricing)] if self.pricing else []
        if self.success_percent is not None:
            parts.append(f"{self.success_percent:g} % succeed")
        if self.service_percent is not None:
            parts.append(f"{self.service_percent:g} % service level")
        if self.latency_ms is not None:
            parts.append(f"{self.latency_ms:g} ms")
        if self.popularity is not None:
            parts.append(f"popularity {self.popularity:g}")
        return ", ".join(parts)


def read_terms(pricing: Any, score: Any) -> Terms:
    """Return the terms that a tool file states; whatever cannot be read says nothing."""
    said = pricing.strip().upper() if isinstance(pricing, str) else ""
    numbers = score if isinstance(score, Mapping) else {}
    return Terms(
        pricing=_KNOWN.get(said, ""),
        service_percent=_number(numbers.get("avgServiceLevel"), 100),
        success_percent=_number(numbers.get("avgSuccessRate"), 100),
        latency_ms=_number(numbers.get("avgLatency"), 1e9),
        popularity=_number(numbers.get("popularityScore"), 10),
    )


def stored_terms(pricing: str | None, score: str | None) -> Terms:
    """Return the terms that columns hold: the texts of two values inside a tool's JSON."""
    try:
        numbers = json.loads(score) if score else None
    except ValueError:
        numbers = None
    return read_terms(pricing, numbers)


def _number(value: Any, most: float) -> int | float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    if not 0 <= number <= most:
        return None
    return int(number) if number.is_integer() else number
