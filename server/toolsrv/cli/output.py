"""Where the command line writes: results on stdout, everything else on stderr.

Text from outside is made plain here, and rich never reads it as markup.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from toolsrv.plain import plain
from toolsrv_catalogs.text import escaped
from toolsrv_registry import wellformed

if TYPE_CHECKING:  # rich is loaded when something is shown
    from rich.console import Console

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
        """A console that leaves a reader who went away to the rim."""

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
    """Print a table on stdout; columns whose name ends in ``#`` are numbers."""
    from rich.table import Table
    from rich.text import Text

    grid = Table(title=title, title_justify="left", header_style="bold")
    for name in columns:
        right = name.endswith("#")
        grid.add_column(
            name.rstrip("#"), justify="right" if right else "left", overflow="fold", no_wrap=right
        )
    for row in rows:
        grid.add_row(*(Text(plain(str(cell))) for cell in row))
    console().print(grid)


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
