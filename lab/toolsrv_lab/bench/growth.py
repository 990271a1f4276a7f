"""``toolsrv bench growth``: how build, search, memory and disk grow with the catalog.

The catalog itself and larger ones made of it (``copies``), each measured by ``catalog.measure``.
Up to ``--encode`` copies every vector is really computed; beyond, those of copies are the
originals' with noise, so what is measured there is the index alone. What encoding would add is
told from the catalog itself, which is built both ways.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

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
from toolsrv_lab.bench.figures import Figure, figure
from toolsrv_lab.bench.growth_plot import Build, check_plot, plot
from toolsrv_lab.bench.machine import machine
from toolsrv_lab.bench.report import (
    Report,
    emit_machine,
    example,
    json_option,
    number,
    table,
    tell,
)
from toolsrv_lab.bench.scratch import scratch_folder

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
        plot(levels, builds, picture)
        tell(f"drawn: {picture}")
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
