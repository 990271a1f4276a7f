"""What the parts of one solve share: what is on offer, done, spent and told. Decides nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from toolsrv_runtime import outcome as out
from toolsrv_runtime.formats.base import Meter
from toolsrv_runtime.ledger import Ledger
from toolsrv_runtime.offer import Offer
from toolsrv_runtime.options import SolveOptions
from toolsrv_runtime.search.budget import Budget
from toolsrv_runtime.stop import Stop


@dataclass(slots=True)
class State:
    """One solve; nothing of it is shared with another. ``outer`` is the user's wish to stop."""

    task: str
    options: SolveOptions
    offer: Offer
    outer: Stop
    tell: Callable[[out.Event], None]
    budget: Budget = field(init=False)
    stop: Stop = field(init=False)
    meter: Meter = field(default_factory=Meter)
    ledger: Ledger = field(default_factory=Ledger)

    def __post_init__(self) -> None:
        self.budget = Budget(self.options.limits, time.monotonic())
        self.stop = Stop(parent=self.outer, deadline=self.budget.deadline)

    def ended(self) -> str:
        """Return why the search must end now ("" while it need not)."""
        if self.outer.is_set():
            return "stopped by the user"
        return self.budget.ended(time.monotonic())

    def seconds(self) -> float:
        """Seconds since the solve began."""
        return round(time.monotonic() - self.budget.started, 4)

    def usage(self) -> out.Usage:
        """Return what the solve has cost so far."""
        meter = self.meter
        return out.Usage(
            seconds=self.seconds(),
            calls=self.budget.calls,
            model_calls=meter.replies,
            prompt_tokens=meter.prompt_tokens,
            evaluated_tokens=meter.evaluated,
            generated_tokens=meter.generated,
            forced_tokens=meter.forced,
        )
