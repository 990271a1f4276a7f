"""Finished runs on disk: kept whole, bounded, and never in the way of an answer."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from tests.full_disk import full_disk

from toolsrv.runs import store as run_store
from toolsrv.runs.queue import new_run_id
from toolsrv.runs.records import RunRecord
from toolsrv.runs.store import RUNS_FILE, RunStore, keep_run
from toolsrv_registry.errors import DataError, NotFoundError
from toolsrv_runtime.outcome import Evidence, Limits, Outcome, TreeNode, Usage


def record(task: str = "a task", *, response: Any = None, run_id: str = "") -> RunRecord:
    call: dict[str, Any] = {"api_id": "C/t/a", "arguments": {"q": 1}}
    outcome = Outcome(
        task=task,
        status="answered",
        answer="42",
        reason="the model finished",
        evidence=(
            Evidence(node=3, function="a_for_t", status=200, response=response,
                     source="offline", seconds=0.1, used=True, **call),
        ),
        candidates=("C/t/a",),
        tree=(
            TreeNode(id=0, parent=-1, depth=0, kind="root"),
            TreeNode(id=3, parent=0, depth=1, kind="call", function="a_for_t", code=0, **call),
            TreeNode(id=5, parent=3, depth=2, kind="call", function="a_for_t", code=0, **call),
            TreeNode(id=7, parent=5, depth=3, kind="answer", function="Finish", code=3),
        ),
        usage=Usage(seconds=1.5, calls=1),
        limits=Limits(),
        strategy="dfsdt",
        model="m",
        format="compact",
        seed=0,
        versions={},
    )  # fmt: skip
    return RunRecord(id=run_id or new_run_id(), task=task, status="answered", outcome=outcome)


def test_a_kept_run_comes_back_as_it_was(tmp_path: Path) -> None:
    one = record(response={"a": [1, 2, "\u00e9"]})
    assert keep_run(tmp_path, one, 10) == ""
    with RunStore.open(tmp_path) as store:
        assert store.get(one.id) == one
        row = store.recent(5)[0]
    assert (row.id, row.status, row.calls, row.seconds, row.nodes) == (
        one.id, "answered", 1, 1.5, 4,
    )  # fmt: skip


def test_a_run_is_found_by_last_and_by_an_unambiguous_beginning(tmp_path: Path) -> None:
    with RunStore.open(tmp_path) as store:
        for name in ("run_ab", "run_abc", "run_xyz"):
            store.keep(record(run_id=name), 10)
        assert store.get("last").id == "run_xyz"
        assert store.get("run_x").id == "run_xyz"
        assert store.get("run_ab").id == "run_ab"
        with pytest.raises(NotFoundError, match="several runs"):
            store.get("run_a")
        with pytest.raises(NotFoundError, match="no finished run"):
            store.get("run_%")


@pytest.mark.parametrize("asked", ["last", "run_0"])
def test_who_asks_by_the_whole_id_finds_nothing_by_less_and_is_told_so(
    tmp_path: Path, asked: str
) -> None:
    with RunStore.open(tmp_path) as store:
        store.keep(record("run_0123456789"), 10)
        with pytest.raises(NotFoundError, match=f"no finished run '{asked}' is kept"):
            store.get(asked, whole=True)


def test_an_empty_store_says_that_nothing_is_kept(tmp_path: Path) -> None:
    with RunStore.open(tmp_path) as store:
        assert store.recent(5) == []
        with pytest.raises(NotFoundError, match="no run is kept yet"):
            store.get("last")


def test_the_whole_response_is_read_by_the_page(tmp_path: Path) -> None:
    text = "".join(f"line {number} \u20ac\n" for number in range(5_000))
    with RunStore.open(tmp_path) as store:
        store.keep(record(response=text, run_id="run_1"), 10)
        cut = store.get("run_1").evidence(3)
        assert cut is not None
        assert len(cut.response) == run_store.SHORT_RESPONSE + 1
        read, offset = "", 0
        while True:
            page = store.response("run_1", 3, offset=offset, limit=7_001)
            read += page.text
            if page.next_offset is None:
                break
            offset = page.next_offset
        assert read == text
        assert page.total_characters == len(text)
        assert page.kept_whole
        assert store.response("run_1", 3, offset=10**6).text == ""


def test_a_call_that_repeats_another_has_its_response(tmp_path: Path) -> None:
    with RunStore.open(tmp_path) as store:
        store.keep(record(response={"x": 1}), 10)
        assert store.response("last", 5).text == store.response("last", 3).text == '{\n "x": 1\n}'
        for node in (0, 7, 99, -1):
            with pytest.raises(NotFoundError, match=r"no response") as raised:
                store.response("last", node)
            assert raised.value.hint.endswith("3")


def test_a_response_that_is_too_long_is_kept_in_part_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_store, "MOST_RESPONSE", 100)
    with RunStore.open(tmp_path) as store:
        store.keep(record(response="x" * 250), 10)
        page = store.response("last", 3)
    assert (len(page.text), page.total_characters) == (100, 250)
    assert (page.kept_whole, page.next_offset) == (False, None)


def test_the_oldest_runs_go_when_there_are_too_many(tmp_path: Path) -> None:
    with RunStore.open(tmp_path) as store:
        for number in range(7):
            store.keep(record(run_id=f"run_{number}", response="y"), 3)
        assert [row.id for row in store.recent(9)] == ["run_6", "run_5", "run_4"]
    with sqlite3.connect(tmp_path / RUNS_FILE) as connection:
        assert connection.execute("SELECT count(*) FROM responses").fetchone() == (3,)
    connection.close()


def test_the_oldest_runs_go_when_they_take_too_much_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_store, "MOST_BYTES", 60_000)
    with RunStore.open(tmp_path) as store:
        for number in range(4):
            store.keep(record(run_id=f"run_{number}", response="y" * 20_000), 100)
        assert [row.id for row in store.recent(9)] == ["run_3", "run_2"]
        store.keep(record(run_id="run_big", response="y" * 90_000), 100)
        assert [row.id for row in store.recent(9)] == ["run_big"]


def test_nothing_is_kept_when_the_setting_says_so(tmp_path: Path) -> None:
    assert keep_run(tmp_path, record(), 0) == ""
    assert not (tmp_path / RUNS_FILE).exists()


def test_text_that_no_database_holds_is_kept_with_replacements(tmp_path: Path) -> None:
    assert keep_run(tmp_path, record("odd \ud800 task", response="\ud800 \x00 end"), 10) == ""
    with RunStore.open(tmp_path) as store:
        assert store.response("last", 3).text == "\ufffd \ufffd end"


def test_a_damaged_file_says_that_only_runs_are_lost(tmp_path: Path) -> None:
    (tmp_path / RUNS_FILE).write_bytes(b"not a database" * 100)
    told = keep_run(tmp_path, record(), 10)
    assert told.startswith("the run was not kept: ")
    assert "may be removed: it holds nothing but finished runs" in told
    with pytest.raises(DataError, match="damaged"):
        RunStore.open(tmp_path)


def test_a_place_that_cannot_be_written_is_told_not_raised(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    told = keep_run(tmp_path / "file", record(), 10)
    assert told.startswith("the run was not kept: ")


def test_a_full_disk_is_told_not_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_run(tmp_path, record(), 10)
    trim = run_store._trim

    def full(connection: sqlite3.Connection, most: int) -> None:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")
        connection.execute("INSERT INTO responses VALUES ('run_1', 9, ?, 0)", ["x" * 500_000])
        trim(connection, most)

    monkeypatch.setattr(run_store, "_trim", full)
    told = keep_run(tmp_path, record(run_id="run_1"), 10)
    assert "no space left" in told
    assert "free some disk space" in told
    assert "remove" not in told
    monkeypatch.undo()
    with RunStore.open(tmp_path) as store:
        assert len(store.recent(5)) == 1


def test_runs_are_read_where_nothing_can_be_written(tmp_path: Path) -> None:
    keep_run(tmp_path, record("x", response="whole"), 10)
    before = (tmp_path / RUNS_FILE).read_bytes()
    with full_disk():
        with pytest.raises(DataError) as caught:
            RunStore.open(tmp_path)
        with RunStore.open_to_read(tmp_path) as store:
            assert store.get("last").task == "x"
            assert store.response("last", 3).text == "whole"
            assert len(store.recent(5)) == 1
        told = keep_run(tmp_path, record(run_id="run_1"), 10)
    assert "remove" not in f"{caught.value.hint} {told}"
    assert (tmp_path / RUNS_FILE).read_bytes() == before


def test_what_only_the_log_of_writes_has_is_never_left_out(tmp_path: Path) -> None:
    keep_run(tmp_path, record("old"), 10)
    writer = RunStore.open(tmp_path)
    writer.keep(record("new", run_id="run_1"), 10)
    for name in (RUNS_FILE, f"{RUNS_FILE}-wal"):
        copy = tmp_path / "copy" / name
        copy.parent.mkdir(exist_ok=True)
        copy.write_bytes((tmp_path / name).read_bytes())
    writer.__exit__()
    with (
        full_disk(),
        pytest.raises(DataError),
    ):  # a crash left the log, and there is no room to read it
        RunStore.open_to_read(tmp_path / "copy")
    with RunStore.open_to_read(tmp_path / "copy") as store:
        assert store.get("last").task == "new"
