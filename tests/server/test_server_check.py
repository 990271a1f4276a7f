"""``toolsrv catalog check``: the command, and as a process that is killed, stopped and goes on."""

from __future__ import annotations

import json
import runpy
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from toolsrv.cli.catalog.check import duration, progress_line
from toolsrv_registry.api import Api, Catalog, Tool
from toolsrv_registry.catalog_state import STORE_FILE
from toolsrv_registry.storage.store import Store
from toolsrv_runtime.check.checker import BATCH, CheckProgress

FaultyHost = runpy.run_path(str(Path(__file__).parents[1] / "faulty_host.py"))["FaultyHost"]
TOOLSRV = [sys.executable, "-m", "toolsrv"]
Run = Callable[..., Result]
Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def host() -> Iterator[Any]:
    with FaultyHost() as server:
        yield server


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a check as a process; it ends with the test at the latest."""
    processes: list[subprocess.Popen[str]] = []

    def begin(*words: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [*TOOLSRV, "catalog", "check", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        return process

    yield begin
    for process in processes:
        with process:
            process.kill()


def put(
    folder: Path, paths: list[str], *, host: str = "api.example.test", scheme: str = "https"
) -> None:
    """Put a catalog ``remote`` with one API for each path into a data folder."""
    apis = tuple(
        Api(
            id=f"Tools/remote/a{place}",
            category="Tools",
            tool="remote",
            name=f"a{place}",
            url=f"{scheme}://{host}/{path}",
        )
        for place, path in enumerate(paths)
    )
    with Store.open(folder / STORE_FILE) as store:
        store.put_catalog(
            Catalog(name="remote", tools=(Tool(category="Tools", name="remote", apis=apis),))
        )


def check(run: Run, *words: str) -> dict[str, Any]:
    result = run("catalog", "check", *words, "--json")
    assert result.exit_code == 0, result.output
    document: dict[str, Any] = json.loads(result.stdout)
    return document


def test_the_catalog_that_ships_passes_its_own_check(run: Run) -> None:
    document = check(run, "offline", "--category", "Science")
    assert document["checked"] > 0
    assert document["verdicts"] == {"ok": document["checked"]}
    again = check(run, "offline", "--category", "Science")
    assert (again["checked"], again["recent"]) == (0, document["checked"])
    anew = check(run, "offline", "--category", "Science", "--recheck-after", "0")
    assert anew["checked"] == document["checked"]


def test_a_sample_is_drawn_by_its_seed(run: Run) -> None:
    words = ["offline", "--sample", "5", "--recheck-after", "0"]
    first, again, other = (check(run, *words, "--seed", seed) for seed in ("1", "1", "2"))
    ids = [{one["api_id"] for one in found["results"]} for found in (first, again, other)]
    assert len(ids[0]) == 5
    assert ids[0] == ids[1] != ids[2]


def test_what_a_check_finds_stays_with_the_api(run: Run, data_dir: Path, host: Any) -> None:
    put(data_dir, ["fine", "html", "404", "401", "text"])
    document = check(run, "remote", "--mode", "live", "--via", host.url, "--rate", "0")
    assert (document["alive"], document["dead"], document["unknown"]) == (2, 2, 1)
    assert {one.split("Tools/remote/")[1] for one in _dead(data_dir)} == {"a1", "a2"}
    with Store.open(data_dir / STORE_FILE) as store:
        assert store.dead()["Tools/remote/a2"].startswith("404 on 20")


def test_what_a_check_found_is_shown_with_the_api(run: Run, data_dir: Path, host: Any) -> None:
    put(data_dir, ["fine", "404", "{unknown}"])
    assert "checked" not in run("catalog", "show", "remote").stdout
    assert "never checked" in run("catalog", "inspect", "remote").stdout
    check(run, "remote", "--mode", "live", "--via", host.url, "--rate", "0")
    told = json.loads(run("describe", "Tools/remote/a1", "--json").stdout)["check"]
    assert (told["verdict"], told["standing"], told["status"]) == ("http_error", "dead", 404)
    day = told["checked_at"][:10]
    assert f"checked: 404 on {day} (dead)" in run("describe", "Tools/remote/a1").stdout
    assert "checked: " not in run("describe", "Tools/remote/a2").stdout
    shown = run("catalog", "show", "remote").stdout
    assert f"ok on {day} (alive)" in shown
    assert f"404 on {day} (dead)" in shown
    listed = json.loads(run("catalog", "show", "remote", "--json").stdout)
    assert [one["check"] and one["check"]["verdict"] for one in listed] == [
        "ok",
        "http_error",
        None,
    ]
    assert "ok 1, http_error 1" in run("catalog", "inspect", "remote").stdout
    inspected = json.loads(run("catalog", "inspect", "remote", "--json").stdout)
    assert inspected["verdicts"] == {"ok": 1, "http_error": 1}


def test_a_service_of_ones_own_is_checked_as_it_is_called(
    run: Run, data_dir: Path, host: Any
) -> None:
    own = host.url.removeprefix("http://")
    put(data_dir, ["fine"], host=own, scheme="http")
    asked = ("call", "Tools/remote/a0", "{}")
    assert run(*asked).exit_code == 2
    words = ["remote", "--mode", "live", "--rate", "0"]
    assert "https" in check(run, *words)["not_checked"]["Tools/remote/a0"]
    assert run("config", "set", "own_hosts", own).exit_code == 0
    assert run(*asked).exit_code == 0
    assert check(run, *words)["verdicts"] == {"ok": 1}
    assert len(host.calls) == 2


def test_the_table_says_what_was_found_and_what_was_not_checked(
    run: Run, data_dir: Path, host: Any
) -> None:
    put(data_dir, ["fine", "html", "{unknown}"])
    result = run("catalog", "check", "remote", "--mode", "live", "--via", host.url)
    assert result.exit_code == 0
    assert "html" in result.stdout
    assert "1 dead" in result.stderr
    assert "nothing fills 'unknown'" in result.stderr


def test_other_hosts_are_not_called_offline(run: Run, data_dir: Path) -> None:
    put(data_dir, ["fine"])
    document = check(run, "remote")
    assert document["checked"] == 0
    assert "--mode live" in document["not_checked"]["Tools/remote/a0"]


def test_replies_are_recorded_and_judged_again(
    run: Run, data_dir: Path, host: Any, tmp_path: Path
) -> None:
    put(data_dir, ["fine", "html"])
    file = str(tmp_path / "replies.jsonl")
    live = check(run, "remote", "--mode", "live", "--via", host.url, "--record", file)
    again = check(run, "remote", "--mode", "recorded", "--file", file, "--recheck-after", "0")
    assert again["verdicts"] == live["verdicts"]
    assert len(host.calls) == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--mode", "recorded"], "--file"),
        (["--file", "x"], "--mode recorded"),
        (["--via", "http://localhost"], "live"),
        (["--mode", "live", "--via", "ftp://x"], "ftp"),
        (["--mode", "recorded", "--file", "/nowhere/x"], "/nowhere/x"),
        (["--sample", "0"], "sample"),
        (["--rate", "-1"], "rate"),
        (["--timeout", "nan"], "timeout"),
        (["--recheck-after", "nan"], "recheck"),
        (["nosuchcatalog"], "nosuchcatalog"),
        (["--category", "Nope"], "Nope"),
    ],
)
def test_a_request_that_is_off_is_named(run: Run, words: list[str], said: str) -> None:
    result = run("catalog", "check", *words)
    assert result.exit_code == 2
    assert said in result.stderr


def test_rapidapi_without_a_key_is_refused_before_a_call(
    run: Run, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAPIDAPI_KEY", raising=False)
    put(data_dir, ["fine", "html"], host="x.p.rapidapi.com")
    result = run("catalog", "check", "remote", "--mode", "live")
    assert result.exit_code == 2
    assert "RAPIDAPI_KEY" in result.stderr
    assert "2 APIs" in result.stderr


def test_a_network_that_is_down_is_an_error_and_kills_no_api(run: Run, data_dir: Path) -> None:
    put(data_dir, [f"fine/{n}" for n in range(30)])
    result = run(
        "catalog", "check", "remote", "--mode", "live", "--via", "http://127.0.0.1:9",
        "--rate", "0", "--json",
    )  # fmt: skip
    assert result.exit_code == 1
    assert "network" in json.loads(result.stdout)["hint"]
    assert not _dead(data_dir)


def test_killed_again_and_again_a_check_is_completed(
    run: Run, start: Start, data_dir: Path, host: Any
) -> None:
    many, seen = 240, 60
    put(data_dir, [f"fine/{n}" for n in range(many)])
    words = ["remote", "--mode", "live", "--via", host.url, "--concurrency", "2"]
    kept = 0
    for _ in range(3):
        before = len(host.calls)
        process = start(*words, "--rate", "200")
        assert host.wait_for(before + seen)
        process.kill()
        process.communicate(timeout=30)
        found = _kept(data_dir)
        # What may be lost: a batch being written, one that waits, and the calls in flight.
        assert found >= kept + seen - 2 * BATCH - 4
        kept = found
    calls = len(host.calls)
    document = check(run, *words, "--rate", "0")
    assert document["recent"] == kept
    assert document["checked"] == many - kept
    assert len(host.calls) - calls == many - kept
    assert _kept(data_dir) == many


def test_ctrl_c_ends_a_check_cleanly_and_says_how_to_go_on(
    run: Run, start: Start, data_dir: Path, host: Any
) -> None:
    put(data_dir, [f"fine/{n}" for n in range(10)] + ["gate"])
    words = ["remote", "--mode", "live", "--via", host.url, "--rate", "0", "--concurrency", "1"]
    process = start(*words, "--timeout", "60", "--json")
    assert host.wait_for(11)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    host.gate.set()
    assert process.returncode == 130
    document = json.loads(out)
    assert document["ended"] == "stopped"
    assert "go on with the same command" in err
    assert "Traceback" not in err
    assert _kept(data_dir) == document["checked"] == 10
    assert check(run, *words)["checked"] == 1


def test_progress_tells_speed_and_time_left() -> None:
    line = progress_line(CheckProgress(total=1200, done=300, seconds=60.0))
    assert line.startswith("300 of 1,200 APIs")
    assert "5.0/s" in line
    assert "3 min left" in line
    assert [duration(s) for s in (0.2, 119, 600, 7260)] == ["0 s", "119 s", "10 min", "2 h 1 min"]


def _kept(folder: Path) -> int:
    with Store.open(folder / STORE_FILE) as store:
        return len(store.health.latest())


def _dead(folder: Path) -> dict[str, str]:
    with Store.open(folder / STORE_FILE) as store:
        return dict(store.dead())
