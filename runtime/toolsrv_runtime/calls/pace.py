"""When a host may be called next: a steady rate per host, and pauses that a host asks for.

Pure: time comes in as a number of seconds and nothing here waits.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

FIRST_PAUSE_S = 2.0
LONGEST_PAUSE_S = 60.0


class Pace:
    """At most ``rate`` calls per second and host; 0 means no limit."""

    def __init__(self, rate: float) -> None:
        self._interval = 1 / rate if rate > 0 else 0.0
        self._next: dict[str, float] = {}

    @property
    def interval(self) -> float:
        """Least seconds between two calls to one host."""
        return self._interval

    def ready(self, host: str) -> float:
        """Return the time from which a host may be called."""
        return self._next.get(host, 0.0)

    def called(self, host: str, at: float) -> None:
        """Note a call."""
        self._next[host] = max(self.ready(host), at + self._interval)

    def pause(self, host: str, until: float) -> None:
        """Leave a host alone until then."""
        self._next[host] = max(self.ready(host), until)


def pause_seconds(headers: Mapping[str, str], tries: int, now: datetime) -> float:
    """Return how long to leave a host alone that said it is called too often.

    What it asks for, else twice as long with every try: 2, 4, 8 … seconds.
    """
    asked = asked_seconds(headers, now)
    return FIRST_PAUSE_S * (1 << min(tries, 10)) if asked is None else asked


def asked_seconds(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the seconds that a host asks for in ``Retry-After`` (seconds or an HTTP date).

    None without such a header, or with one that says no time.
    """
    asked = headers.get("retry-after", "").strip()
    if asked.isascii() and asked.isdigit():
        return float(asked[:9])
    try:
        when = parsedate_to_datetime(asked)
    except (ValueError, OverflowError):  # OverflowError for years and zones without end
        return None
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    return max(0.0, (when - now).total_seconds())
