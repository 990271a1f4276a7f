"""What is refused says what to do next, and the hint is true."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from toolsrv.mcp_server.results import hint_for_client
from toolsrv_runtime.options import SolveOptions

Run = Callable[..., Result]
TOOLSRV = [sys.executable, "-m", "toolsrv"]
CALL = ("call", "Location/world_clock/time_difference")
ARGUMENTS = '{"from_city": "London", "to_city": "Sydney"}'


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["search", "x", "--tool", "zzz"], "toolsrv catalog show"),
        (["describe", "nope"], "toolsrv search"),
        (["call", "nope"], "toolsrv search"),
        (["catalog", "import", "nofile.json"], "one JSON or YAML file"),
        (["model", "remove", "nano"], "toolsrv model use"),
        (["serve", "--port", "8000"], "--http"),
        (["solve", "x", "--save-answer", "/proc/x"], "another file"),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, list) else None,
)
def test_a_refusal_says_what_to_do(run: Run, ready_dir: Path, words: list[str], hint: str) -> None:
    assert ready_dir.is_dir()
    told = run(*words)
    assert told.exit_code != 0
    (line,) = [one for one in told.stderr.splitlines() if one.startswith("hint: ")]
    assert hint in line
    assert not list(ready_dir.glob("runs.db"))  # nothing was solved before


def test_a_data_folder_that_is_a_file_is_told_as_that(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    told = run("--data-dir", str(tmp_path / "file"), "catalog", "list")
    assert told.exit_code == 2
    assert "is a file" in told.stderr
    assert "--data-dir" in told.stderr
    assert "TOOLSRV_CONFIG" not in told.stderr


def test_an_api_that_refuses_is_told_with_its_hint(run: Run, ready_dir: Path) -> None:
    assert ready_dir.is_dir()
    told = run("call", "Location/city_finder/city", '{"city": "Nowhereville"}')
    told = told if told.exit_code == 1 else run(*CALL, ARGUMENTS.replace("London", "Nowhereville"))
    assert told.exit_code == 1
    assert "error: HTTP status 4" in told.stderr
    assert "hint: " in told.stderr


def test_behind_the_end_of_a_response_its_length_is_told(
    run: Run, ready_dir: Path, tmp_path: Path
) -> None:
    assert ready_dir.is_dir()
    script = tmp_path / "script.json"
    script.write_text(
        '{"replies": [{"function": "time_difference_for_world_clock",'
        ' "arguments": {"from_city": "London", "to_city": "Sydney"}},'
        ' {"function": "Finish", "arguments": {"return_type": "give_answer",'
        ' "final_answer": "10"}}], "loop": true}'
    )
    task = "What is the time difference between London and Sydney?"
    assert run("solve", "-q", task, "--model", f"scripted:{script}").exit_code == 0
    found = run("run", "show", "last", "--json")
    node = re.findall(r'"id": (\d+)[^{}]*"kind": "call"', found.stdout)[0]
    told = run("run", "response", "last", node, "--offset", "10000")
    assert re.search(r"has \d+ characters in all", told.stderr)
    assert "is empty" not in told.stderr


@pytest.mark.parametrize(
    "noise", [bytes(range(128, 256)), b"\x01\x02\x03\x04a" * 50, b"\xff\xfea\0"]
)
def test_noise_on_standard_input_is_no_task(run: Run, data_dir: Path, noise: bytes) -> None:
    for words in (("solve", "-q", "-"), (*CALL, "-")):
        told = run(*words, stdin=noise)
        assert told.exit_code == 2
        assert "standard input" in told.stderr
        assert "hint:" in told.stderr
    assert not (data_dir / "runs.db").exists()


@pytest.mark.parametrize("key", ["candidates", "chains", "width", "depth"])
def test_the_help_of_a_solve_says_the_range(run: Run, key: str) -> None:
    limits = {
        name: getattr(one, name)
        for one in SolveOptions.model_fields[key].metadata
        for name in ("ge", "le")
        if hasattr(one, name)
    }
    text = " ".join(run("solve", "--help").stdout.split())
    about = text.partition(f"--{key} INTEGER RANGE ")[2].partition(" --")[0]
    assert f"[{limits['ge']}<=x<={limits['le']}]" in about


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_behind_the_output_is_not_that_of_the_data_folder() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*TOOLSRV, "config", "show"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert "where the output goes" in done.stderr
    assert "--data-dir" not in done.stderr


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ('look for it: toolsrv search "…"', "look for it: search_apis"),
        ("look at the arguments: toolsrv describe ID", "look at the arguments: describe_apis"),
        ("look at the arguments: toolsrv describe A/b/c", "look at the arguments: describe_apis"),
        ("choose another API", "choose another API"),
        (
            "store a key that the host takes: toolsrv keys set rapidapi",
            "for the user, in a terminal: store a key that the host takes: toolsrv keys set rapidapi",
        ),
        ("leave out --verify", "for the user, in a terminal: leave out --verify"),
        ("a well-kept one", "a well-kept one"),
    ],
)
def test_a_client_is_told_what_it_can_do_itself(said: str, told: str) -> None:
    assert hint_for_client(said) == told
