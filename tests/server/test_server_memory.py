"""Short memory: a refusal with the numbers, in time, and an index that stays as it is."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from toolsrv.memory import OPENING, SEARCHING, SOLVING, check_memory
from toolsrv_registry.errors import MemoryShortError
from toolsrv_runtime.requirements import ProcessMemory, available_memory, memory_shortage

TOOLSRV = [sys.executable, "-m", "toolsrv"]
pytestmark = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")


def limited(kib: int, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command with so many KiB of addresses."""
    limit = ["sh", "-c", f'ulimit -v {kib} && exec "$@"', "sh"]
    return subprocess.run(
        [*limit, *TOOLSRV, *words], capture_output=True, text=True, timeout=60, check=False
    )


def files(folder: Path) -> dict[str, int]:
    return {
        str(one.relative_to(folder)): one.stat().st_mtime_ns
        for one in (folder / "chroma").rglob("*")
        if one.is_file()
    }


@pytest.mark.parametrize("kib", [200_000, 500_000, 900_000, 1_200_000, 1_400_000])
def test_a_solve_without_memory_is_refused_with_the_numbers(ready_dir: Path, kib: int) -> None:
    before = files(ready_dir)
    done = limited(kib, "solve", "capital of Peru", "--json", "--max-seconds", "10")
    assert done.returncode == 1, done.stderr
    said = json.loads(done.stdout)
    numbers = r"needs [\d.]+ [GM]B more of memory, and [\d.]+ [GM]B are available \(ulimit -v\)"
    assert re.search(numbers, said["error"])
    assert "ulimit -v " in said["hint"]
    assert "anew" not in done.stderr
    assert files(ready_dir) == before


def test_what_a_refusal_asks_for_suffices(ready_dir: Path) -> None:
    refused = json.loads(limited(700_000, "search", "capital", "--json").stdout)
    asked = re.search(r"ulimit -v (\d+)", refused["hint"])
    assert asked is not None
    assert ready_dir.is_dir()
    assert limited(int(asked[1]), "search", "capital", "--json").returncode == 0


@pytest.mark.parametrize("words", [("search", "capital"), ("index", "build")])
def test_a_search_and_a_build_are_refused_likewise(ready_dir: Path, words: tuple[str, ...]) -> None:
    before = files(ready_dir)
    done = limited(700_000, *words)
    assert done.returncode == 1
    assert "more of memory" in done.stderr
    assert files(ready_dir) == before


def test_what_is_looked_up_needs_no_room_for_a_solve(ready_dir: Path) -> None:
    assert ready_dir.is_dir()
    done = limited(500_000, "describe", "Data/country_facts/capital_city")
    assert done.returncode == 0, done.stderr


def test_a_solve_needs_more_than_a_search_and_large_catalogs_need_more() -> None:
    steps = [OPENING.memory(), SEARCHING.memory(170), SOLVING.memory(170), SOLVING.memory(16_000)]
    assert steps == sorted(steps)
    assert sorted(one.addresses for one in steps) == [one.addresses for one in steps]
    check_memory(SOLVING)


def test_what_the_process_has_already_counts() -> None:
    assert memory_shortage(ProcessMemory(1, 1)) is None
    short = memory_shortage(ProcessMemory(1 << 50, 0))
    assert short is not None
    assert short.needed > short.available > 0
    assert available_memory(ProcessMemory(1 << 50, 0)) == 0


def test_the_refusal_is_a_data_error_that_names_who_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolsrv.memory.MIB", 1 << 50)
    with pytest.raises(MemoryShortError, match=r"a search needs .* TB more of memory"):
        check_memory(SEARCHING)


STUCK = """
import asyncio, threading
from toolsrv.cli.interrupt import stoppable

async def work():
    print("begun", flush=True)
    threading.Event().wait()  # holds up the event loop, as a thread that never begins does

asyncio.run(stoppable(work(), ask=lambda _: None, at_once=lambda: None))
"""


def test_sigterm_ends_a_program_whose_event_loop_is_held_up() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", STUCK], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    started = time.monotonic()
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 143
    assert time.monotonic() - started < 30
    assert err == ""
