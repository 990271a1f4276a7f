"""What ``toolsrv lab eval models`` prints: a row for each cell and stratum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from toolsrv.cli.lab_eval import counts_text, mean_text, share_text
from toolsrv.cli.lab_solve_view import share_cell
from toolsrv.cli.output import table

if TYPE_CHECKING:
    from toolsrv_lab.evaluation.cells import Cell
    from toolsrv_lab.evaluation.solved import SolvedFigures
    from toolsrv_lab.evaluation.strategies import Compared
    from toolsrv_lab.evaluation.toolbench_queries import QueryFigures

_ALL = "all"


def show_tasks(
    cells: Sequence[Cell],
    found: Mapping[Cell, Mapping[str, SolvedFigures]],
    compared: Sequence[Compared],
) -> None:
    """Print shares, then costs, of all cells; then how they differ from the first."""
    known = [cell for cell in cells if cell in found]
    table(
        ("model", "strategy + aids", "kind", "solved#", "calls#", "answer#", "unsupported#",
         "wrong#"),
        [
            (
                cell.model,
                cell.name,
                kind,
                share_text(one.solved),
                share_cell(one.right_calls),
                share_cell(one.right_answer),
                share_cell(one.wrong_claims),
                share_cell(one.wrong_answers),
            )
            for cell in known
            for kind, one in found[cell].items()
        ],
        title="% of the tasks (95 % interval)",
    )  # fmt: skip
    table(
        ("model", "strategy + aids", "statuses", "s#", "p95 s#", "generated#", "evaluated#",
         "replies#", "calls#"),
        [
            (
                cell.model,
                cell.name,
                counts_text(one.statuses),
                mean_text(one.seconds),
                "" if one.seconds.p95 is None else f"{one.seconds.p95:,.3g}",
                mean_text(one.generated),
                mean_text(one.evaluated),
                mean_text(one.replies),
                mean_text(one.calls),
            )
            for cell in known
            for one in (found[cell][_ALL],)
        ],
        title="means per task",
    )  # fmt: skip
    solved = [one for one in compared if one.measure == "solved"]
    if solved:
        table(
            ("cell", "less", "tasks#", "solved, points#"),
            [
                (
                    one.first,
                    one.second,
                    one.difference.pairs,
                    ""
                    if one.difference.value is None
                    else f"{100 * one.difference.value:+.0f} "
                    f"({100 * (one.difference.low or 0):+.0f} to "
                    f"{100 * (one.difference.high or 0):+.0f})",
                )
                for one in solved
            ],
            title="on the same tasks (95 % interval)",
        )


def show_queries(cells: Sequence[Cell], found: Mapping[Cell, Mapping[str, QueryFigures]]) -> None:
    """Print shares, then costs, of all cells."""
    known = [cell for cell in cells if cell in found]
    table(
        ("model", "strategy + aids", "set", "needed called#", "first relevant#", "offered#",
         "with invented#", "invented args#", "finished#"),
        [
            (
                cell.model,
                cell.name,
                name,
                share_text(one.needed_called),
                share_cell(one.first_relevant),
                share_cell(one.offered),
                share_cell(one.with_invented),
                share_cell(one.invented_arguments),
                share_cell(one.finished),
            )
            for cell in known
            for name, one in found[cell].items()
        ],
        title="% of the queries (95 % interval)",
    )  # fmt: skip
    table(
        ("model", "strategy + aids", "statuses", "s#", "generated#", "evaluated#", "calls#"),
        [
            (
                cell.model,
                cell.name,
                counts_text(one.statuses),
                mean_text(one.seconds),
                mean_text(one.generated),
                mean_text(one.evaluated),
                mean_text(one.calls),
            )
            for cell in known
            for one in (found[cell][_ALL],)
        ],
        title="means per query",
    )
