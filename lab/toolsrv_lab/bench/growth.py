"""``toolsrv bench growth``: build, search, memory and disk over the number of APIs.

Figures are shown as a table and as a picture of four panels.
"""

from __future__ import annotations

import io
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from toolsrv_lab.bench.catalog import (
    Level,
    build_known,
    catalog_option,
    count_option,
    measure,
    queries,
    queries_option,
    seed_option,
)
from toolsrv_lab.bench.report import (
    Figure,
    Report,
    emit_machine,
    example,
    figure,
    json_option,
    machine,
    number,
    percentile,
    report_progress,
    table,
)
from toolsrv_lab.bench.scratch import scratch_folder
from toolsrv_lab.extras import load
from toolsrv_registry.errors import UsageError
from toolsrv_runtime.files import open_atomic

if TYPE_CHECKING:
    from toolsrv_lab.bench.catalog import Level

_BLUE, _ORANGE, _GREY = "#1f6fb2", "#d9822b", "#9a9a9a"


@dataclass(frozen=True)
class Build:
    """Seconds of a build: with encoding (perhaps ``estimated``), and of the index alone if known."""

    whole: float
    index: float | None
    estimated: bool


def check_plot(path: Path) -> None:
    """Raise UsageError when ``plot`` could not write ``path``; nothing was measured yet."""
    load("matplotlib")
    if path.suffix != ".svg":
        raise UsageError(f"{str(path)!r} is not the name of an SVG file", hint="end it in .svg")
    if not path.absolute().parent.is_dir():
        raise UsageError(
            f"there is no folder {str(path.absolute().parent)!r}", hint="make it first"
        )


def growth_figure(levels: Sequence[Level], builds: Sequence[Build], path: Path) -> None:
    """Draw build, search, memory and disk into an SVG file.

    Raises:
        UsageError: matplotlib is not installed.
    """
    matplotlib = load("matplotlib")
    figures = load("matplotlib.figure")
    settings = {"svg.fonttype": "none", "svg.hashsalt": "toolsrv", "font.size": 9}
    with matplotlib.rc_context(settings):
        picture = figures.Figure(figsize=(9, 6), layout="constrained")
        panels = picture.subplots(2, 2).flat
        apis = [level.apis for level in levels]
        searches = [sorted(1000 * seconds for seconds in level.searches) for level in levels]
        lines = {"with encoding": [build.whole for build in builds]}
        if any(build.index is not None for build in builds):
            lines["the index alone"] = [build.index or float("nan") for build in builds]
        _panel(next(panels), "build the index, s", apis, lines)
        _panel(
            next(panels),
            "search, ms",
            apis,
            {
                "p50": [statistics.median(one) for one in searches],
                "p95": [percentile(one, 95) for one in searches],
            },
        )
        memory = [level.serving or float("nan") for level in levels]
        _panel(next(panels), "memory of a server, MiB", apis, {"": memory})
        sizes = [sum(level.disk.values()) for level in levels]
        _panel(next(panels), "disk, MiB", apis, {"": sizes})
        if any(build.estimated for build in builds):
            picture.suptitle("hollow: encoding at the rate of the smallest catalog", fontsize=9)
        _mark_point(picture, apis, builds)
        buffer = io.BytesIO()
        picture.savefig(buffer, format="svg", metadata={"Date": None})
    write_picture(path, buffer.getvalue())


def _panel(axes: Any, title: str, apis: Sequence[int], lines: dict[str, list[float]]) -> None:
    axes.set_title(title)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(apis, [f"{count:,}" for count in apis])
    axes.minorticks_off()
    top = max(lines.values(), key=lambda values: values[0])
    for color, (label, values) in zip((_BLUE, _ORANGE), lines.items(), strict=False):
        axes.plot(apis, values, "o-", color=color, label=label or None)
        for count, value in zip(apis, values, strict=True):
            axes.annotate(
                f"{value:,.3g}" if value < 1000 else f"{value:,.0f}",
                (count, value),
                textcoords="offset points",
                xytext=(0, 7 if values is top else -14),
                ha="center",
            )
    # What twice the APIs cost when everything doubles.
    first = next(iter(lines.values()))[0]
    axes.plot(apis, [first * count / apis[0] for count in apis], ":", color=_GREY, label="linear")
    axes.margins(0.15, 0.2)
    axes.legend(frameon=False, fontsize=8)


def _mark_point(picture: Any, apis: Sequence[int], builds: Sequence[Build]) -> None:
    """Draw the points of the first panel hollow where not all was measured."""
    axes = picture.axes[0]
    for count, build in zip(apis, builds, strict=True):
        if build.estimated:
            axes.plot([count], [build.whole], "o", color=_BLUE, markerfacecolor="white")


def write_picture(path: Path, content: bytes) -> None:
    """Write a file that appears when it is complete."""
    with open_atomic(path) as file:
        file.write(content)


_MOST = 1_000


def _sizes(ctx: click.Context, param: click.Parameter, value: str) -> tuple[int, ...]:
    """Return numbers of copies, in ascending order, beginning with 1."""
    try:
        sizes = tuple(int(part) for part in value.split(","))
    except ValueError:
        raise click.BadParameter(
            f"{value!r} is no list of numbers such as 1,4,16", ctx, param
        ) from None
    if sizes[0] != 1 or list(sizes) != sorted(set(sizes)) or sizes[-1] > _MOST:
        raise click.BadParameter(f"{value!r} does not grow from 1 to at most {_MOST}", ctx, param)
    return sizes


@click.command(epilog=example("toolsrv bench growth --catalog toolenv.tar.gz --plot growth.svg"))
@catalog_option
@queries_option
@count_option
@click.option(
    "--copies",
    "sizes",
    callback=_sizes,
    default="1,4,16",
    show_default=True,
    metavar="N,…",
    help="Sizes, as multiples of the catalog.",
)
@click.option(
    "--encode",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Up to this size vectors are computed; beyond, those of copies are made with noise.",
)
@click.option(
    "--plot",
    "picture",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Draw the figures into an SVG file too (extra lab).",
)
@seed_option
@json_option
def growth(
    source: Path,
    queries_file: Path | None,
    count: int,
    sizes: tuple[int, ...],
    encode: int,
    picture: Path | None,
    seed: int,
    as_json: bool,
) -> None:
    """Measure a catalog and larger ones made of it, with varied texts."""
    if picture is not None:
        check_plot(picture)
    before = machine()
    texts = queries(source, queries_file, count, seed)
    with scratch_folder() as folder:
        levels = [
            measure(
                folder / str(copies),
                source,
                texts,
                copies=copies,
                runs=1,
                seed=seed,
                base=folder / "1" if copies > encode else None,
            )
            for copies in sizes
        ]
        known = None
        if sizes[-1] > encode:
            known = build_known(folder / "known", source, folder / "1", seed)
    builds = split(levels, known)
    report = Report(
        bench="growth",
        options={
            "catalog": source.name,
            "queries": len(texts),
            "copies": list(sizes),
            "encode": encode,
            "seed": seed,
        },
        figures={key: one for level in levels for key, one in _figures(level).items()},
        details={
            "levels": [_row(level, build) for level, build in zip(levels, builds, strict=True)]
        },
        machine=before,
    )
    if picture is not None:
        growth_figure(levels, builds, picture)
        report_progress(f"drawn: {picture}")
    if as_json:
        click.echo(report.model_dump_json(indent=2))
        return
    _show(report)
    if any(build.estimated for build in builds):
        click.echo("~: the index was built of vectors made with noise; encoding at the rate of 1x")
    emit_machine(report)


def split(levels: Sequence[Level], known: float | None) -> list[Build]:
    """Return what of each build was measured and what is told from the first level.

    ``known`` are the seconds of the first level's build with all vectors known.
    """
    first = levels[0]
    rate = None if known is None else max(0.0, first.build - known) / first.documents
    found = []
    for level in levels:
        if level.encoded:
            index = known if level is first else None
            found.append(Build(whole=level.build, index=index, estimated=False))
        else:
            # A level that was not encoded comes with ``known``.
            whole = level.build + (rate or 0.0) * level.documents
            found.append(Build(whole=whole, index=level.build, estimated=True))
    return found


def _figures(level: Level) -> dict[str, Figure]:
    size = f"{level.copies}x"
    return {
        f"build_{size}": figure(f"{size}: build the index", "s", [level.build]),
        f"search_{size}": figure(
            f"{size}: search", "ms", [1000 * seconds for seconds in level.searches]
        ),
        f"serving_{size}": figure(f"{size}: memory of a server", "MiB", [level.serving]),
        f"disk_{size}": figure(f"{size}: disk", "MiB", [sum(level.disk.values())]),
    }


def _row(level: Level, build: Build) -> dict[str, Any]:
    fresh = level.imports[0]
    return {
        "copies": level.copies,
        "encoded": level.encoded,
        "apis": level.apis,
        "documents": level.documents,
        "import_s": fresh["read"] + fresh["store"],
        "build_s": build.whole,
        "build_estimated": build.estimated,
        "build_index_s": build.index,
        "build_peak_mib": level.build_peak,
        "first_s": level.first,
        "reopen_s": level.found[0],
        "serving_mib": level.serving,
        "disk_mib": level.disk,
    }


def _show(report: Report) -> None:
    rows: Sequence[dict[str, Any]] = report.details["levels"]
    table(
        (
            "size",
            "APIs#",
            "import s#",
            "build s#",
            "of it index s#",
            "reopen s#",
            "search p50 ms#",
            "p95 ms#",
            "server MiB#",
            "disk MiB#",
        ),
        [
            (
                f"{row['copies']}x",
                f"{row['apis']:,}",
                number(row["import_s"]),
                f"{'~' if row['build_estimated'] else ''}{number(row['build_s'])}",
                number(row["build_index_s"]),
                number(row["reopen_s"]),
                number(report.figures[f"search_{row['copies']}x"].median),
                number(report.figures[f"search_{row['copies']}x"].p95),
                number(row["serving_mib"]),
                number(sum(row["disk_mib"].values())),
            )
            for row in rows
        ],
    )
