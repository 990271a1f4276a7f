"""How well held-out rows are told: tokens, choices of a function, whole values of arguments."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple


class Scores(NamedTuple):
    """Shares of what is right to the last token, the prompt given; ``loss`` is in nats a token."""

    loss: float
    tokens: float
    choice: float
    values: float


class Tally:
    """Counts what is right. A value is what stands between ``opens`` (``": "``) and a quote."""

    def __init__(self, choices: Collection[int], opens: int, closes: int) -> None:
        self._choices, self._opens, self._closes = frozenset(choices), opens, closes
        self._right = {"tokens": [0, 0], "choice": [0, 0], "values": [0, 0]}
        self._loss = 0.0

    def add(self, hits: Sequence[bool], aims: Sequence[int], loss: float) -> None:
        """Count the predictions of a batch, in their order, and their summed loss."""
        self._loss += loss
        start = None
        for at, (hit, aim) in enumerate(zip(hits, aims, strict=True)):
            self._count("tokens", hit)
            if aim in self._choices:
                self._count("choice", hit)
            if aim == self._opens:
                start = at + 1
            elif start is not None and aim == self._closes:
                self._count("values", all(hits[start : at + 1]))
                start = None

    def scores(self) -> Scores:
        """Return the shares of what was counted."""
        shares = {name: good / max(1, of) for name, (good, of) in self._right.items()}
        return Scores(self._loss / max(1, self._right["tokens"][1]), **shares)

    def _count(self, name: str, hit: bool) -> None:
        self._right[name][0] += hit
        self._right[name][1] += 1
