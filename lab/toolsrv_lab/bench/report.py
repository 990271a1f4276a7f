"""Benchmark report: measured quantities with their spread, the machine, tables and JSON.

A figure is the median of repeated measurements with percentiles.
"""

from __future__ import annotations

import importlib.metadata
import json
import math
import platform
import statistics
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import psutil
from pydantic import BaseModel, ConfigDict, Field

from toolsrv_catalogs.text import clean
from toolsrv_registry.host_resources import usable_cores

if TYPE_CHECKING:
    from rich.console import Console

# Fewer values than this have no 95th percentile of their own.
_FOR_P95 = 20
# The normal quantile of a two-sided 95 % interval.
_Z = 1.959964


class Figure(BaseModel):
    """A quantity: ``count`` values in ``unit``; the rest is None where nothing could be measured.

    ``p95`` is the nearest-rank 95th percentile, None below 20 values.
    """

    model_config = ConfigDict(frozen=True)

    label: str
    unit: str
    count: int
    min: float | None
    median: float | None
    p95: float | None
    max: float | None


def figure(label: str, unit: str, values: Iterable[float | None]) -> Figure:
    """Return the spread of the values, four significant digits each; None values are left out."""
    known = sorted(value for value in values if value is not None)
    if not known:
        return Figure(label=label, unit=unit, count=0, min=None, median=None, p95=None, max=None)
    return Figure(
        label=label,
        unit=unit,
        count=len(known),
        min=significant(known[0]),
        median=significant(statistics.median(known)),
        p95=significant(percentile(known, 95)) if len(known) >= _FOR_P95 else None,
        max=significant(known[-1]),
    )


def percentile(ordered: Sequence[float], percent: float) -> float:
    """Return the nearest-rank percentile of values in ascending order (at least one)."""
    return ordered[max(0, math.ceil(percent / 100 * len(ordered)) - 1)]


def significant(value: float) -> float:
    """Return a value with four significant digits; more would be noise."""
    return float(f"{value:.4g}") if abs(value) < 10_000 else float(round(value))


def share(part: float, whole: float) -> float | None:
    """Return ``part / whole`` in per cent, None for an empty whole."""
    return 100 * part / whole if whole else None


def wilson(successes: float, trials: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share (Wilson 1927), both ends in [0, 1].

    ``successes`` may be a sum of values in [0, 1], which spread no wider than successes and failures
    of the same mean. No trials tell nothing: (0.0, 1.0).
    """
    if not trials:
        return 0.0, 1.0
    rate, square = successes / trials, _Z**2
    centre = rate + square / (2 * trials)
    reach = _Z * math.sqrt(rate * (1 - rate) / trials + square / (4 * trials**2))
    scale = 1 + square / trials
    return max(0.0, (centre - reach) / scale), min(1.0, (centre + reach) / scale)


_PACKAGES = (
    "toolsrv",
    "mcp",
    "llama-cpp-python",
    "llguidance",
    "chromadb",
    "onnxruntime",
    "tokenizers",
)


class Memory(BaseModel):
    """A process's resident memory in MiB, now and at its peak; None where it cannot be known."""

    model_config = ConfigDict(frozen=True)

    resident: float | None = None
    peak: float | None = None


def memory(pid: int) -> Memory:
    """Return the resident memory of a process of ours."""
    lines = _lines(Path(f"/proc/{pid}/status"))
    return Memory(resident=_mebibytes(lines, "VmRSS"), peak=_mebibytes(lines, "VmHWM"))


def handles(pid: int) -> int | None:
    """Return the open file handles of a process of ours, None where they cannot be counted."""
    try:
        process = psutil.Process(pid)
        counted = getattr(process, "num_handles" if sys.platform == "win32" else "num_fds")
        return int(counted())
    except (psutil.Error, OSError):
        return None


def machine() -> dict[str, str | int | float]:
    """Return processor, usable cores, system and Python, and how busy the machine is already."""
    return {
        "cpu": _processor(),
        "cores": usable_cores(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "load": _machine_load(),
    }


def versions() -> dict[str, str]:
    """Return the versions of the packages that the figures depend on."""
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


def _mebibytes(lines: list[str], key: str) -> float | None:
    for line in lines:
        name, _, rest = line.partition(":")
        if name == key and rest.split():
            return int(rest.split()[0]) / 1024
    return None


def _processor() -> str:
    for line in _lines(Path("/proc/cpuinfo")):
        name, _, rest = line.partition(":")
        if name.strip() == "model name":
            return " ".join(rest.split())
    return platform.processor() or "unknown"


def _machine_load() -> float | str:
    try:
        return round(float(psutil.getloadavg()[0]), 2)
    except OSError:
        return "unknown"


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


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


def example(*lines: str) -> str:
    """Return a command's epilog that shows how it is called."""
    return "\b\nExample:\n" + "\n".join(f"  {line}" for line in lines)


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


def report_progress(text: str) -> None:
    """Say on stderr what is being measured."""
    click.echo(clean(text, _CELL).replace("\n", " "), err=True)
