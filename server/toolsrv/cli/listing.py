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


def listing(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print rows on stdout; the first column names them, those with ``#`` are numbers."""
    from rich.table import Table
    from rich.text import Text

    out = console()
    heads = [name.rstrip("#") for name in columns]
    cells = [[plain(str(cell)) for cell in row] for row in rows]
    if _needed(columns, cells) > out.width:
        for row in cells:
            out.print(Text(row[0], style="bold"), soft_wrap=True)
            for head, cell in zip(heads[1:], row[1:], strict=True):
                if cell:
                    out.print(Text(f"  {head}: {cell}"), soft_wrap=True)
        return
    grid = Table(header_style="bold")
    for number, name in enumerate(columns):
        right = name.endswith("#")
        grid.add_column(
            heads[number],
            justify="right" if right else "left",
            overflow="fold",
            no_wrap=right or not number,
        )
    for row in cells:
        grid.add_row(*map(Text, row))
    out.print(grid)


def _needed(columns: Sequence[str], cells: Sequence[Sequence[str]]) -> int:
    """Return how wide a table is in which names and numbers are whole and texts readable."""
    width = 1
    for number, name in enumerate(columns):
        longest = max((len(row[number]) for row in cells), default=0)
        whole = not number or name.endswith("#")
        width += _FRAME + max(len(name.rstrip("#")), longest if whole else min(longest, _READABLE))
    return width
