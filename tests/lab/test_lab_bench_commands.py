"""Each benchmark run for real, as small as it can be: one document or one table, nothing left."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from toolsrv_lab.bench import bench

CAPITAL = "Data/country_facts/capital_city"
CONVERT = "Science/unit_converter/convert_units"
TASKS = (
    {
        "id": "u1",
        "kind": "single",
        "task": "What is the capital of Peru?",
        "calls": [{"api": CAPITAL, "arguments": {"country": "Peru"}, "answer": ["capital"]}],
    },
    {
        "id": "u2",
        "kind": "two",
        "task": "Convert 3 miles to kilometers, and tell me the capital of Kenya.",
        "calls": [
            {
                "api": CONVERT,
                "arguments": {"amount": 3, "from_unit": "miles", "to_unit": "kilometers"},
            },
            {"api": CAPITAL, "arguments": {"country": "Kenya"}, "answer": ["capital"]},
        ],
    },
)


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary folders go: the test looks whether any is left."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return folder


@pytest.fixture
def run(scratch: Path) -> Callable[..., Result]:
    """Run a benchmark; it must succeed and leave no temporary folder."""

    def invoke(*arguments: str) -> Result:
        result = CliRunner().invoke(bench, list(arguments), catch_exceptions=False)
        assert result.exit_code == 0, result.stderr
        assert list(scratch.glob("toolsrv-*")) == []
        return result

    return invoke


def document(result: Result) -> dict[str, Any]:
    """Return the one JSON document of stdout, its common parts checked."""
    found: dict[str, Any] = json.loads(result.stdout)
    assert found["machine"]["cores"] >= 1
    assert found["versions"]["toolsrv"]
    for one in found["figures"].values():
        if one["count"]:
            assert one["min"] <= one["median"] <= one["max"]
    return found


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    path = tmp_path / "tasks.jsonl"
    path.write_text("".join(f"{json.dumps(task)}\n" for task in TASKS), encoding="utf-8")
    return path


@pytest.mark.nightly
def test_server_is_timed_in_both_eras(run: Callable[..., Result]) -> None:
    found = document(run("server", "--runs", "1", "--json"))
    figures = found["figures"]
    for era in ("2025-11-25", "2026-07-28"):
        assert 0 < figures[f"opening_{era}"]["min"] < figures[f"tools_list_{era}"]["min"]
    assert figures["first_answer_fresh"]["min"] > figures["tools_list_2026-07-28"]["min"]
    assert sum(found["details"]["statuses"].values()) == 2
    if sys.platform == "linux":
        assert figures["memory_listed"]["max"] < figures["memory_peak"]["max"]


def test_search_is_timed(run: Callable[..., Result]) -> None:
    found = document(run("search", "--runs", "1", "--queries", "20", "--json"))
    figures = found["figures"]
    assert figures["search"]["count"] == 20
    assert figures["search"]["median"] <= figures["search"]["p95"] <= figures["search"]["max"]
    assert figures["reopen"]["min"] < figures["reopen_whole"]["min"]
    assert found["details"]["documents"] > 100
    assert found["options"] == {"queries": 20, "runs": 1, "seed": 0}


def test_engine_is_timed(run: Callable[..., Result]) -> None:
    found = document(run("engine", "--runs", "1", "--no-replay", "--json"))
    figures = found["figures"]
    assert figures["load"]["min"] > 0
    assert figures["read"]["min"] > 0
    assert figures["write"]["min"] > 0
    assert 0 < figures["prefix_reuse"]["median"] < 100
    assert 0 < figures["forced"]["median"] <= 100
    assert found["details"]["evaluated_tokens"] < found["details"]["prompt_tokens"]


def test_solve_counts_by_kind(run: Callable[..., Result], tasks: Path) -> None:
    found = document(run("solve", "--tasks", str(tasks), "--verbose", "--json"))
    kinds = found["details"]["kinds"]
    assert [(kind, one["tasks"]) for kind, one in kinds.items()] == [
        ("single", 1),
        ("two", 1),
        ("all", 2),
    ]
    assert [one["id"] for one in found["details"]["tasks"]] == ["u1", "u2"]
    both = kinds["all"]["both"]
    assert both["low"] <= both["count"] / 2 <= both["high"]
    assert found["figures"]["seconds"]["count"] == 2


def test_solve_shows_tables_and_lists_tasks_only_when_asked(
    run: Callable[..., Result], tasks: Path
) -> None:
    short = run("solve", "--tasks", str(tasks), "--strategy", "react", "--candidates", "3")
    assert "right calls" in short.stdout
    assert "u1" not in short.stdout
    assert "2 of 2" in short.stderr
    whole = run("solve", "--tasks", str(tasks), "--verbose")
    assert "u1" in whole.stdout
    assert "u2" in whole.stdout


def test_search_shows_a_table(run: Callable[..., Result]) -> None:
    result = run("search", "--runs", "1", "--queries", "1")
    assert "APIs indexed" in result.stdout
    assert "cores" in result.stdout


@pytest.mark.parametrize("name", ["server", "search", "engine", "solve"])
def test_each_command_has_help_with_an_example(run: Callable[..., Result], name: str) -> None:
    assert f"toolsrv bench {name}" in run(name, "--help").stdout
    assert name in run("--help").stdout


def toolsrv(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "toolsrv", "bench", *arguments]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "no tasks"),
        (b"nonsense\n", "line 1"),
        (b"\xff\xfe\n", "UTF-8"),
        (json.dumps(TASKS[0] | {"calls": [{"api": "A/b/c"}]}).encode() + b"\n", "A/b/c"),
    ],
    ids=["empty", "not JSON", "not UTF-8", "unknown API"],
)
def test_a_bad_file_of_tasks_is_told_in_one_line(tmp_path: Path, text: bytes, said: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_bytes(text)
    done = subprocess.run(
        toolsrv("solve", "--tasks", str(path), "--json"), capture_output=True, check=False
    )
    assert done.returncode in {1, 2}
    found = json.loads(done.stdout)
    assert said in found["error"]
    assert found["hint"]
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["engine", "solve"])
def test_the_address_of_a_server_is_told_as_one(command: str) -> None:
    done = CliRunner().invoke(bench, [command, "--model", "http://127.0.0.1:8000/v1"])
    assert done.exit_code == 2
    assert "is the address of a server" in done.stderr


def test_a_model_that_is_not_there_is_told(tmp_path: Path) -> None:
    done = subprocess.run(
        toolsrv("engine", "--model", str(tmp_path / "no.gguf")), capture_output=True, check=False
    )
    assert done.returncode == 2
    assert b"no.gguf" in done.stderr
    assert done.stdout == b""


def test_a_vocabulary_that_is_none_is_told_before_anything_is_measured(tmp_path: Path) -> None:
    path = tmp_path / "no.gguf"
    path.write_bytes(b"nonsense")
    done = subprocess.run(
        toolsrv("engine", "--random", "--vocabulary", str(path)), capture_output=True, check=False
    )
    assert done.returncode == 1
    assert b"no GGUF file with a vocabulary" in done.stderr
    assert b"loading the model" not in done.stderr


@pytest.mark.skipif(
    importlib.util.find_spec("matplotlib") is not None, reason="matplotlib is there"
)
def test_a_plot_needs_no_more_than_what_draws_it(tmp_path: Path) -> None:
    done = subprocess.run(
        toolsrv("engine", "--plot", str(tmp_path / "a.svg"), "--json"),
        capture_output=True,
        check=False,
    )
    told = json.loads(done.stdout)
    assert done.returncode == 2
    assert told["error"] == "this needs matplotlib, which is not installed"
    assert told["hint"].startswith("pip install matplotlib;")


@pytest.mark.parametrize(
    ("command", "sign"),
    [
        pytest.param(["server", "--runs", "50"], "run 2", marks=pytest.mark.nightly),
        (["search", "--runs", "50"], "run 2"),
        pytest.param(["engine", "--runs", "1", "--no-replay"], "task 2", marks=pytest.mark.nightly),
    ],
    ids=["server", "search", "engine"],
)
def test_an_interrupted_benchmark_leaves_nothing(
    scratch: Path, command: list[str], sign: str
) -> None:
    with subprocess.Popen(
        toolsrv(*command), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ.copy()
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if sign.encode() in line:
                break
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == b""
    assert b"Traceback" not in err
    assert list(scratch.glob("toolsrv-*")) == []
