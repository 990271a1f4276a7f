"""``toolsrv bench search``: building the index of the catalog that ships, and searching it.

Each build and each reopening is a process of its own (``probe``), so that nothing is loaded
already; the searches run in the reopened ones.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

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
from toolsrv_registry.errors import DataError

_PATIENCE_S = 600


@click.command(epilog=example("toolsrv bench search --queries 500"))
@click.option(
    "--queries",
    type=click.IntRange(1, 100_000),
    default=200,
    show_default=True,
    help="Searches in each reopened process.",
)
@click.option(
    "--runs", type=click.IntRange(1, 100), default=3, show_default=True, help="Builds, reopenings."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the queries.")
@json_option
def search(queries: int, runs: int, seed: int, as_json: bool) -> None:
    """Build and reopen the index of the catalog that ships, and search it."""
    report = measure(queries, runs=runs, seed=seed)
    emit(report, as_json=as_json)
    if not as_json:
        emit_machine(report)


def measure(queries: int, *, runs: int, seed: int) -> Report:
    """Build ``runs`` indexes in fresh folders, reopen each, and return what it took.

    Raises:
        DataError: A process failed, or vectors could not be used.
    """
    before = machine()
    built, reopened = [], []
    for number in range(runs):
        report_progress(f"search: run {number + 1} of {runs}")
        with scratch_folder() as folder:
            built.append(_probe(folder, 1, seed))
            # Other texts in each run: equal ones would measure nothing more.
            reopened.append(_probe(folder, queries, seed + number))
    return Report(
        bench="search",
        options={"queries": queries, "runs": runs, "seed": seed},
        figures=_figures(built, reopened),
        details={"catalog": "offline", "documents": built[0]["documents"]},
        machine=before,
    )


def _figures(
    built: Sequence[dict[str, Any]], reopened: Sequence[dict[str, Any]]
) -> dict[str, Figure]:
    both = [*built, *reopened]
    building = [one["indexed"] - one["opened"] for one in built]
    searches = [1000 * seconds for one in reopened for seconds in one["searches"]]
    documents = built[0]["documents"]
    return {
        "imports": figure("imports", "s", [one["imported"] for one in both]),
        "open_new": figure(
            "open an empty folder", "s", [one["opened"] - one["imported"] for one in built]
        ),
        "build": figure(f"build the index of {documents} APIs", "s", building),
        "build_rate": figure("APIs indexed", "1/s", [documents / seconds for seconds in building]),
        "reopen": figure(
            "reopen to first search, beyond imports",
            "s",
            [one["found"] - one["imported"] for one in reopened],
        ),
        "reopen_whole": figure(
            "process start to first search", "s", [one["whole"] for one in reopened]
        ),
        "search": figure("search", "ms", searches),
        "memory_opened": figure(
            "memory before the index is used", "MiB", [one["resident_before"] for one in reopened]
        ),
        "memory_searching": figure(
            "memory after the searches", "MiB", [one["resident"] for one in reopened]
        ),
        "memory_build_peak": figure(
            "memory peak of a build", "MiB", [one["peak"] for one in built]
        ),
    }


def _probe(folder: Path, queries: int, seed: int) -> dict[str, Any]:
    """Run ``probe`` and return what it measured, ``whole`` (s from its start) added."""
    command = [
        sys.executable,
        "-m",
        "toolsrv_lab.bench.probe",
        str(folder),
        str(queries),
        str(seed),
    ]
    began = time.monotonic()
    try:
        done = subprocess.run(  # noqa: S603 - our own module
            command, capture_output=True, check=True, timeout=_PATIENCE_S
        )
        found: dict[str, Any] = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        raise DataError(
            f"indexing and searching took more than {_PATIENCE_S} s", hint="ask for fewer queries"
        ) from None
    except subprocess.CalledProcessError as error:
        lines = error.stderr.decode("utf-8", "replace").strip().splitlines() or ["no message"]
        raise DataError(
            f"the measuring process failed: {lines[-1][:300]}",
            hint="run 'toolsrv index build' to see why",
        ) from None
    if found["degraded"]:
        raise DataError(f"searched without vectors: {found['degraded']}")
    return found | {"whole": found["found_at"] - began}
