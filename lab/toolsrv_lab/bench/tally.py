"""Verdicts on tasks, counted by kind and shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from toolsrv_lab.bench.figures import significant, wilson
from toolsrv_lab.bench.report import number, table

if TYPE_CHECKING:  # the runtime is loaded by the command
    from toolsrv_lab.solving import Verdict

_JUDGED = ("offered", "right_calls", "right_answer", "both")
_TOKENS = ("prompt_tokens", "evaluated_tokens", "generated_tokens", "forced_tokens")
_KINDS = ("single", "two", "three", "none")
_ALL = "all"


def by_kind(verdicts: Sequence[Verdict]) -> dict[str, dict[str, Any]]:
    """Return per kind of task, and for ``all``, the counts with their intervals, and the sums."""
    present = {one.kind for one in verdicts}
    kinds = [kind for kind in _KINDS if kind in present]
    return {
        kind: _summary([one for one in verdicts if kind in (one.kind, _ALL)])
        for kind in (*kinds, _ALL)
    }


def _summary(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    found: dict[str, Any] = {"tasks": len(verdicts)}
    for name in _JUDGED:
        right = sum(one.solved if name == "both" else getattr(one, name) for one in verdicts)
        low, high = wilson(right, len(verdicts))
        found[name] = {"count": right, "low": round(low, 4), "high": round(high, 4)}
    found["seconds"] = significant(sum(one.usage.seconds for one in verdicts))
    for name in _TOKENS:
        found[name] = sum(getattr(one.usage, name) for one in verdicts)
    return found


def show_kinds(kinds: dict[str, dict[str, Any]]) -> None:
    """Print the table of ``by_kind``."""
    columns = ["kind", "tasks#", *(f"{name.replace('_', ' ')}#" for name in _JUDGED)]
    table(
        [*columns, "seconds#", "in prompts#", "evaluated#", "replied#", "forced#"],
        [
            (
                kind,
                one["tasks"],
                *(_share(one[name]) for name in _JUDGED),
                number(one["seconds"]),
                *(f"{one[name]:,}" for name in _TOKENS),
            )
            for kind, one in kinds.items()
        ],
    )


def _share(judged: dict[str, Any]) -> str:
    low, high = 100 * judged["low"], 100 * judged["high"]
    return f"{judged['count']} ({low:.0f}-{high:.0f} %)"


def show_tasks(verdicts: Sequence[Verdict]) -> None:
    """Print a line for each task."""

    def mark(good: bool) -> str:
        return "yes" if good else "no"

    table(
        ("task", "kind", "status", "offered", "calls", "answer", "s#", "said"),
        [
            (
                one.id,
                one.kind,
                one.status,
                mark(one.offered),
                mark(one.right_calls),
                mark(one.right_answer),
                f"{one.usage.seconds:.2f}",
                one.answer,
            )
            for one in verdicts
        ],
    )
