"""How much a solve may spend: seconds, calls, generated tokens. Pure arithmetic on numbers."""

from __future__ import annotations

from dataclasses import dataclass

from toolsrv_runtime.outcome import Limits


@dataclass(slots=True)
class Budget:
    """Limits and what is spent of them; ``started`` is in ``time.monotonic`` seconds."""

    limits: Limits
    started: float
    calls: int = 0
    tokens: int = 0

    @property
    def deadline(self) -> float:
        """When the seconds are over, in ``time.monotonic`` seconds."""
        return self.started + self.limits.seconds

    @property
    def tokens_left(self) -> int:
        """Tokens that may still be generated."""
        return max(0, self.limits.tokens - self.tokens)

    def ended(self, now: float) -> str:
        """Return which limit is reached ("" while none is)."""
        if now >= self.deadline:
            return f"the time of {self.limits.seconds:g} seconds is over"
        if self.tokens >= self.limits.tokens:
            return f"the {self.limits.tokens} tokens are used up"
        return ""

    def calls_ended(self) -> str:
        """Return why no further call may be made ("" while one may)."""
        if self.calls >= self.limits.calls:
            return f"the {self.limits.calls} calls are used up"
        return ""
