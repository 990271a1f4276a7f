"""A table of the paper: rows measured here and rows as published, as Markdown, JSON and a plot.

A value that was measured here carries how: command, seed, world, share of simulated responses. A
published value carries none of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict

from toolsrv_lab.evaluation.statistics import Mean, Share

HERE, PAPER = "here", "paper"
AVERAGE = "average"
"""Column over all queries; in published rows the mean of the subsets."""


class Provenance(BaseModel):
    """How a value was made.

    ``world``: where responses came from. ``simulated``: of the responses, those that were
    simulated; None where that is not known or there are none. ``judge`` is empty where nobody judges.
    ``seconds``: the mean time of a query, None where nothing was solved.
    """

    model_config = ConfigDict(frozen=True)

    command: str
    seed: int
    world: str
    simulated: Share | None = None
    judge: str = ""
    seconds: float | None = None


class Value(BaseModel):
    """One cell: a value with its 95 % interval; ``count`` of ``of`` where it is a share.

    Shares are in per cent, and ``percent`` says so. The interval is None where there is none: of counts, of one value, and
    of published values. ``digits`` are those after the point that a person is shown.
    """

    model_config = ConfigDict(frozen=True)

    value: float
    low: float | None = None
    high: float | None = None
    count: int | None = None
    of: int | None = None
    digits: int = 1
    percent: bool = True
    made: Provenance | None = None

    @property
    def text(self) -> str:
        """The value as a person reads it: ``12/20 = 60 (39-78)``."""
        shown = f"{self.value:,.{self.digits}f}"
        if self.low is None or self.high is None:
            return shown
        counted = f"{self.count}/{self.of} = " if self.count is not None else ""
        digits = 0 if self.percent else self.digits
        return f"{counted}{shown} ({self.low:.{digits}f}-{self.high:.{digits}f})"


class Row(BaseModel):
    """A row: ``source`` is ``here`` or ``paper``; ``cells`` by column, missing where unknown."""

    model_config = ConfigDict(frozen=True)

    name: str
    source: str
    cells: dict[str, Value]


class PaperTable(BaseModel):
    """A table, or one ``measure`` of it. ``notes`` say what a reader has to know of the rows."""

    model_config = ConfigDict(frozen=True)

    number: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    published: str
    notes: tuple[str, ...] = ()
    measure: str = ""

    @property
    def measured(self) -> list[Row]:
        """The rows that were measured here and have a value."""
        return [row for row in self.rows if row.source == HERE and row.cells]


class ValueBar(NamedTuple):
    """A value in per cent as a bar of a plot (``statistics.PlottedRate``)."""

    rate: float
    low: float
    high: float
    of: int


def bars(table: PaperTable) -> dict[str, dict[str, ValueBar]]:
    """Return the measured rows as series of a plot."""
    return {
        row.name: {
            name: ValueBar(one.value / 100, _fraction(one, one.low), _fraction(one, one.high), 1)
            for name in table.columns
            if (one := row.cells.get(name)) is not None
        }
        for row in table.measured
    }


def marks(table: PaperTable, name: str) -> dict[str, float]:
    """Return a published row as lines of a plot."""
    found = [row for row in table.rows if row.source == PAPER and row.name == name]
    return {column: one.value / 100 for row in found for column, one in row.cells.items()}


def _fraction(one: Value, end: float | None) -> float:
    return (one.value if end is None else end) / 100


def share_value(share: Share, made: Provenance | None = None) -> Value | None:
    """Return a share in per cent, None for a share of nothing."""
    if not share.of:
        return None
    return Value(
        value=round(100 * share.rate, 2),
        low=round(100 * share.low, 2),
        high=round(100 * share.high, 2),
        count=share.count,
        of=share.of,
        made=made,
    )


def mean_value(
    mean: Mean, of: int, made: Provenance | None = None, *, scale: float = 1.0
) -> Value | None:
    """Return a mean of ``of`` values, None where there was none; times 100 it is in per cent."""
    if mean.mean is None:
        return None
    low, high = (None if one is None else scale * one for one in (mean.low, mean.high))
    return Value(value=scale * mean.mean, low=low, high=high, of=of, percent=scale != 1, made=made)


def published_row(name: str, columns: Sequence[str], values: str) -> Row:
    """Return a row of the paper from numbers with spaces between; ``-`` is a missing one."""
    cells = {
        column: Value(value=float(text), digits=len(text.partition(".")[2]))
        for column, text in zip(columns, values.split(), strict=True)
        if text != "-"
    }
    return Row(name=name, source=PAPER, cells=cells)


def markdown(tables: Sequence[PaperTable]) -> str:
    """Return tables with their notes, and at the end how each row was made."""
    lines: list[str] = []
    for one in tables:
        lines += _table(one)
    made = _made(tables)
    if made:
        lines += ["## How the rows marked here were made", "", *made, ""]
    return "\n".join(lines)


def _table(table: PaperTable) -> list[str]:
    lines = [f"## Table {table.number}: {table.title}", ""]
    lines += [_line(("source", "", *table.columns)), _line(["---"] * (2 + len(table.columns)))]
    for row in table.rows:
        texts = [row.cells[name].text if name in row.cells else "" for name in table.columns]
        shown = [row.source, row.name, *texts]
        if row.source == PAPER:
            shown = [f"*{one}*" if one else "" for one in shown]
        lines.append(_line(shown))
    lines.append("")
    if any(row.source == PAPER for row in table.rows):
        lines += [f"Rows marked *paper* are {table.published}. They were not measured here.", ""]
    return [*lines, *(f"{note}\n" for note in table.notes)]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(one.replace('|', '/') for one in cells)} |"


def _made(tables: Sequence[PaperTable]) -> list[str]:
    """Return a line for each row and command, with the tables that have it."""
    found: dict[str, list[str]] = {}
    for table in tables:
        name = f"{table.number} ({table.measure})" if table.measure else table.number
        for row in table.measured:
            for text in _row_made(row):
                found.setdefault(f"{row.name}: {text}", []).append(name)
    return [f"- Table {', '.join(names)}; {text}" for text, names in found.items()]


def _row_made(row: Row) -> list[str]:
    """Return a text for each command of a row; simulated responses by column."""
    commands: dict[tuple[str, int, str, str], list[str]] = {}
    seconds: dict[tuple[str, int, str, str], float] = {}
    for column, cell in row.cells.items():
        if (made := cell.made) is None:
            continue
        key = (made.command, made.seed, made.world, made.judge)
        of = made.simulated
        commands.setdefault(key, []).extend(
            [f"{column} {of.count}/{of.of}"] if of and of.of else []
        )
        if made.seconds is not None:
            seconds[key] = made.seconds  # the last column is that of all queries
    return [
        f"`{key[0]}`, seed {key[1]}; world: {key[2]}"
        + (f"; judge: {key[3]}" if key[3] else "")
        + (f"; {seconds[key]:.1f} s a query" if key in seconds else "")
        + (f"; simulated responses: {_once(simulated)}" if simulated else "")
        for key, simulated in commands.items()
    ]


def _once(simulated: Sequence[str]) -> str:
    """Return shares by column, one that all columns have once."""
    shares = {one.rpartition(" ")[2] for one in simulated}
    return shares.pop() if len(shares) == 1 else ", ".join(simulated)
