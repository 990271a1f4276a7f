"""The parts of the benchmarks: figures, intervals, the machine, queries, the raw wire."""

from __future__ import annotations

import math
import os
import platform
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_lab.bench.engine import reuse
from toolsrv_lab.bench.report import (
    Memory,
    figure,
    machine,
    memory,
    percentile,
    significant,
    versions,
    wilson,
)
from toolsrv_lab.bench.solve import by_kind
from toolsrv_lab.bench.stdio_server import NEW_ERA, OLD_ERA, Era, ServerProcess
from toolsrv_lab.bench.texts import TASKS, queries
from toolsrv_lab.solving import Verdict
from toolsrv_registry.errors import DataError
from toolsrv_registry.host_resources import usable_cores
from toolsrv_runtime.outcome import Usage

numbers = st.floats(min_value=1e-6, max_value=1e9)


def test_a_figure_has_the_spread_of_its_values() -> None:
    one = figure("search", "ms", [3.0, None, 1.0, 2.0])
    assert (one.count, one.min, one.median, one.p95, one.max) == (3, 1.0, 2.0, None, 3.0)


def test_a_figure_of_many_values_has_a_95th_percentile() -> None:
    assert figure("search", "ms", range(1, 101)).p95 == 95.0


def test_a_figure_without_values_says_so() -> None:
    one = figure("memory", "MiB", [None, None])
    assert (one.count, one.min, one.median, one.max) == (0, None, None, None)


@given(st.lists(numbers, min_size=1))
def test_a_figure_is_ordered(values: list[float]) -> None:
    one = figure("x", "s", values)
    assert one.min is not None
    assert one.median is not None
    assert one.max is not None
    assert one.min <= one.median <= one.max


@given(st.lists(numbers, min_size=1).map(sorted), st.floats(min_value=0, max_value=100))
def test_a_percentile_is_one_of_the_values_with_enough_below(
    ordered: list[float], percent: float
) -> None:
    found = percentile(ordered, percent)
    assert found in ordered
    assert sum(value <= found for value in ordered) >= percent / 100 * len(ordered) - 1e-9


@given(numbers)
def test_rounding_keeps_a_value_within_a_thousandth(value: float) -> None:
    assert math.isclose(significant(value), value, rel_tol=1e-3)


def test_the_interval_is_wilsons() -> None:
    assert wilson(5, 10) == pytest.approx((0.2366, 0.7634), abs=1e-4)
    assert wilson(40, 40) == pytest.approx((0.9124, 1.0), abs=1e-4)
    assert wilson(0, 0) == (0.0, 1.0)


counts_of_trials = st.integers(min_value=1, max_value=10_000).flatmap(
    lambda trials: st.tuples(st.integers(min_value=0, max_value=trials), st.just(trials))
)


@given(counts_of_trials)
def test_the_interval_holds_the_share(counts: tuple[int, int]) -> None:
    successes, trials = counts
    low, high = wilson(successes, trials)
    assert 0 <= low <= successes / trials + 1e-9
    assert successes / trials - 1e-9 <= high <= 1


def test_prefix_reuse_is_a_share_of_all_prompts() -> None:
    assert reuse(Usage(prompt_tokens=200, evaluated_tokens=50)) == 75.0
    assert reuse(Usage(prompt_tokens=200, evaluated_tokens=80, generated_tokens=30)) == 75.0
    assert reuse(Usage(prompt_tokens=200, evaluated_tokens=29, generated_tokens=30)) == 100.0
    assert reuse(Usage(prompt_tokens=10, evaluated_tokens=50)) == 0.0
    assert reuse(Usage()) is None


def test_verdicts_are_counted_by_kind() -> None:
    def verdict(kind: str, *, calls: bool, answer: bool) -> Verdict:
        return Verdict(
            id="x",
            kind=kind,
            status="answered",
            offered=True,
            right_calls=calls,
            right_answer=answer,
            answer="",
            calls=(),
            usage=Usage(seconds=0.5, prompt_tokens=10),
        )

    kinds = by_kind(
        [
            verdict("three", calls=True, answer=False),
            verdict("single", calls=True, answer=True),
            verdict("single", calls=False, answer=True),
        ]
    )
    assert list(kinds) == ["single", "three", "all"]
    assert [kinds["all"][name]["count"] for name in ("right_calls", "right_answer", "both")] == [
        2,
        2,
        1,
    ]
    assert kinds["single"]["tasks"] == 2
    assert (kinds["all"]["seconds"], kinds["all"]["prompt_tokens"]) == (1.5, 30)


def test_the_machine_is_described() -> None:
    found = machine()
    assert found["cores"] == usable_cores() >= 1
    assert found["cpu"]
    assert found["python"] == platform.python_version()
    assert versions()["toolsrv"] != "not installed"


def test_our_own_memory_is_known_and_that_of_nobody_is_not() -> None:
    own = memory(os.getpid())
    assert own.resident is not None
    assert own.peak is not None
    assert 1 < own.resident <= own.peak
    assert memory(2**31 - 1) == Memory()


def test_queries_are_varied_and_the_same_for_a_seed() -> None:
    apis = load_offline_catalog().apis
    found = queries(apis, 90, 7)
    assert len(found) == 90
    assert len(set(found)) > 80
    assert all(text.strip() for text in found)
    assert found == queries(apis, 90, 7) != queries(apis, 90, 8)


def test_the_tasks_differ() -> None:
    assert len(set(TASKS)) == len(TASKS) > 4


@pytest.mark.parametrize("era", [OLD_ERA, NEW_ERA])
def test_the_wire_opens_a_server_in_both_eras(tmp_path: Path, era: Era) -> None:
    with ServerProcess(tmp_path, era=era) as process:
        process.open()
        opened = process.seconds()
        names = [tool["name"] for tool in process.request("tools/list")["tools"]]
        assert 0 < opened < process.seconds()
        assert "solve_task" in names


def test_the_wire_tells_an_error_of_the_server(tmp_path: Path) -> None:
    with ServerProcess(tmp_path, era=NEW_ERA) as process, pytest.raises(DataError) as raised:
        process.request("no/such/method")
    assert "no/such/method" in raised.value.message


def test_the_wire_does_not_wait_for_ever(tmp_path: Path) -> None:
    with (
        ServerProcess(tmp_path, era=NEW_ERA, patience_s=0.0) as process,
        pytest.raises(DataError) as raised,
    ):
        process.open()
    assert "server/discover" in raised.value.message
