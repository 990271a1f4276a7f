"""Lists on a narrow terminal: no id is broken, and nothing is lost."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from toolsrv.runs.queue import new_run_id
from toolsrv.runs.records import RunRecord
from toolsrv.runs.store import keep_run

TOOLSRV = [sys.executable, "-m", "toolsrv"]


def on_a_terminal(columns: int, *words: str) -> str:
    """Return what a command shows on a terminal of so many columns."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(columns), "TERM": "dumb"}
    process = subprocess.Popen(
        [*TOOLSRV, *words], stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL, env=environment
    )
    os.close(theirs)
    shown = b""
    try:
        while part := os.read(ours, 65_536):
            shown += part
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    assert process.wait(timeout=60) == 0
    return shown.decode()


@pytest.mark.parametrize("columns", [40, 80, 160])
def test_the_ids_of_runs_stay_whole(data_dir: Path, columns: int) -> None:
    ids = [new_run_id() for _ in range(3)]
    for one in ids:
        assert keep_run(data_dir, RunRecord(id=one, task="x " * 60, status="answered"), 10) == ""
    shown = on_a_terminal(columns, "run", "list")
    assert all(one in shown for one in ids)
    assert "answered" in shown


@pytest.mark.parametrize("columns", [40, 80, 160])
def test_the_list_of_catalogs_keeps_what_it_says(ready_dir: Path, columns: int) -> None:
    assert ready_dir.is_dir()
    shown = on_a_terminal(columns, "catalog", "list")
    for part in ("offline", "tools", "APIs", "170", "enabled", "yes", "source"):
        assert part in shown
    assert "ships with toolsrv" in " ".join(shown.replace("│", " ").split())


@pytest.mark.parametrize(
    "columns", [50, *(pytest.param(one, marks=pytest.mark.nightly) for one in (80, 160))]
)
@pytest.mark.parametrize(
    ("words", "ids", "told"),
    [
        (
            ("search", "format an amount of money", "--limit", "3"),
            ["Finance/currency_facts/format_amount"],
            ["rank", "score", "words:"],
        ),
        (
            ("catalog", "show", "offline"),
            ["Communication/phone_inspector/calling_code_of_country"],
            ["GET", "method"],
        ),
        (
            ("solve", "-q", "What is the capital of Peru?"),
            ["* Data/country_facts/capital_city", "* │ Data/country_facts/capital_city"],
            ["Evidence (* the answer rests on it)", '{"country": "Peru"}', "offline", "200"],
        ),
    ],
)
def test_ids_that_are_copied_stay_whole(
    ready_dir: Path, columns: int, words: tuple[str, ...], ids: list[str], told: list[str]
) -> None:
    assert ready_dir.is_dir()
    shown = on_a_terminal(columns, *words)
    assert any(one in shown for one in ids)
    for part in told:
        assert part in shown


def test_a_pipe_is_as_wide_as_it_is_said_to_be(ready_dir: Path) -> None:
    assert ready_dir.is_dir()
    widths = {}
    for columns in ("50", ""):
        done = subprocess.run(
            [*TOOLSRV, "config", "show"],
            env={**os.environ, "COLUMNS": columns},
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        )
        widths[columns] = max(map(len, done.stdout.splitlines()))
    assert widths["50"] <= 50 < widths[""] <= 160
