"""Journals of runs: what they hold, who may take them, and what becomes of damaged ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from tests.full_disk import full_disk

from toolsrv.runs import journal
from toolsrv.runs.journal import JOURNALS, keep_interrupted, open_journal, open_runs, read_journal
from toolsrv.runs.queue import Journal, NoJournal
from toolsrv.runs.records import RunRecord, earlier_runs
from toolsrv.runs.store import RUNS_FILE, RunStore, keep_run
from toolsrv.settings import Settings, load
from toolsrv_registry.errors import DataError, NotFoundError
from toolsrv_runtime import outcome as out
from toolsrv_runtime.options import SolveOptions

EVENTS: tuple[out.Event, ...] = (
    out.CandidatesEvent(seconds=0.1, api_ids=("C/t/a", "C/t/b"), scores=(1.0, 0.5)),
    out.ThoughtEvent(seconds=0.2, node=3, parent=0, depth=1, text="odd \ud83d thought"),
    out.CallEvent(
        seconds=0.3, node=3, depth=1, api_id="C/t/a", function="a_for_t", arguments={"q": 1}
    ),
    out.ObservationEvent(
        seconds=0.4, node=3, depth=1, status=200, text="short", source="live",
        evidence=out.Evidence(
            node=3, api_id="C/t/a", function="a_for_t", arguments={"q": 1}, status=200,
            response={"rows": ["x" * 500, "\ud83d", 1.5, None]}, kind="ok", source="live",
            seconds=0.1, used=False,
        ),
    ),
    out.BudgetEvent(seconds=0.5, usage=out.Usage(calls=1, model_calls=2), limits=out.Limits()),
    out.BacktrackEvent(seconds=0.6, node=3, to=0, reason="no use"),
    out.ThoughtEvent(seconds=0.7, node=6, parent=3, depth=2, text="then"),
    out.CallEvent(seconds=0.8, node=6, depth=2, api_id="C/t/b", function="b", arguments={}),
)  # fmt: skip


def settings(folder: Path, **more: Any) -> Settings:
    return load({"data_dir": str(folder), **more}).settings


def begun(
    folder: Path, said: list[str] | None = None, *, run_id: str = "run_1", events: int = len(EVENTS)
) -> Journal:
    """Return a journal of a run with its first events."""
    report = (said if said is not None else []).append
    written = open_journal(settings(folder), run_id, "a task", SolveOptions(width=3), report)
    for event in EVENTS[:events]:
        written.add(event)
    return written


def test_an_interrupted_run_is_gone_on_with_by_its_id_alone(
    ready_dir: Path, run: Callable[..., Result]
) -> None:
    assert ready_dir.is_dir()
    task = "What is the capital of Peru?"
    written = open_journal(settings(ready_dir), "run_1", task, SolveOptions(), print)
    found = out.Evidence(
        node=2, api_id="Data/country_facts/capital_city", arguments={"country": "Peru"},
        function="capital_city_for_country_facts", status=200,
        response={"country": "Peru", "capital": "Lima"}, kind="ok", source="offline", seconds=0.1,
        used=False,
    )  # fmt: skip
    written.add(out.ThoughtEvent(seconds=0.1, node=2, parent=0, depth=1, text=""))
    written.add(
        out.ObservationEvent(
            seconds=0.2, node=2, depth=1, status=200, text="", source="offline", evidence=found
        )
    )
    written.leave()
    done = run("solve", "--continue", "run_1", "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert (told["task"], told["continues"], told["usage"]["calls"]) == (task, "run_1", 0)
    assert "Lima" in told["answer"]
    for words in (["--continue", told["run_id"]], []):
        refused = run("solve", *words)
        assert refused.exit_code == 2, refused.output


def test_a_journal_holds_the_tree_the_evidence_and_the_cost_so_far(tmp_path: Path) -> None:
    begun(tmp_path).leave()
    with open_runs(tmp_path) as store:
        record = store.get("run_1", whole=True)
        assert "x" * 500 in store.response("run_1", 3).text
    assert record.outcome is not None
    assert record.status == record.outcome.status == "interrupted"
    assert [(one.id, one.parent, one.kind, one.pruned) for one in record.outcome.tree] == [
        (0, -1, "root", False), (3, 0, "call", True), (6, 3, "call", False),
    ]  # fmt: skip
    assert record.outcome.candidates == ("C/t/a", "C/t/b")
    assert record.outcome.usage == out.Usage(seconds=0.8, calls=1, model_calls=2)
    assert record.outcome.width == 3
    assert "C/t/b was under way" in record.outcome.reason
    assert list((tmp_path / JOURNALS).iterdir()) == []


def test_a_journal_that_is_torn_anywhere_is_read_as_far_as_it_is_whole(tmp_path: Path) -> None:
    begun(tmp_path / "whole").leave()
    content = (tmp_path / "whole" / JOURNALS / "run_1.jsonl").read_bytes()
    path = tmp_path / "run_1.jsonl"
    counts = []
    for end in [*range(0, len(content), 37), len(content)]:
        path.write_bytes(content[:end] + b"\xff\x00" * (end % 2))
        record = read_journal(path)
        found = record is not None and record.outcome is not None
        counts.append(len(record.outcome.tree) if found and record and record.outcome else 0)
    assert counts == sorted(counts)
    assert counts[-1] == 3
    path.write_bytes(content.replace(b'"observation"', b'"nothing known"', 1))
    record = read_journal(path)
    assert record is not None
    assert record.outcome is not None
    assert record.outcome.evidence == ()


def test_a_file_without_a_whole_first_line_goes_and_a_newer_one_stays(tmp_path: Path) -> None:
    begun(tmp_path).leave()
    folder = tmp_path / JOURNALS
    path = folder / "run_1.jsonl"
    content = path.read_bytes()
    newer = folder / "run_2.jsonl"
    changed = content.replace(b'"version": 1', b'"version": 2').replace(b"run_1", b"run_2")
    newer.write_bytes(changed)
    renamed = folder / "run_3.jsonl"
    renamed.write_bytes(content)
    path.write_bytes(content[:40])
    assert keep_interrupted(tmp_path) == 0
    assert sorted(one.name for one in folder.iterdir()) == ["run_2.jsonl", "run_3.jsonl"]
    assert newer.read_bytes() == changed


def test_what_its_writer_holds_is_left_and_what_it_discards_is_gone(tmp_path: Path) -> None:
    written = begun(tmp_path)
    assert keep_interrupted(tmp_path) == 0
    with open_runs(tmp_path) as store, pytest.raises(NotFoundError):
        store.get("run_1")
    written.discard()
    written.leave()
    assert list((tmp_path / JOURNALS).iterdir()) == []


def test_a_run_that_was_kept_before_the_kill_stays_as_it_was(tmp_path: Path) -> None:
    written = begun(tmp_path)
    assert keep_run(tmp_path, RunRecord(id="run_1", task="a task", status="failed"), 9) == ""
    written.leave()
    assert keep_interrupted(tmp_path) == 0
    with open_runs(tmp_path) as store:
        assert store.get("run_1").status == "failed"
    assert list((tmp_path / JOURNALS).iterdir()) == []


def test_a_repeated_call_is_written_once_and_counted(tmp_path: Path) -> None:
    written = begun(tmp_path, events=4)
    size = (tmp_path / JOURNALS / "run_1.jsonl").stat().st_size
    written.add(EVENTS[3])
    assert (tmp_path / JOURNALS / "run_1.jsonl").stat().st_size - size < 600
    written.leave()
    with open_runs(tmp_path) as store:
        outcome = store.whole("run_1").outcome
    assert outcome is not None
    assert [(one.times, len(one.response["rows"])) for one in outcome.evidence] == [(2, 4)]


def test_nothing_is_written_where_no_runs_are_kept(tmp_path: Path) -> None:
    written = open_journal(settings(tmp_path, keep_runs=0), "run_1", "t", SolveOptions(), print)
    assert isinstance(written, NoJournal)
    assert not (tmp_path / JOURNALS).exists()


def test_an_id_that_is_no_name_of_a_file_is_written_nowhere(tmp_path: Path) -> None:
    said: list[str] = []
    for run_id in ("../run_1", "", "run_1\n", "x" * 300):
        begun(tmp_path, said, run_id=run_id).leave()
    assert len(said) == 4
    assert list(tmp_path.rglob("*")) == []


@pytest.mark.parametrize("limit", [0, 700, 1_500])
def test_a_full_disk_is_reported_once_and_what_was_written_is_kept_later(
    tmp_path: Path, limit: int
) -> None:
    said: list[str] = []
    with full_disk(limit):
        begun(tmp_path, said).leave()
        assert keep_interrupted(tmp_path) == 0
    assert len(said) == 1
    assert "would be lost" in said[0]
    assert (tmp_path / JOURNALS / "run_1.jsonl").exists() is (limit > 0)
    kept = keep_interrupted(tmp_path)
    assert kept == int(limit > 0)
    assert list((tmp_path / JOURNALS).iterdir()) == []


def test_a_folder_that_cannot_be_written_is_reported_once(tmp_path: Path) -> None:
    (tmp_path / JOURNALS).write_text("in the way")
    said: list[str] = []
    written = begun(tmp_path, said)
    written.discard()
    assert len(said) == 1
    with open_runs(tmp_path) as store:
        assert store.recent(5) == []


def test_a_journal_that_grows_too_large_ends_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "MOST_BYTES", 1_000)
    said: list[str] = []
    begun(tmp_path, said).leave()
    assert len(said) == 1
    assert keep_interrupted(tmp_path) == 1


def test_a_journal_waits_for_a_store_that_cannot_be_used(tmp_path: Path) -> None:
    begun(tmp_path).leave()
    (tmp_path / RUNS_FILE).write_bytes(b"not a database" * 100)
    with pytest.raises(DataError, match="damaged"):
        open_runs(tmp_path)
    (tmp_path / RUNS_FILE).unlink()
    with open_runs(tmp_path) as store:
        assert store.get("last").status == "interrupted"
    with RunStore.open(tmp_path) as store:
        assert store.interrupted("a task") == "run_1"


def observed(node: int, response: Any, status: int = 200) -> out.ObservationEvent:
    """Return a call of an API ``c/t/aNODE`` that came to an end."""
    made = out.Evidence(
        node=node, api_id=f"c/t/a{node}", arguments={}, function="f", status=status,
        response=response, kind="ok" if status == 200 else "server_error", source="live",
        error="" if status == 200 else "failed", seconds=0.1, used=False,
    )  # fmt: skip
    return out.ObservationEvent(
        seconds=0.2, node=node, depth=1, status=status, text="", source="live", evidence=made
    )


def kept(folder: Path, run_id: str, *events: out.Event) -> RunRecord:
    """Return the interrupted run of these events."""
    written = open_journal(settings(folder), run_id, "a task", SolveOptions(), print)
    for event in events:
        written.add(event)
    written.leave()
    with open_runs(folder) as store:
        return store.whole(run_id)


def test_a_long_response_in_another_script_loses_nothing(tmp_path: Path) -> None:
    thoughts = [out.ThoughtEvent(seconds=0.1, node=n, parent=0, depth=1, text="") for n in (1, 2)]
    record = kept(tmp_path, "run_1", *thoughts, observed(1, "\u4e2d" * 3_000_000), observed(2, "b"))
    assert record.outcome is not None
    assert [one.api_id for one in record.outcome.evidence] == ["c/t/a1", "c/t/a2"]


def test_of_a_call_that_failed_and_then_succeeded_the_response_is_known(tmp_path: Path) -> None:
    thought = out.ThoughtEvent(seconds=0.1, node=1, parent=0, depth=1, text="")
    record = kept(tmp_path, "run_1", thought, observed(1, "no", 500), observed(1, "yes"))
    assert record.outcome is not None
    (made,) = record.outcome.evidence
    assert (made.status, made.response, made.times) == (200, "yes", 2)


def test_a_run_that_went_on_and_was_killed_at_once_leads_on_to_the_first(tmp_path: Path) -> None:
    thought = out.ThoughtEvent(seconds=0.1, node=1, parent=0, depth=1, text="")
    kept(tmp_path, "run_1", thought, observed(1, "found"))
    with open_runs(tmp_path) as store:
        earlier = earlier_runs(store.whole, "run_1")
    written = open_journal(
        settings(tmp_path), "run_2", "a task", SolveOptions(earlier=earlier), print
    )
    written.leave()
    with open_runs(tmp_path) as store:
        runs = earlier_runs(store.whole, "run_2")
    assert [(one.run_id, len(one.calls)) for one in runs] == [("run_1", 1), ("run_2", 0)]
