"""Mutation check: does a test fail when an operator, constant or handler of ``PACKAGES`` changes?

``mutants.py map`` runs the tests under coverage and notes which test executes which line, ``run`` draws
lines with a fixed seed, changes each by one of cosmic-ray's mutants and runs that line's tests until one
fails, ``score`` counts. Results are appended to ``--work``; an interrupted stage goes on where it stopped.
Sources are changed in place and restored: run it in a clone, with ``pip install cosmic-ray==8.7.0 coverage``.
"""

from __future__ import annotations

import argparse
import ast
import csv
import importlib
import json
import math
import os
import random
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import coverage
import pytest
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

PACKAGES = [f"runtime/toolsrv_runtime/{name}" for name in ("calls", "search", "evidence")]
TESTS = ("tests/runtime", "tests/catalogs")
IMPORTS = re.compile(r"toolsrv_runtime\.(calls|search|evidence)")
SLOW = re.compile(
    r"_(real_models|toolllama_engine|cot|solve|search_again|unserved|stb|elicitation|goes_on|hub_datasets"
    r"|lengths|refusals|remote|threads|turns|turn_calls)$"
)
TIMED = re.compile(r"_(calls|hosts|rests|proxies|credentials|consent|switches|usage)\.py")
"""Tests that may fail on a busy machine: they have to fail twice."""
NEUTRAL = re.compile(r"Comparison.*_(Is_Eq|Eq_Is|IsNot_NotEq|NotEq_IsNot)$")
PYTEST = ["-q", "-n0", "-p", "no:cacheprovider", "--tb=line", "--show-capture=no"]
MOST_S = 4.0
"""Processor seconds of tests for one mutant, from which on no further file is tried."""
INVALID = -100
"""The status of a mutant that is no program; it does not count."""
Place = tuple[str, int]
"""A file and a line."""


class Contexts:
    """A pytest plugin that notes the lines and the seconds of each test."""

    def __init__(self) -> None:
        """Measure the mutated packages alone."""
        self.seconds: dict[str, float] = {}
        self._failed: set[str] = {""}
        self._coverage = coverage.Coverage(
            data_file=None, config_file=False, include=[f"{folder}/*" for folder in PACKAGES]
        )
        self._coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Attribute what runs during a test to it."""
        self._coverage.switch_context(item.nodeid)
        started = time.process_time()
        result = yield
        self.seconds[item.nodeid] = time.process_time() - started
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a test that fails without a mutant."""
        if report.failed:
            self._failed.add(report.nodeid)

    def lines(self) -> dict[str, dict[int, list[str]]]:
        """Return by file and line the tests that pass."""
        self._coverage.stop()
        data = self._coverage.get_data()
        return {
            str(Path(file).relative_to(Path.cwd())): {
                line: [test for test in tests if test not in self._failed]
                for line, tests in data.contexts_by_lineno(file).items()
            }
            for file in data.measured_files()
        }


def tell(*words: object) -> None:
    """Print a line."""
    sys.stdout.write(f"{' '.join(map(str, words))}\n")
    sys.stdout.flush()


def forked(act: Callable[[], int], log: Path, seconds: float) -> int:
    """Return the exit status of a child process, 124 where it does not end in time."""
    child = os.fork()
    if not child:
        os.setsid()
        for stream in (1, 2):
            os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND), stream)
        os._exit(act())
    until, ended, status = time.monotonic() + seconds, 0, 0
    while not ended and time.monotonic() < until:
        time.sleep(0.02)
        ended, status = os.waitpid(child, os.WNOHANG)
    if not ended:
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return 124
    return os.waitstatus_to_exitcode(status)


def make_map(work: Path) -> None:
    """Write for each test file the tests of each line and the seconds of each test."""
    for file in sorted(path for folder in TESTS for path in Path(folder).glob("test_*.py")):
        out = work / f"{file.stem}.json"
        if out.exists() or SLOW.search(file.stem) or not IMPORTS.search(file.read_text("utf-8")):
            continue

        def act(file: Path = file, out: Path = out) -> int:
            contexts = Contexts()
            status = pytest.main([*PYTEST, str(file)], plugins=[contexts])
            out.write_text(json.dumps({"lines": contexts.lines(), "seconds": contexts.seconds}))
            return int(status)

        tell(file, forked(act, work / "map.log", 600))


def read_map(work: Path) -> tuple[dict[Place, set[str]], dict[str, float]]:
    """Return the tests by place, and the processor seconds of each test."""
    tests: dict[Place, set[str]] = {}
    seconds: dict[str, float] = {}
    for path in work.glob("test_*.json"):
        found = json.loads(path.read_text("utf-8"))
        seconds |= found["seconds"]
        for file, lines in found["lines"].items():
            for line, names in lines.items():
                tests.setdefault((file, int(line)), set()).update(names)
    return tests, seconds


def annotations(text: str) -> set[tuple[int, int]]:
    """Return line and column of what stands in annotations, which nothing evaluates."""
    notes: list[ast.expr | None] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            notes.append(node.returns)
        elif isinstance(node, ast.arg | ast.AnnAssign):
            notes.append(node.annotation)
    return {
        (one.lineno, column)
        for note in notes
        if note is not None
        for one in ast.walk(note)
        if isinstance(one, ast.expr)
        for column in range(one.col_offset, one.end_col_offset or 0)
    }


def sample(seed: int) -> Iterator[tuple[Place, str, int]]:
    """Yield one mutant of each mutable line, in an order that depends on the seed alone."""
    found: dict[Place, list[tuple[str, int]]] = {}
    for file in sorted(path for folder in PACKAGES for path in Path(folder).glob("*.py")):
        text = file.read_text("utf-8")
        skipped, nodes = annotations(text), list(ast_nodes(get_ast(text)))
        for name in operator_names():
            if get_operator(name).arguments() or NEUTRAL.search(name):
                continue
            operator = get_operator(name)()
            places = (start for node in nodes for start, _ in operator.mutation_positions(node))
            for occurrence, start in enumerate(places):
                if tuple(start) not in skipped:
                    found.setdefault((str(file), start[0]), []).append((name, occurrence))
    drawn = random.Random(seed)  # noqa: S311
    order = sorted(found)
    drawn.shuffle(order)
    for place in order:
        yield place, *drawn.choice(sorted(found[place]))


def statement(text: str, line: int) -> tuple[range, bool]:
    """Return the lines of the smallest statement around a line, and whether it runs at import."""
    lines, at_import = range(line, line + 1), True
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.stmt | ast.excepthandler):
            continue
        body = getattr(node, "body", None)
        end = max(node.lineno, body[0].lineno - 1 if body else node.end_lineno or 0)
        if node.lineno <= line <= end:
            lines = range(node.lineno, end + 1)
        if body and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            at_import &= not end < line <= (node.end_lineno or 0)
    return lines, at_import


def tests_of(
    place: Place, tests: dict[Place, set[str]], seconds: dict[str, float]
) -> list[list[str]]:
    """Return the tests that execute a line by their file, the file first that is best for its time."""
    lines, at_import = statement(Path(place[0]).read_text("utf-8"), place[1])
    names: dict[str, set[str]] = {}
    covered: Counter[str] = Counter()
    for (path, line), found in tests.items():
        if path != place[0]:
            continue
        covered.update({name.partition("::")[0] for name in found})
        for name in found if at_import or line in lines else ():
            names.setdefault(name.partition("::")[0], set()).add(name)
    worth = {
        file: covered[file] / (1 + sum(seconds[one] for one in of_it))
        for file, of_it in names.items()
    }
    files: list[list[str]] = []
    spent = 0.0
    for file in sorted(names, key=worth.__getitem__, reverse=True):
        if spent < MOST_S:
            files.append(sorted(names[file]))
            spent += sum(seconds[one] for one in names[file])
    return files


def fails(files: list[list[str]]) -> int:
    """Return pytest's status for the first file with a failure, 0 where all pass."""
    return next((int(one) for one in (pytest.main([*PYTEST, "-x", *of]) for of in files) if one), 0)


def outcome(files: list[list[str]], seconds: dict[str, float], log: Path) -> tuple[int, str]:
    """Return pytest's status for a mutant and the test that failed, 0 where it survives."""
    log.write_text("")
    most = 60 + 20 * sum(seconds[one] for of_it in files for one in of_it)
    status = forked(partial(fails, files), log, most)
    lines = log.read_text("utf-8", "replace").splitlines()
    killer = next((one for one in lines if one.startswith(("FAILED", "ERROR"))), "")[:200]
    if status and TIMED.search(killer):
        again = killer.removeprefix("FAILED ").partition(" - ")[0]
        status = forked(partial(fails, [[again]]), log, most)
    return status, killer


def mutate(text: str, name: str, occurrence: int) -> str:
    """Return a mutant; an empty text where cosmic-ray fails or makes what does not compile."""
    try:
        mutated = str(mutate_code(text, get_operator(name)(), occurrence))
        compile(mutated, "mutant", "exec")
    except (AttributeError, SyntaxError):  # AttributeError for exceptions with a dotted name
        return ""
    return mutated


def run(work: Path, seed: int, count: int) -> None:
    """Test mutants until there are so many results."""
    results, log = work / f"results-{seed}.csv", work / "mutant.log"
    done = len(results.read_text("utf-8").splitlines()) if results.exists() else 0
    tests, seconds = read_map(work)
    sys.dont_write_bytecode = True
    for number, (place, name, occurrence) in enumerate(sample(seed)):
        if not done <= number < count:
            continue
        files = tests_of(place, tests, seconds)
        path = Path(place[0])
        text, times = path.read_text("utf-8"), path.stat()
        mutated = mutate(text, name, occurrence)
        status, killer = INVALID, ""
        try:
            path.write_text(mutated, "utf-8")
            if mutated:
                status, killer = outcome(files, seconds, log)
        finally:
            path.write_text(text, "utf-8")
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        row = [number, *place, name, occurrence, status, sum(map(len, files)), killer]
        with results.open("a", encoding="utf-8", newline="") as out:
            csv.writer(out).writerow(row)
        tell(*row[:7])


def score(work: Path, seed: int) -> None:
    """Print the share of killed mutants with its 95 % interval (Wilson), and those that survived."""
    rows = list(csv.reader((work / f"results-{seed}.csv").open(encoding="utf-8")))
    rows = [row for row in rows if row[5] != str(INVALID)]
    survived = [row for row in rows if row[5] == "0"]
    count, share, z = len(rows), 1 - len(survived) / len(rows), 1.96
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z * math.sqrt(share * (1 - share) / count + (z / (2 * count)) ** 2) / (1 + z * z / count)
    tell(f"{count} mutants, {share:.1%} killed ({middle - half:.1%} to {middle + half:.1%})")
    for _, file, line, name, occurrence, *_ in sorted(survived, key=lambda row: row[1:3]):
        tell(f"{file}:{line} {name} {occurrence}")


def preload() -> None:
    """Import once what no mutant changes; a child imports the rest anew."""
    for name in ("toolsrv_runtime.solve", "toolsrv_runtime.calls.caller", "toolsrv.cli.main"):
        importlib.import_module(name)
    for name in list(sys.modules):
        if name.partition(".")[0] in {"toolsrv_runtime", "toolsrv", "toolsrv_lab"}:
            del sys.modules[name]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stage", choices=["map", "run", "score"])
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=49)
    parser.add_argument("--count", type=int, default=300)
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    if given.stage == "score":
        score(given.work, given.seed)
    else:
        preload()
        make_map(given.work) if given.stage == "map" else run(given.work, given.seed, given.count)
