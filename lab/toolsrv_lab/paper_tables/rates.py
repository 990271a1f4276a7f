"""Pass rates, win rates, wins and ties by subset, as tables 3, 4, 6 and the one on fine-tuning."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from toolsrv_lab.evaluation.statistics import Share, mean_in_unit, share
from toolsrv_lab.paper_tables import published
from toolsrv_lab.paper_tables.subsets import SUBSETS, TYPES, ordered, type_of
from toolsrv_lab.paper_tables.table import (
    AVERAGE,
    HERE,
    PaperTable,
    Provenance,
    Row,
    Value,
    mean_value,
    share_value,
)
from toolsrv_lab.tooleval.pass_rate import Label
from toolsrv_lab.tooleval.win_rate import Comparison

_SCORES = {"b": 1.0, "tie": 0.5, "a": 0.0}


@dataclass(frozen=True, slots=True)
class Judged:
    """The judged answers of one row by subset. ``won`` is empty for the reference of win rates.

    ``made`` returns how a value of a table's number came about, with the reference or without.
    """

    name: str
    made: Callable[[str, bool], Provenance]
    passed: Mapping[str, Mapping[str, Label]]
    simulated: Mapping[str, Share] = field(default_factory=dict)
    seconds: Mapping[str, Sequence[float]] = field(default_factory=dict)
    won: Mapping[str, Mapping[str, Comparison]] = field(default_factory=dict)


Measure = Callable[[Judged, Sequence[str], Provenance], Value | None]
"""Returns a row's value over some subsets."""


def passed(row: Judged, subsets: Sequence[str], made: Provenance) -> Value | None:
    """Return the pass rate."""
    labels = [one for name in subsets for one in row.passed.get(name, {}).values()]
    return share_value(share(one.passed for one in labels), made)


def won(row: Judged, subsets: Sequence[str], made: Provenance) -> Value | None:
    """Return the win rate with half of the ties."""
    scores = [_SCORES[one] for one in _preferences(row, subsets)]
    return mean_value(mean_in_unit(scores), len(scores), made, scale=100)


def wins(row: Judged, subsets: Sequence[str], made: Provenance) -> Value | None:
    """Return the share of wins without ties."""
    return share_value(share(one == "b" for one in _preferences(row, subsets)), made)


def ties(row: Judged, subsets: Sequence[str], made: Provenance) -> Value | None:
    """Return the share of ties."""
    return share_value(share(one == "tie" for one in _preferences(row, subsets)), made)


def _preferences(row: Judged, subsets: Sequence[str]) -> list[str]:
    return [one.preference for name in subsets for one in row.won.get(name, {}).values()]


_MEASURES: Mapping[str, Measure] = {"pass": passed, "win": won, "wins": wins, "ties": ties}


def strategies_table(rows: Sequence[Judged], subsets: Sequence[str]) -> PaperTable:
    """Return Table 3 of the rows among oracle APIs."""
    types = ordered(map(type_of, subsets), TYPES)
    groups = {name: [one for one in subsets if type_of(one) == name] for name in types}
    return PaperTable(
        number="3",
        title="strategies by instruction type, pass rate in per cent",
        columns=_columns(published.STRATEGY_COLUMNS, types),
        rows=(*_rows(rows, groups, "3", "pass"), *published.STRATEGIES),
        published=f"{published.PAPER_V2}, Table 3",
        notes=(
            (
                "ReACT@N repeats ReACT, at most until it has had as many replies of the model as DFSDT had "
                "on the same query, and ends with the first answer."
            ),
            *_notes(subsets),
        ),
    )


def main_tables(
    rows: Sequence[Judged], subsets: Sequence[str], reference: str
) -> tuple[PaperTable, PaperTable]:
    """Return Table 4: pass rate and win rate. ``reference`` is the row that others are compared with."""
    return (
        _subset_table("4", "pass rate in per cent", rows, subsets, "pass", published.PASS_RATES),
        _subset_table(
            "4", "win rate in per cent", rows, subsets, "win", published.WIN_RATES,
            f"Compared here with {reference}, in the paper with ChatGPT-ReACT: the two do not compare. "
            "A win rate has half of the ties.",
        ),
    )  # fmt: skip


def tie_tables(
    rows: Sequence[Judged], subsets: Sequence[str], reference: str
) -> tuple[PaperTable, PaperTable]:
    """Return Table 6: wins and ties before ties are halved."""
    note = f"Compared here with {reference}, in the paper with ChatGPT-ReACT."
    where = "Table 6; only these averages are known here"
    return (
        _subset_table("6", "wins in per cent", rows, subsets, "wins", published.WINS, note, where=where),
        _subset_table("6", "ties in per cent", rows, subsets, "ties", published.TIES, note, where=where),
    )  # fmt: skip


def tuning_tables(rows: Sequence[Judged], subsets: Sequence[str]) -> tuple[PaperTable, PaperTable]:
    """Return full fine-tuning and LoRA side by side; the first row is the reference of win rates."""
    tables = (
        _subset_table(
            "lora", "full fine-tuning and LoRA, pass rate in per cent", rows, subsets, "pass",
            published.TUNED_PASS,
        ),
        _subset_table(
            "lora", "full fine-tuning and LoRA, win rate in per cent", rows, subsets, "win",
            published.TUNED_WIN, f"Compared here with {rows[0].name}.",
        ),
    )  # fmt: skip
    first, second = (one.model_copy(update={"published": published.README_V1}) for one in tables)
    return first, second


def _subset_table(
    number: str,
    title: str,
    rows: Sequence[Judged],
    subsets: Sequence[str],
    measure: str,
    theirs: Sequence[Row],
    *notes: str,
    where: str = "",
) -> PaperTable:
    return PaperTable(
        number=number,
        title=title,
        columns=_columns(published.SUBSET_COLUMNS, ordered(subsets, SUBSETS)),
        rows=(*_rows(rows, {one: [one] for one in subsets}, number, measure), *theirs),
        published=f"{published.PAPER_V2}, {where or f'Table {number}'}",
        notes=(*notes, *_notes(subsets)),
        measure=measure,
    )


def _columns(theirs: Sequence[str], ours: Sequence[str]) -> tuple[str, ...]:
    """Return the paper's columns, then those that it does not have; the average last."""
    return (*dict.fromkeys([*(one for one in theirs if one != AVERAGE), *ours]), AVERAGE)


def _rows(
    rows: Sequence[Judged], groups: Mapping[str, Sequence[str]], number: str, measure: str
) -> list[Row]:
    found = []
    every = [one for some in groups.values() for one in some]
    for row in rows:
        cells = {}
        for column, subsets in (*groups.items(), (AVERAGE, every)):
            seconds = [one for name in subsets for one in row.seconds.get(name, ())]
            made = row.made(number, measure != "pass").model_copy(
                update={
                    "simulated": _added(row, subsets),
                    "seconds": round(sum(seconds) / len(seconds), 2) if seconds else None,
                }
            )
            if (value := _MEASURES[measure](row, subsets, made)) is not None:
                cells[column] = value
        found.append(Row(name=row.name, source=HERE, cells=cells))
    return found


def _added(row: Judged, subsets: Sequence[str]) -> Share | None:
    shares = [row.simulated[one] for one in subsets if one in row.simulated]
    if not shares:
        return None
    count, of = sum(one.count for one in shares), sum(one.of for one in shares)
    return share(at < count for at in range(of))


def _notes(subsets: Sequence[str]) -> tuple[str, ...]:
    vague = [one for one in subsets if one not in SUBSETS]
    average = "The average here is over all queries, in the paper over the subsets."
    if not vague:
        return (average,)
    return (average, f"Of {', '.join(vague)} the file of queries says no subset of the paper.")
