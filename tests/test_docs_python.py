"""The programs of docs/examples and docs/python.md, run as they stand."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import toolsrv

DOCS = Path(__file__).parents[1] / "docs"
PAGE = (DOCS / "python.md").read_text("utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
EXAMPLES = sorted((DOCS / "examples").glob("*.py"))
LLAMA_CPP = "ignore:unclosed file:ResourceWarning"
"""It opens the null device for as long as the process lives."""
SAID = {
    "search_and_call": ("Location/world_clock/time_difference", "from_city", "ahead of London"),
    "solve_with_evidence": (
        "calling ",
        "status 200, from offline",
        "answered: ",
        "currency_facts",
        "PEN",
    ),
    "several_at_once": ("hours_difference|hours", "Lima"),
}


@pytest.fixture
def environment(built_folder: Path, tmp_path: Path) -> dict[str, str]:
    shutil.copytree(built_folder, tmp_path / "data")
    settings = {key: value for key, value in os.environ.items() if not key.startswith("TOOLSRV_")}
    pace = {"TOOLSRV_CALL_SECONDS": "120", "TOOLSRV_MAX_SECONDS": "240"}  # of a busy machine
    return settings | pace | {"TOOLSRV_DATA_DIR": str(tmp_path / "data")}


def output(code: list[str], environment: dict[str, str]) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-W", LLAMA_CPP, *code],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_every_example_is_checked_and_linked() -> None:
    assert {one.stem for one in EXAMPLES} == set(SAID)
    assert all(f"examples/{one.name}" in PAGE for one in EXAMPLES)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda one: one.stem)
def test_an_example_does_what_it_says(example: Path, environment: dict[str, str]) -> None:
    printed = output([str(example)], environment)
    for one in SAID[example.stem]:
        assert re.search(one, printed), printed


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_a_program_of_the_page_runs(block: str, environment: dict[str, str]) -> None:
    assert output(["-c", block], environment).strip()


def test_names_of_the_page_are_public() -> None:
    named = set(re.findall(r"`(\w+(?:Error|View|Toolbox|Result))`", PAGE))
    assert named
    assert named <= set(toolsrv.__all__)


def test_every_kind_of_event_is_on_the_page() -> None:
    events = [getattr(toolsrv, one) for one in toolsrv.__all__ if re.search(r".Event$", one)]
    kinds = {one.model_fields["kind"].default for one in events}
    assert {f"`{kind}`" for kind in kinds} <= set(re.findall(r"`\w+`", PAGE))
