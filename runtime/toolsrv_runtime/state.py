"""What the parts of one solve share: what is on offer, done, spent and told. Decides nothing."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from toolsrv_runtime import events
from toolsrv_runtime import outcome as out
from toolsrv_runtime.contract.questions import Given, Question
from toolsrv_runtime.formats.base import Meter
from toolsrv_runtime.ledger import Ledger
from toolsrv_runtime.offer import Offer
from toolsrv_runtime.options import SolveOptions
from toolsrv_runtime.search.budget import Budget
from toolsrv_runtime.search.tree import Node
from toolsrv_runtime.stop import Stop


@dataclass(slots=True)
class State:
    """One solve; nothing of it is shared with another. ``outer`` is the user's wish to stop.

    ``shared`` is the budget of several solves of one vote. ``rejected`` is the answer that the model
    took back on a second reading. ``given`` are the values that a person gave, ``unanswered`` the
    questions that nobody answered, and ``postponed`` those that were not put, by API, as another
    call might tell.
    """

    task: str
    options: SolveOptions
    offer: Offer
    outer: Stop
    tell: Callable[[events.Event], None]
    shared: Budget | None = None
    budget: Budget = field(init=False)
    stop: Stop = field(init=False)
    meter: Meter = field(default_factory=Meter)
    ledger: Ledger = field(default_factory=Ledger)
    opinions: list[out.Opinion] = field(default_factory=list)
    rejected: Node | None = None
    given: list[Given] = field(default_factory=list)
    unanswered: list[Question] = field(default_factory=list)
    postponed: dict[str, Question] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.budget = self.shared or Budget(self.options.limits, time.monotonic())
        self.stop = Stop(parent=self.outer, deadline=self.budget.deadline)

    @property
    def known(self) -> str:
        """What an answer may rest on besides results: the task, what the person said, earlier runs."""
        said = (f"{one.question.text} {one.spelled}" for one in self.given)
        return "\n".join((self.task, *said, *(one.known for one in self.options.earlier)))

    def ended(self) -> str:
        """Return why the model may not be asked again ("" while it may)."""
        return self.late() or self.budget.ended(time.monotonic())

    def late(self) -> str:
        """Return why nothing more may be done at all ("" while something may)."""
        if self.outer.is_set():
            return "stopped by the user"
        return self.budget.late(time.monotonic())

    @contextlib.contextmanager
    def step(self) -> Iterator[None]:
        """Count what the model is asked in the block, and tell what is to be noted of it."""
        started, before = time.monotonic(), self.meter.generated
        replies = self.meter.replies
        told = len(self.meter.notes)
        try:
            yield
        finally:
            budget = self.budget
            budget.tokens += self.meter.generated - before
            budget.model_calls += self.meter.replies - replies
            budget.longest = max(budget.longest, time.monotonic() - started)
            for text in list(self.meter.notes)[told:]:
                self.tell(events.NoteEvent(seconds=self.seconds(), text=text))

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """Wait for a person in the block: it costs no time of the solve."""
        since = time.monotonic()
        try:
            yield
        finally:
            waited = time.monotonic() - since
            self.budget.waited += waited
            self.stop.postpone(waited)

    def seconds(self) -> float:
        """Seconds since the solve began, without those that a person was waited for."""
        return round(time.monotonic() - self.budget.started - self.budget.waited, 4)

    def tell_budget(self) -> None:
        """Tell how much of the budget is used."""
        self.tell(
            events.BudgetEvent(
                seconds=self.seconds(), usage=self.usage(), limits=self.options.limits
            )
        )

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
