"""A benchmark's result, as a table or as one JSON document; and how it tells that it goes on.

The document: ``bench``, ``toolsrv`` and other versions, ``machine``, ``options``, ``figures`` by
name, ``details``. Nothing but the result is written on stdout.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from pydantic import BaseModel, ConfigDict, Field

from toolsrv_catalogs.text import clean
from toolsrv_lab.bench.figures import Figure
from toolsrv_lab.bench.machine import machine, versions

if TYPE_CHECKING:  # rich is loaded when something is shown
    from rich.console import Console

_PIPE_WIDTH = 160
_CELL = 400

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document on stdout, nothing else."
)


MODELS = "toolsrv.model_list"
"""In a context's ``meta``: returns the file that a name stands for, where there is a list."""


class ModelFile(click.Path):
    """A GGUF file, by its path or name: what is measured here is evaluated here."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path; refuse a server's address for what it is."""
        from toolsrv_runtime.models.openai import is_url  # noqa: PLC0415 - only with --model

        if is_url(str(value)):
            self.fail(
                f"{str(value)!r} is the address of a server, and only a GGUF file of this machine "
                "can be measured",
                param,
                ctx,
            )
        named = ctx.meta.get(MODELS) if ctx is not None else None
        return super().convert(named(str(value)) if named else value, param, ctx)


model_option = click.option(
    "--model",
    type=ModelFile(path_type=Path),
    metavar="NAME|FILE",
    help="GGUF file of the model, or its name on the list. [default: the one that ships]",
)
threads_option = click.option(
    "--threads", type=click.IntRange(1, 1024), help="Model threads. [default: all cores]"
)


class Report(BaseModel):
    """What a benchmark found. ``machine`` is as it was before the measuring began."""

    model_config = ConfigDict(frozen=True)

    bench: str
    options: dict[str, Any]
    figures: dict[str, Figure]
    details: dict[str, Any] = Field(default_factory=dict)
    machine: dict[str, str | int | float] = Field(default_factory=machine)
    versions: dict[str, str] = Field(default_factory=versions)


def example(line: str) -> str:
    """Return a command's epilog that shows how it is called."""
    return f"\b\nExample:\n  {line}"


def emit(report: Report, *, as_json: bool) -> None:
    """Print a report on stdout: one JSON document, or its figures as a table."""
    if as_json:
        click.echo(json.dumps(report.model_dump(), indent=2))
        return
    table(
        ("figure", "unit", "min#", "median#", "p95#", "max#", "n#"),
        [
            (one.label, one.unit, *map(number, (one.min, one.median, one.p95, one.max)), one.count)
            for one in report.figures.values()
        ],
    )


def emit_machine(report: Report) -> None:
    """Print under a table what it was measured on."""
    m = report.machine
    console().print(
        f"toolsrv {report.versions['toolsrv']}, Python {m['python']}, {m['cpu']}, "
        f"{m['cores']} cores, load {m['load']} at the start"
    )


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table on stdout; columns whose name ends in ``#`` are numbers."""
    from rich.table import Table  # noqa: PLC0415 - for those who want a table
    from rich.text import Text  # noqa: PLC0415 - as above

    grid = Table(header_style="bold")
    for name in columns:
        right = name.endswith("#")
        grid.add_column(name.rstrip("#"), justify="right" if right else "left", no_wrap=right)
    for row in rows:
        grid.add_row(*(Text(clean(str(cell), _CELL).replace("\n", " ")) for cell in row))
    console().print(grid)


def console() -> Console:
    """Return a console on stdout that takes text literally and tells when its reader left."""
    from rich.console import Console  # noqa: PLC0415 - for those who want a table

    class Plain(Console):
        """A console that leaves a reader who went away to whoever runs the command."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    width = None if sys.stdout.isatty() else _PIPE_WIDTH
    return Plain(file=sys.stdout, markup=False, emoji=False, highlight=False, width=width)


def number(value: float | None) -> str:
    """Return a number with four significant digits, or all of its whole part; "" for None."""
    return "" if value is None else f"{value:,.4g}" if value < 10_000 else f"{value:,.0f}"


def tell(text: str) -> None:
    """Say on stderr what is being measured."""
    click.echo(clean(text, _CELL).replace("\n", " "), err=True)
