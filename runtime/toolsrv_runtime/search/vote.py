"""Votes: of several answers to one task, the one whose values most of the others state. Pure.

Values are compared as the evidence check reads them: 12,300 is 12.3 thousand, 3 May 2026 is
2026-05-03. Values that the task itself states say nothing about an answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from toolsrv_runtime.evidence import trace
from toolsrv_runtime.outcome import Outcome

_RANKS = ("answered", "replied", "partial", "needs_input", "gave_up", "cancelled")


@dataclass(frozen=True, slots=True)
class Choice:
    """``index`` is the winner; ``agreed`` how many outcomes, itself included, state its values."""

    index: int
    agreed: int


def choose(outcomes: Sequence[Outcome]) -> Choice:
    """Return which outcome wins: the best status first, then agreement, then fewer untraced claims.

    Of equals the first wins. O(outcomes squared) traces of answers, each bounded.

    Raises:
        ValueError: there is none.
    """
    if not outcomes:
        raise ValueError("there is nothing to choose from")
    best = min(outcomes, key=_rank)
    rivals = [at for at, one in enumerate(outcomes) if _rank(one) == _rank(best)]
    shares = {
        at: [_share(outcomes[at], outcomes[other]) for other in rivals if other != at]
        for at in rivals
    }
    index = max(rivals, key=lambda at: (sum(shares[at]), -len(outcomes[at].unsupported), -at))
    return Choice(index, 1 + sum(share == 1 for share in shares[index]))


def _rank(outcome: Outcome) -> tuple[int, bool]:
    return _RANKS.index(outcome.status), not outcome.answer.strip()


def _share(one: Outcome, other: Outcome) -> float:
    """Return how much two answers agree, in [0, 1]: the share of their values that both state."""
    mine, theirs = _values(one, other), _values(other, one)
    every = mine + theirs
    if not every:  # nothing that can be compared but the words
        return float(_plain(one.answer) == _plain(other.answer))
    return sum(every) / len(every)


def _values(one: Outcome, other: Outcome) -> list[bool]:
    """Return of each value of an answer that the task does not state whether another states it."""
    traced = trace(one.answer, one.task, [(1, other.answer)])
    return [
        *(bool(claim.nodes) for claim in traced.supported if not claim.in_task),
        *(False for _ in traced.unsupported),
    ]


def _plain(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(".! ")
