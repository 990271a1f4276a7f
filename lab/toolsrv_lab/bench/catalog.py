"""``toolsrv bench catalog``: importing, indexing, reopening and searching a catalog of any size.

Each stage is a process of its own (``catalog_probe``) on a temporary data folder; the memory of a
serving process is that of a real ``toolsrv serve`` (``server``). ``measure`` is what ``growth``
repeats for larger catalogs.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from toolsrv_lab.bench.catalog_probe import Work
from toolsrv_lab.bench.report import (
    Figure,
    Report,
    emit,
    emit_machine,
    example,
    figure,
    json_option,
    machine,
    report_progress,
)
from toolsrv_lab.bench.scratch import scratch_folder
from toolsrv_lab.bench.stdio_server import OLD_ERA, ServerProcess
from toolsrv_registry.errors import DataError, UsageError

_PATIENCE_S = 7_200
_SERVED = 20
_MIB = 1024 * 1024

catalog_option = click.option(
    "--catalog",
    "source",
    type=click.Path(path_type=Path, exists=True),
    required=True,
    metavar="PATH",
    help="What `toolsrv catalog import` takes, such as ToolBench's toolenv.tar.gz.",
)
queries_option = click.option(
    "--queries",
    "queries_file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="Queries, as `toolsrv lab eval` takes them.  [default: drawn from the catalog]",
)
count_option = click.option(
    "--count",
    type=click.IntRange(20, 100_000),
    default=300,
    show_default=True,
    help="Searches in each reopened process.",
)
seed_option = click.option(
    "--seed", type=int, default=0, show_default=True, help="Seed of queries and copies."
)


@dataclass(frozen=True)
class Level:
    """What was measured at one size. Seconds and MiB; ``searches`` are seconds each.

    ``build`` includes encoding every text unless ``encoded`` is False: then the vectors of the
    originals were known and those of copies made of them. ``first`` is the first search after the
    build, which makes the word index; ``found`` those of the processes after it.
    """

    copies: int
    encoded: bool
    apis: int
    documents: int
    imports: Sequence[dict[str, Any]]
    build: float
    build_peak: float | None
    first: float
    found: Sequence[float]
    searches: Sequence[float]
    serving: float | None
    disk: dict[str, float]


@click.command(
    epilog=example("toolsrv bench catalog --catalog toolenv.tar.gz --queries queries.jsonl")
)
@catalog_option
@queries_option
@count_option
@click.option(
    "--runs", type=click.IntRange(1, 100), default=3, show_default=True, help="Reopenings."
)
@seed_option
@json_option
def catalog(
    source: Path, queries_file: Path | None, count: int, runs: int, seed: int, as_json: bool
) -> None:
    """Import a catalog, build its index, reopen and search it."""
    before = machine()
    texts = queries(source, queries_file, count, seed)
    with scratch_folder() as folder:
        level = measure(folder / "data", source, texts, copies=1, runs=runs, seed=seed)
    report = Report(
        bench="catalog",
        options={"catalog": source.name, "queries": len(texts), "runs": runs, "seed": seed},
        figures=_figures(level),
        details={"apis": level.apis, "documents": level.documents, "disk": level.disk},
        machine=before,
    )
    emit(report, as_json=as_json)
    if not as_json:
        emit_machine(report)


def queries(source: Path, file: Path | None, count: int, seed: int) -> tuple[str, ...]:
    """Return ``count`` texts from a file, from the beginning again where it has fewer; else drawn.

    Raises:
        DataError: The file or the catalog cannot be read.
        UsageError: The file holds no query.
    """
    if file is None:
        from toolsrv_catalogs.importer import read_catalog  # noqa: PLC0415 - heavy
        from toolsrv_lab.bench.texts import queries as drawn  # noqa: PLC0415 - with it

        return tuple(drawn(read_catalog(source).catalog.apis, count, seed))
    from toolsrv_lab.retrieval.queries import read_queries  # noqa: PLC0415 - as above

    texts = [one.query for one in read_queries(file) if one.query.strip()]
    if not texts:
        raise UsageError(f"there is no query in {file}", hint='write lines like {"query": "…"}')
    return tuple(texts[at % len(texts)] for at in range(count))


def measure(
    folder: Path,
    source: Path,
    texts: Sequence[str],
    *,
    copies: int,
    runs: int,
    seed: int,
    base: Path | None = None,
) -> Level:
    """Measure one size in an empty ``folder``; with ``base`` vectors are not encoded.

    Raises:
        DataError: A process failed, or searched without vectors.
    """
    options: dict[str, Any] = {
        "folder": folder, "catalog": source, "copies": copies, "seed": seed, "base": base
    }  # fmt: skip
    report_progress(f"{copies}x: importing")
    imports = [_run(Work(stage="import", **options)) for _ in range(2)]
    if imports[1]["changed"]:
        raise DataError(f"importing again changed {imports[1]['changed']} APIs")
    report_progress(f"{copies}x: building the index of {imports[0]['apis']} APIs")
    built = _run(Work(stage="build", **options))
    report_progress(f"{copies}x: searching")
    first = _searched(Work(stage="search", **options))
    runs_of = [
        _searched(Work(stage="search", queries=tuple(texts), **options)) for _ in range(runs)
    ]
    return Level(
        copies=copies,
        encoded=base is None,
        apis=imports[0]["apis"],
        documents=built["documents"],
        imports=imports,
        build=built["build"],
        build_peak=built["peak"],
        first=first["found"],
        found=[one["found"] for one in runs_of],
        searches=[seconds for one in runs_of for seconds in one["searches"]],
        serving=serving(folder, texts),
        disk=disk(folder),
    )


def build_known(folder: Path, source: Path, base: Path, seed: int) -> float:
    """Return the seconds of building the catalog's index where every vector is known already.

    Raises:
        DataError: A process failed.
    """
    report_progress("1x: building the index of known vectors")
    _run(Work(stage="import", folder=folder, catalog=source, seed=seed))
    built = _run(Work(stage="build", folder=folder, catalog=source, seed=seed, base=base))
    return float(built["build"])


def serving(folder: Path, texts: Sequence[str]) -> float | None:
    """Return the memory in MiB of a server on this folder that has answered 20 searches."""
    with ServerProcess(folder, era=OLD_ERA) as process:
        process.open()
        process.request("tools/list")
        for text in texts[:_SERVED]:
            found = process.request("tools/call", name="search_apis", arguments={"query": text})
            view = found.get("structuredContent") or {}
            if found.get("isError") or view.get("degraded"):
                raise DataError(f"the server searched badly: {view.get('degraded') or found}")
        return process.memory().resident


def disk(folder: Path) -> dict[str, float]:
    """Return the MiB of each part of a data folder."""
    found: dict[str, float] = {}
    for path in folder.rglob("*"):
        if path.is_file():
            part = path.relative_to(folder).parts[0].partition("-")[0]
            found[part] = found.get(part, 0.0) + path.stat().st_size / _MIB
    return {part: round(size, 1) for part, size in sorted(found.items())}


def _figures(level: Level) -> dict[str, Figure]:
    fresh, again = level.imports
    total = sum(level.disk.values())
    return {
        "import": figure(
            "import without vectors, beyond imports of Python",
            "s",
            [fresh["read"] + fresh["store"]],
        ),
        "import_again": figure(
            "import again, nothing changed", "s", [again["read"] + again["store"]]
        ),
        "build": figure(f"build the index of {level.documents} texts", "s", [level.build]),
        "build_rate": figure("texts indexed", "1/s", [level.documents / level.build]),
        "build_peak": figure("memory peak of the build", "MiB", [level.build_peak]),
        "first": figure(
            "first search after a build (makes the word index), beyond imports", "s", [level.first]
        ),
        "reopen": figure("reopen to first search, beyond imports", "s", level.found),
        "search": figure("search", "ms", [1000 * seconds for seconds in level.searches]),
        "serving": figure("memory of a server after 20 searches", "MiB", [level.serving]),
        "disk": figure("disk", "MiB", [total]),
    }


def _searched(work: Work) -> dict[str, Any]:
    found = _run(work)
    if found["degraded"]:
        raise DataError(f"searched without vectors: {found['degraded']}")
    return found


def _run(work: Work) -> dict[str, Any]:
    """Run a stage in a process of its own."""
    command = [sys.executable, "-m", "toolsrv_lab.bench.catalog_probe"]
    try:
        done = subprocess.run(  # noqa: S603 - our own module
            command,
            input=work.model_dump_json().encode(),
            capture_output=True,
            check=True,
            timeout=_PATIENCE_S,
        )
        found: dict[str, Any] = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        raise DataError(
            f"the stage {work.stage!r} took more than {_PATIENCE_S} s", hint="ask for fewer copies"
        ) from None
    except subprocess.CalledProcessError as error:
        lines = error.stderr.decode("utf-8", "replace").strip().splitlines() or ["no message"]
        raise DataError(
            f"the measuring process of {work.stage!r} failed: {lines[-1][:300]}",
            hint=f"try it by hand: toolsrv catalog import {work.catalog}",
        ) from None
    return found
