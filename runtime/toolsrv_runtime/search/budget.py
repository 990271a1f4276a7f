"""How much a solve may spend: seconds, replies, calls, generated tokens. Pure arithmetic."""

from __future__ import annotations

from dataclasses import dataclass

from toolsrv_runtime.outcome import Limits


@dataclass(slots=True)
class Budget:
    """Limits and what is spent of them; ``started`` is in ``time.monotonic`` seconds.

    ``longest`` is how many seconds the longest step took, which is what the closing one may take;
    ``waited`` how many seconds a person was waited for, which nobody has spent. ``ahead`` of
    ``calls`` were started together with an earlier call of their turn and not acted on yet.
    """

    limits: Limits
    started: float
    calls: int = 0
    ahead: int = 0
    tokens: int = 0
    model_calls: int = 0
    longest: float = 0.0
    waited: float = 0.0

    @property
    def deadline(self) -> float:
        """When the seconds are over, in ``time.monotonic`` seconds."""
        return self.started + self.limits.seconds + self.waited

    @property
    def tokens_left(self) -> int:
        """Tokens that may still be generated."""
        return max(0, self.limits.tokens - self.tokens)

    def late(self, now: float) -> str:
        """Return that the time is over ("" while it is not)."""
        if now < self.deadline:
            return ""
        seconds = f"{self.limits.seconds:g}"
        return f"the time of {seconds} second{'s' * (seconds != '1')} is over"

    def ended(self, now: float) -> str:
        """Return which limit of the model is reached ("" while none is)."""
        if late := self.late(now):
            return late
        if self.tokens >= self.limits.tokens:
            return _used_up(self.limits.tokens, "token")
        if self.model_calls >= self.limits.model_calls:
            return _used_up(self.limits.model_calls, "model call")
        return ""

    def calls_ended(self) -> str:
        """Return why no further call may be acted on ("" while one may)."""
        if self.calls - self.ahead >= self.limits.calls:
            return _used_up(self.limits.calls, "call")
        return ""

    def requests_ended(self) -> str:
        """Return why no further call may be started ("" while one may)."""
        return "" if self.calls_left else _used_up(self.limits.calls, "call")

    @property
    def calls_left(self) -> int:
        """Calls that may still be started."""
        return max(0, self.limits.calls - self.calls)


def _used_up(limit: int, what: str) -> str:
    return f"the {limit} {what} is used up" if limit == 1 else f"the {limit} {what}s are used up"
