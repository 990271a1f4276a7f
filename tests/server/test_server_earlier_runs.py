"""Runs that a task goes on from: which are known, how whole, and at the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from toolsrv.runs.records import MOST_RUNS, RunRecord, earlier_runs
from toolsrv.runs.store import RunStore
from toolsrv_registry.errors import NotFoundError, UsageError
from toolsrv_runtime import outcome as out


def record(run_id: str, continues: str = "", *, answer: str = "a", response: Any = 1) -> RunRecord:
    evidence = tuple(
        out.Evidence(
            node=node, api_id="C/t/a", function="a_for_t", arguments={}, status=status,
            response=response, source="live", seconds=0.1, used=True,
        )
        for node, status in ((3, 200), (6, 404))
    )  # fmt: skip
    outcome = out.Outcome(
        task=f"task of {run_id}", continues=continues, status="answered", answer=answer,
        reason="", evidence=evidence if answer else (), candidates=(), tree=(), usage=out.Usage(),
        limits=out.Limits(), strategy="dfsdt", model="m", format="chat", seed=0, versions={},
    )  # fmt: skip
    return RunRecord(id=run_id, task=f"task of {run_id}", status="answered", outcome=outcome)


def kept(*records: RunRecord) -> Callable[[str], RunRecord]:
    held = {one.id: one for one in records}

    def get(run_id: str) -> RunRecord:
        if run_id not in held:
            raise NotFoundError(f"no finished run {run_id!r}")
        return held[run_id]

    return get


def test_a_chain_of_runs_is_known_oldest_first_with_the_calls_that_succeeded() -> None:
    get = kept(record("a"), record("b", "a"), record("c", "b"))
    found = earlier_runs(get, "c")
    assert [one.run_id for one in found] == ["a", "b", "c"]
    assert [one.task for one in found] == ["task of a", "task of b", "task of c"]
    assert [len(one.calls) for one in found] == [1, 1, 1]


def test_a_chain_is_bounded_and_ends_at_a_run_that_is_gone_or_comes_again() -> None:
    long = kept(record("0"), *(record(str(n), str(n - 1)) for n in range(1, 20)))
    assert len(earlier_runs(long, "19")) == MOST_RUNS
    assert [one.run_id for one in earlier_runs(kept(record("b", "gone")), "b")] == ["b"]
    assert [one.run_id for one in earlier_runs(kept(record("b", "b")), "b")] == ["b"]


def test_a_run_that_is_not_kept_or_found_nothing_is_refused() -> None:
    with pytest.raises(NotFoundError):
        earlier_runs(kept(), "a")
    empty = RunRecord(id="a", task="t", status="failed", error="broken")
    for one in (empty, record("a", answer="")):
        with pytest.raises(UsageError, match="found nothing"):
            earlier_runs(kept(one), "a")


def test_a_long_response_is_known_whole(tmp_path: Path) -> None:
    rows = [{"n": n, "text": "x" * 100} for n in range(500)]
    with RunStore.open(tmp_path) as store:
        store.keep(record("run_a", response=rows), 9)
        store.keep(record("run_b", response="y" * 9_000), 9)
        (first,) = earlier_runs(store.whole, "run_a")
        (second,) = earlier_runs(store.whole, "run_b")
    assert first.calls[0].response == rows
    assert second.calls[0].response == "y" * 9_000
    assert json.dumps(rows[100]) in first.known


def test_the_model_that_ships_takes_a_value_from_the_run_before(
    ready_dir: Path, run: Callable[..., Result]
) -> None:
    assert ready_dir.is_dir()
    before = run("solve", "--json", "What is the national currency of Peru?")
    assert before.exit_code == 0, before.output
    after = run("solve", "--json", "--continue", "last", "Which countries use that currency?")
    assert after.exit_code == 0, after.output
    told = json.loads(after.stdout)
    (made,) = told["evidence"]
    assert made["api_id"] == "Finance/currency_facts/countries_using_currency"
    assert made["arguments"] == {"currency": "PEN"}
    shown = json.loads(run("run", "show", "last", "--json").stdout)
    assert shown["facts"]["goes on from"] == told["continues"]


def test_an_unknown_run_is_wrong_use(ready_dir: Path, run: Callable[..., Result]) -> None:
    assert ready_dir.is_dir()
    refused = run("solve", "--continue", "run_nope", "x")
    assert refused.exit_code == 2
    assert "toolsrv run list" in refused.stderr
