"""The command line as real processes: what it imports, its streams, its signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

TOOLSRV = [sys.executable, "-m", "toolsrv"]
SCRIPTED_SOLVE = """
import runpy, sys
from toolsrv.cli.session import Session
from toolsrv.cli.main import main
Session.workbench = runpy.run_path({script!r})["command_bench"]
sys.argv[0] = "toolsrv"
main()
"""
HEAVY = ("chromadb", "onnxruntime", "llama_cpp", "mcp", "numpy", "httpx", "pydantic", "rich")


def finished(*words: str, **kwargs: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # type: ignore[call-overload,no-any-return]
        [*TOOLSRV, *words], capture_output=True, text=True, timeout=120, check=False, **kwargs
    )


@pytest.mark.parametrize("flag", ["--help", "--version"])
def test_help_and_version_import_nothing_heavy(flag: str) -> None:
    code = (
        "import sys, contextlib\n"
        "from toolsrv.cli.main import cli\n"
        f"with contextlib.suppress(SystemExit): cli.main([{flag!r}])\n"
        f"print([one for one in {HEAVY!r} if one in sys.modules], file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stderr.strip() == "[]"


def test_a_reader_that_leaves_ends_the_program_quietly(ready_dir: Path) -> None:
    assert ready_dir.is_dir()
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as pipe:
        done = subprocess.run(
            [*TOOLSRV, "catalog", "show"],
            stdout=pipe,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 141
    assert done.stderr == ""


def test_closed_streams_do_no_harm(ready_dir: Path) -> None:
    assert ready_dir.is_dir()
    command = f"{sys.executable} -m toolsrv catalog list"
    assert subprocess.run(f"{command} >&-", shell=True, check=False).returncode == 0
    assert subprocess.run(f"{command} 2>&- | cat", shell=True, check=False).returncode == 0
    done = subprocess.run(
        f"{sys.executable} -m toolsrv solve - <&-",
        shell=True,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "empty" in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("words", [["config", "show"], ["config", "show", "--json"], ["--help"]])
def test_a_full_disk_behind_stdout_is_told(words: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*TOOLSRV, *words], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 1
    assert done.stderr.startswith("error: No space left on device\n")
    assert "Traceback" not in done.stderr


def test_an_argument_that_is_not_utf8_is_taken(ready_dir: Path) -> None:
    assert ready_dir.is_dir()
    done = subprocess.run(
        [*TOOLSRV, "search", b"caf\xe9 time \xff", "--json"], capture_output=True, check=True
    )
    assert "\ufffd" in json.loads(done.stdout)["query"]


def test_output_survives_a_terminal_without_unicode(ready_dir: Path) -> None:
    assert ready_dir.is_dir()
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = finished("config", "show", env=environment)
    assert done.returncode == 0
    assert done.stdout.isascii()


@pytest.mark.nightly
def test_two_processes_may_use_one_new_data_folder_at_once(data_dir: Path) -> None:
    processes = [
        subprocess.Popen(
            [*TOOLSRV, "search", "time difference between cities", "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    results = [process.communicate(timeout=300) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], results
    first, second = (json.loads(out)["hits"] for out, _ in results)
    assert [hit["id"] for hit in first] == [hit["id"] for hit in second]
    assert data_dir.is_dir()


def interrupted(task: str, *, times: int) -> tuple[int, float, str, str]:
    """Start a scripted solve, press Ctrl-C when it thinks, and return how it ended."""
    script = str(Path(__file__).parent / "scripted_server.py")
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPTED_SOLVE.format(script=script), "solve", task, "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    while not process.stderr.readline().startswith("candidates"):
        assert process.poll() is None
    started = time.monotonic()
    process.send_signal(signal.SIGINT)
    if times == 2:
        while not process.stderr.readline().startswith("stopping"):
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    return process.returncode, time.monotonic() - started, out, err


def test_ctrl_c_brings_what_there_is_at_once(ready_dir: Path) -> None:
    assert ready_dir.is_dir()
    code, seconds, out, err = interrupted("SLOW one", times=1)
    assert code == 130
    assert seconds < 25  # the reply takes a minute
    assert json.loads(out)["status"] == "cancelled"
    assert "Traceback" not in err


def test_ctrl_c_while_the_model_is_loaded_ends_it_too(ready_dir: Path) -> None:
    assert ready_dir.is_dir()
    code = (
        "import sys, time\n"
        "from toolsrv.workbench import Workbench\n"
        "def slow(self, **_): print('loading', file=sys.stderr, flush=True); time.sleep(60)\n"
        "Workbench.solver = slow\n"
        "from toolsrv.cli.main import main\n"
        "main()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, "solve", "x", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    while "loading" not in process.stderr.readline():
        assert process.poll() is None
    started = time.monotonic()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert time.monotonic() - started < 25  # loading takes a minute
    assert process.returncode == 130
    assert json.loads(out)["exit_code"] == 130
    assert "Traceback" not in err


def test_a_second_ctrl_c_leaves_at_once(ready_dir: Path) -> None:
    assert ready_dir.is_dir()
    code, seconds, _, err = interrupted("SLOW one", times=2)
    assert code == 130
    assert seconds < 25  # the reply takes a minute
    assert "Traceback" not in err
