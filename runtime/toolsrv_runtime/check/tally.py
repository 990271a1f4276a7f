"""How far a check is: counts, speed, time left. Arithmetic only."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from toolsrv_registry.health import HealthEntry, Verdict


@dataclass(slots=True)
class Tally:
    """The running counts of a check.

    ``calls`` counts requests, those that were repeated too; ``done`` APIs with a verdict.
    ``busiest`` is the longest queue of one host, ``interval`` the least seconds between its calls.
    """

    total: int
    interval: float = 0.0
    calls: int = 0
    done: int = 0
    busiest: int = 0
    seconds: float = 0.0
    verdicts: Counter[Verdict] = field(default_factory=Counter)
    standings: Counter[str] = field(default_factory=Counter)

    def add(self, entry: HealthEntry) -> None:
        """Count a verdict."""
        self.done += 1
        self.verdicts[entry.verdict] += 1
        self.standings[entry.standing] += 1

    @property
    def rate(self) -> float:
        """APIs judged per second."""
        return self.done / self.seconds if self.seconds > 0 else 0.0

    @property
    def left_s(self) -> float | None:
        """Seconds left, ``None`` while nobody can know: by speed, and by the busiest host."""
        if not self.done or self.seconds <= 0:
            return None
        return max((self.total - self.done) / self.rate, self.busiest * self.interval)
