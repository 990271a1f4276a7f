"""The repeated head of prompts: restored from a stored state, or evaluated and stored.

Only heads that took long to evaluate are stored: reading a file must be quicker.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from toolsrv_runtime.engine.base import Prompt
from toolsrv_runtime.engine.scheduler import Scheduler
from toolsrv_runtime.engine.states import StateStore
from toolsrv_runtime.stop import Stop

WORTH_S = 0.25
"""A head that is evaluated in less time is not stored."""

_SHORT = 32


def head_of(prompt: Prompt) -> Prompt:
    """Return the pieces up to the last one that other prompts share; empty without one."""
    last = max((at for at, piece in enumerate(prompt, start=1) if piece.shared), default=0)
    return prompt[:last]


class Heads:
    """Makes heads resident, for one engine; ``owner`` names its model and parameters."""

    def __init__(
        self, scheduler: Scheduler, store: StateStore, owner: str, *, worth_s: float = WORTH_S
    ) -> None:
        self._scheduler = scheduler
        self._store = store
        self._owner = owner
        self._worth_s = worth_s

    def ready(self, tokens: Sequence[int], stop: Stop | None) -> int:
        """Make ``tokens`` resident unless they are; return how many were evaluated."""
        if len(tokens) < _SHORT or self._scheduler.known(tokens) >= len(tokens):
            return 0
        state = self._store.get(self._owner, tokens)
        with self._scheduler.seat(tokens, reserve=1, stop=stop) as seat:
            if seat is None:
                return 0
            if state is not None and self._scheduler.restore(seat, tokens, state):
                return 0
            cold, began = seat.keep, time.monotonic()
            work = self._scheduler.evaluate(seat, tokens[cold:], stop)
            slow = time.monotonic() - began >= self._worth_s
            if work.row is not None and slow:
                self._store.put(self._owner, tokens, self._scheduler.save(seat, len(tokens)))
            return work.evaluated
