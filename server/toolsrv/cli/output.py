"""Terminal output: results on stdout, everything else on stderr.

JSON documents, tables, lists whose names can be copied, notes, and one moving status line. Text
from outside is made plain here, and rich never reads it as markup. Imports rich only when it
prints.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import click

from toolsrv.plain import compact_json, plain
from toolsrv_catalogs.text import escaped
from toolsrv_registry import wellformed

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live
    from rich.progress import Progress

PIPE_WIDTH = 160


def emit_json(document: Any) -> None:
    """Print one JSON document on stdout in UTF-8; characters that nobody sees are escaped."""
    dumped = json.dumps(document, ensure_ascii=False, indent=2, default=str)
    text = escaped(wellformed.json_text(dumped))
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode() + b"\n")
    sys.stdout.buffer.flush()


def read_stdin() -> str:
    """Return all of stdin as text; bytes that are not UTF-8 become U+FFFD, closed is empty."""
    return "" if sys.stdin is None else sys.stdin.buffer.read().decode("utf-8", "replace")


def console(*, err: bool = False) -> Console:
    """Return a console on stdout or stderr that takes text literally."""
    from rich.console import Console

    class OurConsole(Console):
        """A console that leaves a closed stdout to the error handler."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    stream = sys.stderr if err else sys.stdout
    return OurConsole(
        file=stream,
        markup=False,
        emoji=False,
        highlight=False,
        width=None if stream.isatty() or os.environ.get("COLUMNS", "").isdecimal() else PIPE_WIDTH,
    )


def note(text: str) -> None:
    """Print a line on stderr."""
    click.echo(plain(text), err=True)


def table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], *, title: str | None = None
) -> None:
    """Print a table on stdout; columns whose name ends in ``#`` are numbers.

    Where the numbers would be cut it is a ``listing``, by the first column.
    """
    from rich.table import Table
    from rich.text import Text

    cells = [[plain(str(cell)) for cell in row] for row in rows]
    out = console()
    numbers = any(name.endswith("#") for name in columns)
    if cells and numbers and _needed(columns, cells, names=-1) > out.width:
        listing(columns, cells, title=title)
        return
    grid = Table(title=title, title_justify="left", header_style="bold")
    for name in columns:
        right = name.endswith("#")
        grid.add_column(
            name.rstrip("#"), justify="right" if right else "left", overflow="fold", no_wrap=right
        )
    for row in cells:
        grid.add_row(*map(Text, row))
    out.print(grid)


def index_progress() -> Callable[[int, int], None]:
    """Return a callback that tells on stderr, in one line, how far the index build is."""
    terminal = sys.stderr is not None and sys.stderr.isatty()
    told = 0

    def show(done: int, total: int) -> None:
        nonlocal told
        if not terminal and not told:
            note(f"building the index of {total} APIs, once")
        elif terminal and (done >= total or done >= told + max(1, total // 50)):
            end = "\n" if done >= total else ""
            click.echo(f"\rbuilding the index: {done} of {total} APIs{end}", err=True, nl=False)
        else:
            return
        told = max(done, 1)

    return show


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


def pluralize(count: int, one: str, many: str = "") -> str:
    """Return a number with its noun: "1 API", "2,000 APIs"; ``many`` where no "s" makes it."""
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"


def format_value(value: Any) -> str:
    """Return a value of a table: yes or no, numbers with few digits, "none" for nothing."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.3g}"
    if value in (None, "", [], {}, ()):
        return "none"
    return value if isinstance(value, str) else compact_json(value)


REFRESHES_PER_S = 8


class StatusLine(ABC):
    """A context with a line that says what ``status`` returns. ``quiet`` shows nothing."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._console = console(err=True)
        self._live: Live | None = None

    @abstractmethod
    def status(self) -> RenderableType:
        """Return the line as it is now; called from a thread of rich's."""

    def __enter__(self) -> Self:
        self._open()
        return self

    @contextlib.contextmanager
    def away(self) -> Iterator[None]:
        """Have no line in the block."""
        shown = self._live is not None
        self.close()
        try:
            yield
        finally:
            if shown:
                self._open()

    def _open(self) -> None:
        if not self._quiet and self._console.is_terminal:
            from rich.live import Live

            self._live = Live(
                console=self._console,
                get_renderable=self.status,
                refresh_per_second=REFRESHES_PER_S,
                transient=True,
            )
            self._live.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give the terminal back; may be called again."""
        if self._live is not None:
            self._live.stop()
            self._live = None


class Bar:
    """Progress on stderr: a bar with the time left on a terminal, elsewhere one line.

    ``show`` takes (done, total) and may be called from any thread.
    """

    def __init__(self, what: str, unit: str) -> None:
        self._what = what
        self._unit = unit
        self._progress: Progress | None = None
        self._task: Any = None
        self._told = False

    def __enter__(self) -> Self:
        screen = console(err=True)
        if screen.is_terminal:
            from rich.progress import (
                BarColumn,
                DownloadColumn,
                MofNCompleteColumn,
                Progress,
                TextColumn,
                TimeRemainingColumn,
            )

            count = DownloadColumn() if self._unit == "bytes" else MofNCompleteColumn()
            self._progress = Progress(
                TextColumn(self._what), BarColumn(), count, TimeRemainingColumn(), console=screen
            )
            self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._progress is not None:
            self._progress.stop()

    def show(self, done: int, total: int | None) -> None:
        """Say how far it is; ``total`` is None where nobody knows."""
        if self._progress is not None:
            if self._task is None:
                self._task = self._progress.add_task(self._what, total=total)
            self._progress.update(self._task, completed=done, total=total)
        elif not self._told:
            self._told = True
            note(self._what if total is None else f"{self._what}: {total} {self._unit}")
