"""Recordings from the command line: record, replay, export, import, count and prune."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

Run = Callable[..., Result]
CALL = ("call", "Location/world_clock/time_difference")
ARGUMENTS = '{"from_city": "London", "to_city": "Sydney"}'
SAME = '{"to_city": "Sydney", "from_city": "London"}'


def document(result: Result) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.fixture
def recorded(run: Run) -> dict[str, Any]:
    """What a recorded call came to."""
    result = run(*CALL, ARGUMENTS, "--mode", "record", "--json")
    assert result.exit_code == 0, result.stderr
    return document(result)


def test_a_recorded_call_is_replayed_and_says_so(run: Run, recorded: dict[str, Any]) -> None:
    again = document(run(*CALL, SAME, "--mode", "replay", "--json"))
    assert recorded["source"] == "offline"
    assert (again["source"], again["response"]) == ("recorded", recorded["response"])
    missed = run(*CALL, SAME.replace("Sydney", "Rome"), "--mode", "replay", "--json")
    assert missed.exit_code == 1
    assert document(missed)["kind"] == "replay_miss"
    assert "Sydney" in document(missed)["error"]


def test_the_mode_may_be_a_setting(
    run: Run, recorded: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLSRV_MODE", "replay")
    assert document(run(*CALL, ARGUMENTS, "--json"))["response"] == recorded["response"]


def test_without_being_asked_nothing_is_recorded(run: Run, data_dir: Path) -> None:
    assert run(*CALL, ARGUMENTS).exit_code == 0
    assert not (data_dir / "recordings.sqlite3").exists()


def test_a_pack_moves_recordings_to_another_place(
    run: Run, recorded: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack = tmp_path / "calls.pack"
    made = document(run("recordings", "export", str(pack), "--json"))
    assert made["entries"] == 1
    monkeypatch.setenv("TOOLSRV_DATA_DIR", str(tmp_path / "other"))
    took = document(run("recordings", "import", str(pack), "--sha256", made["sha256"], "--json"))
    assert (took["added"], took["sha256"]) == (1, made["sha256"])
    again = document(run(*CALL, SAME, "--mode", "replay", "--json"))
    assert again["response"] == recorded["response"]
    assert document(run("recordings", "stats", "--json"))["provenances"] == {"imported": 1}


def test_a_tampered_pack_is_told_and_nothing_is_taken(
    run: Run, recorded: dict[str, Any], tmp_path: Path
) -> None:
    assert recorded
    pack = tmp_path / "calls.pack"
    run("recordings", "export", str(pack))
    content = pack.read_bytes()
    pack.write_bytes(content.replace(b"entries.jsonl", b"entriez.jsonl"))
    result = run("recordings", "import", str(pack))
    assert result.exit_code == 1
    assert "hint:" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_cache_of_stabletoolbench_goes_out_and_comes_in(
    run: Run, recorded: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert recorded
    out = tmp_path / "cache"
    done = document(run("recordings", "export", str(out), "--stabletoolbench", "--json"))
    assert done["replies"] == 1
    [path] = out.rglob("*.json")
    assert path.relative_to(out).as_posix() == (
        "tool_response_cache/Location/world_clock_for_Location/time_difference.json"
    )
    monkeypatch.setenv("TOOLSRV_DATA_DIR", str(tmp_path / "other"))
    took = document(run("recordings", "import", str(out), "--json"))
    assert (took["added"], took["judged"]) == (1, {"real": 1})
    again = document(run(*CALL, SAME, "--mode", "replay", "--json"))
    assert again["source"] == "recorded"
    path.rename(path.with_name("no_such_api.json"))
    result = run("recordings", "import", str(out))
    assert result.exit_code == 0
    assert "in no catalog" in result.stderr


def test_prune_removes_what_was_chosen_only(run: Run, recorded: dict[str, Any]) -> None:
    assert recorded
    assert run("recordings", "prune").exit_code == 2
    assert run("recordings", "prune", "--older-than", "1e12").exit_code == 2
    for conditions in (["--failed"], ["--older-than", "1"], ["--superseded"], ["--api", "x"]):
        done = document(run("recordings", "prune", *conditions, "--json"))
        assert (done["removed"], done["left"]) == (0, 1)
    live = ("recordings", "prune", "--provenance", "live")
    assert document(run(*live, "--dry-run", "--json")) == {"removed": 0, "chosen": 1, "left": 1}
    assert document(run(*live, "--json"))["left"] == 0


def test_an_export_replaces_only_an_earlier_one_and_only_when_told(
    run: Run, recorded: dict[str, Any], tmp_path: Path
) -> None:
    assert recorded
    notes, pack, archive = tmp_path / "notes.txt", tmp_path / "a.pack", tmp_path / "b.zip"
    notes.write_text("years of work")
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr("manifest.json", "{}")
        packed.writestr("entries.jsonl", "")
    kept = archive.read_bytes()
    for place in (notes, archive):
        for more in ([], ["--force"]):
            refused = run("recordings", "export", str(place), *more)
            assert refused.exit_code == 2
            assert "hint:" in refused.stderr
    assert (notes.read_text(), archive.read_bytes()) == ("years of work", kept)
    assert run("recordings", "export", str(pack)).exit_code == 0
    again = run("recordings", "export", str(pack))
    assert again.exit_code == 2
    assert "--force" in again.stderr
    assert run("recordings", "export", str(pack), "--force").exit_code == 0


def test_what_people_see(run: Run, recorded: dict[str, Any], tmp_path: Path) -> None:
    assert recorded
    shown = run("recordings", "stats").stdout
    assert "result ok" in shown
    assert "live" in shown
    shown = run("recordings", "export", str(tmp_path / "p")).stdout
    assert "sha256" in shown


@pytest.mark.parametrize(
    "words",
    [
        ("export", "/no/such/folder/pack"),
        ("export", "{tmp}/p", "--api", "no/such/api"),
        ("import", "{tmp}/none"),
        ("import", "{tmp}"),
        ("import", "{tmp}", "--sha256", "00"),
    ],
)
def test_what_cannot_be_done_is_told(
    run: Run, recorded: dict[str, Any], tmp_path: Path, words: tuple[str, ...]
) -> None:
    assert recorded
    result = run("recordings", *(word.format(tmp=tmp_path) for word in words))
    assert result.exit_code == 2
    assert "hint:" in result.stderr


def test_recordings_that_cannot_be_read_are_told_in_a_replay_and_cost_no_recorded_call(
    run: Run, data_dir: Path
) -> None:
    data_dir.mkdir()
    (data_dir / "recordings.sqlite3").write_bytes(b"no database" * 1_000)
    result = run(*CALL, ARGUMENTS, "--mode", "replay")
    assert result.exit_code == 1
    assert "recordings.sqlite3" in result.stderr
    assert run(*CALL, ARGUMENTS, "--mode", "record").exit_code == 0
