"""A list on the terminal whose names can be copied: a table, or blocks where that is too narrow.

Like ``output.table``, but what names a row is never broken over two lines.
"""

from __future__ import annotations

from collections.abc import Sequence

from toolsrv.cli.output import console
from toolsrv.plain import plain

_READABLE = 12
"""Characters that a column of text has at least; below that its words fall apart."""
_FRAME = 3
"""Characters around a cell."""


def listing(
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    names: int = 0,
    title: str | None = None,
) -> None:
    """Print rows on stdout; column ``names`` names them, those with ``#`` are numbers.

    A column without a head marks rows.
    """
    from rich.table import Table
    from rich.text import Text

    out = console()
    heads = [name.rstrip("#") for name in columns]
    cells = [[plain(str(cell)) for cell in row] for row in rows]
    if _needed(columns, cells, names) > out.width:
        if title:
            out.print(Text(title, style="italic"))
        for row in cells:
            _block(heads, row, names)
        return
    grid = Table(title=title, title_justify="left", header_style="bold")
    for number, name in enumerate(columns):
        right = name.endswith("#")
        grid.add_column(
            heads[number],
            justify="right" if right else "left",
            overflow="fold",
            no_wrap=right or number == names,
        )
    for row in cells:
        grid.add_row(*map(Text, row))
    out.print(grid)


def _block(heads: Sequence[str], row: Sequence[str], names: int) -> None:
    """Print a row over several lines: its marks and its name, then each of the other cells."""
    from rich.text import Text

    out = console()
    marks = [cell for head, cell in zip(heads, row, strict=True) if cell and not head]
    name, *below = row[names].split("\n")
    out.print(Text(" ".join([*marks, name]), style="bold"), soft_wrap=True)
    for line in below:
        out.print(Text(f"  {line}"), soft_wrap=True)
    for number, (head, cell) in enumerate(zip(heads, row, strict=True)):
        if head and cell and number != names:
            out.print(Text(f"  {head}: " + cell.replace("\n", "\n    ")), soft_wrap=True)


def _needed(columns: Sequence[str], cells: Sequence[Sequence[str]], names: int) -> int:
    """Return how wide a table is in which names and numbers are whole and texts readable."""
    width = 1
    for number, name in enumerate(columns):
        lines = [line for row in cells for line in row[number].split("\n")]
        longest = max(map(len, lines), default=0)
        whole = number == names or name.endswith("#") or longest <= _READABLE
        width += _FRAME + max(len(name.rstrip("#")), longest if whole else _READABLE)
    return width
