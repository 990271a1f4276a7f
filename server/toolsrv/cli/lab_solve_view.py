"""What ``toolsrv lab eval solve`` prints: tables of shares, costs and differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from toolsrv.cli.output import table

if TYPE_CHECKING:
    from toolsrv_lab.evaluation.statistics import Difference, Mean, Share
    from toolsrv_lab.evaluation.strategies import Compared, Summary

_COSTS = ("replies", "calls", "tokens", "seconds")
_SHARES = {
    "functions": "right_functions",
    "arguments": "right_arguments",
    "answer": "right_answer",
    "solved": "solved",
    "gave up": "gave_up",
    "wrong claim": "wrong_claims",
}


def show(figures: Mapping[str, Mapping[str, Summary]], compared: Sequence[Compared]) -> None:
    """Print figures by strategy and kind, and how the strategies differ."""
    for name, kinds in figures.items():
        columns = ("kind", "tasks#", *(f"{column}#" for column in _SHARES))
        rows = [
            (kind, one.tasks, *(share_cell(getattr(one, key)) for key in _SHARES.values()))
            for kind, one in kinds.items()
        ]
        table(columns, rows, title=f"{name}: % of the tasks (95 % interval)")
    costs = [
        (name, kind, *(_cost(getattr(one, key)) for key in _COSTS))
        for name, kinds in figures.items()
        for kind, one in kinds.items()
    ]
    table(
        ("strategy", "kind", *(f"{key}#" for key in _COSTS)),
        costs,
        title="per task: mean (95 % interval), 95th percentile",
    )
    if compared:
        _differences(compared)


def _differences(compared: Sequence[Compared]) -> None:
    """Print a row for each measure and a column for each two strategies."""
    pairs = list(dict.fromkeys((one.first, one.second) for one in compared))
    cells = {(one.measure, one.first, one.second): one.difference for one in compared}
    rows = [
        (
            measure.replace("_", " ") + ("" if measure in _COSTS else ", points"),
            *(_difference(cells[measure, *pair], measure) for pair in pairs),
        )
        for measure in dict.fromkeys(one.measure for one in compared)
    ]
    columns = ("difference", *(f"{first} - {second}#" for first, second in pairs))
    table(columns, rows, title="on the same tasks (95 % interval)")


def share_cell(one: Share) -> str:
    """Return a share as ``72 (58-83)``, in per cent; empty for a share of nothing."""
    return f"{100 * one.rate:.0f} ({100 * one.low:.0f}-{100 * one.high:.0f})" if one.of else ""


def _cost(one: Mean) -> str:
    if one.mean is None or one.p95 is None:
        return ""
    if one.low is None or one.high is None:
        return f"{one.mean:,.3g}, {one.p95:,.3g}"
    return f"{one.mean:,.3g} ({one.low:,.3g}-{one.high:,.3g}), {one.p95:,.3g}"


def _difference(one: Difference, measure: str) -> str:
    if one.value is None:
        return ""
    if one.low is None or one.high is None:
        return f"{one.value:+,.3g}"
    if measure in _COSTS:
        return f"{one.value:+,.3g} ({one.low:+,.3g} to {one.high:+,.3g})"
    return f"{100 * one.value:+.0f} ({100 * one.low:+.0f} to {100 * one.high:+.0f})"
