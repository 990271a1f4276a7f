"""``toolsrv run``: what a solve leaves behind, listed, shown and read again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from toolsrv.runs.store import RUNS_FILE, RunStore

Run = Callable[..., Result]
TASK = "What is the capital of Peru?"
VECTORS = Path(__file__).parents[1] / "runtime" / "data" / "answer_vectors.json"


@pytest.fixture(scope="module")
def solved(tmp_path_factory: pytest.TempPathFactory, built_folder: Path) -> Path:
    """A data folder in which the shipped model solved a task; its answer file beside the store."""
    from click.testing import CliRunner

    from toolsrv.cli.main import cli

    folder = tmp_path_factory.mktemp("solved") / "data"
    shutil.copytree(built_folder, folder)
    saved = str(folder / "answer.json")
    done = CliRunner().invoke(
        cli, ["--data-dir", str(folder), "solve", TASK, "-q", "--save-answer", saved]
    )
    assert done.exit_code == 0
    assert "toolsrv run show run_" in done.stderr
    return folder


@pytest.fixture
def kept(solved: Path, data_dir: Path) -> Path:
    shutil.copytree(solved, data_dir)
    return data_dir


@pytest.mark.usefixtures("kept")
def test_a_solve_is_listed(run: Run) -> None:
    assert TASK in run("run", "list").stdout
    rows = json.loads(run("run", "list", "--json").stdout)
    assert [(row["task"], row["status"]) for row in rows] == [(TASK, "answered")]


def test_nothing_to_list_says_how_a_run_is_made(run: Run) -> None:
    done = run("run", "list")
    assert (done.exit_code, done.stdout) == (0, "")
    assert "toolsrv solve" in done.stderr
    assert json.loads(run("run", "list", "--json").stdout) == []


@pytest.mark.usefixtures("kept")
def test_a_kept_run_is_shown_as_a_tree(run: Run) -> None:
    done = run("run", "show", "last")
    assert done.exit_code == 0
    for word in (TASK, "returned:", "with:", "answers:", "code 0 ok", "Lima", "HTTP 200", "* "):
        assert word in done.stdout
    document = json.loads(run("run", "show", "last", "--json").stdout)
    assert [one["kind"] for one in document["nodes"] if one["winning"]][-1] == "answer"
    assert any(one["has_response"] for one in document["nodes"])
    replies = document["nodes"][1:]
    assert all(one["tokens"] > 0 and one["seconds"] > 0 for one in replies)


@pytest.mark.usefixtures("ready_dir")
def test_what_an_api_returned_is_shown_in_its_own_types(run: Run) -> None:
    assert run("solve", "How many words has the text 'peace'?", "-q").exit_code == 0
    document = json.loads(run("run", "show", "last", "--json").stdout)
    returned = [json.loads(one["observation"]) for one in document["nodes"] if one["has_response"]]
    assert any(type(value) is int for one in returned for value in one.values())


def test_an_answer_file_is_shown_as_the_run_that_it_came_from(run: Run, kept: Path) -> None:
    ours = json.loads(run("run", "show", "last", "--json").stdout)
    file = json.loads(run("run", "show", str(kept / "answer.json"), "--json").stdout)
    assert file["answer"] == ours["answer"]
    same = ("id", "parent", "kind", "thought", "function", "code", "pruned", "winning")
    assert [[one[key] for key in same] for one in file["nodes"]] == [
        [one[key] for key in same] for one in ours["nodes"]
    ]


def test_a_run_becomes_a_page(run: Run, kept: Path) -> None:
    target = kept / "run.html"
    done = run("run", "show", "last", "--html", str(target))
    assert done.exit_code == 0
    assert "open it in a browser" in done.stdout
    text = target.read_text("utf-8")
    assert text.startswith("<!doctype html>")
    assert "Lima" in text
    refused = run("run", "show", "last", "--html", str(kept))
    assert refused.exit_code == 2
    assert "is a folder" in refused.stderr


@pytest.mark.usefixtures("kept")
def test_a_whole_response_is_printed_in_pages(run: Run) -> None:
    nodes = json.loads(run("run", "show", "last", "--json").stdout)["nodes"]
    node = str(next(one["id"] for one in nodes if one["has_response"]))
    whole = run("run", "response", "last", node)
    assert whole.exit_code == 0
    first = run("run", "response", "last", node, "--limit", "10")
    assert whole.stdout.startswith(first.stdout.rstrip("\n"))
    assert "more: --offset 10" in first.stderr
    rest = json.loads(run("run", "response", "last", node, "--offset", "10", "--json").stdout)
    assert first.stdout.removesuffix("\n") + rest["text"] == whole.stdout.removesuffix("\n")
    assert rest["next_offset"] is None


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("show", "run_nobody"), "no finished run"),
        (("show", "nowhere.json"), "does not exist"),
        (("response", "run_nobody", "1"), "no finished run"),
        (("response", "last", "0"), "no response"),
    ],
)
def test_what_is_not_there_is_said_in_one_line(run: Run, words: tuple[str, ...], told: str) -> None:
    done = run("run", *words)
    assert done.exit_code == 2
    assert told in done.stderr
    assert "hint:" in done.stderr


def test_a_file_that_is_no_answer_file_is_refused(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_text("{}")
    done = run("run", "show", str(file))
    assert done.exit_code == 1
    assert "no answer file" in done.stderr


def test_a_pruned_branch_and_a_fork_are_told_in_words(run: Run, tmp_path: Path) -> None:
    documents = json.loads(VECTORS.read_text("utf-8"))
    found = [one for one in _trees(documents) if one["tree"]["size"] > 6]
    file = tmp_path / "tree.json"
    for document in found:
        file.write_text(json.dumps(document), "utf-8")
        done = run("run", "show", str(file))
        assert done.exit_code == 0
        if "pruned" in done.stdout and "way 2 of 2" in done.stdout:
            only = run("run", "show", str(file), "--path").stdout
            assert "pruned" not in only
            return
    pytest.fail("no recorded tree has a pruned branch")


def _trees(value: object) -> list[dict[str, dict[str, int]]]:
    """Return every tree answer file anywhere in a JSON value."""
    if isinstance(value, dict):
        if "tree" in value and "answer_generation" in value:
            return [value]
        return [one for below in value.values() for one in _trees(below)]
    if isinstance(value, list):
        return [one for below in value for one in _trees(below)]
    return []


def test_texts_are_cut_and_full_shows_them(run: Run, tmp_path: Path) -> None:
    thought = "word " * 200 + "THE END"
    node = {"node_type": "Thought", "description": thought, "observation_code": 0}
    value = {
        "win": False,
        "trys": [{"chain": [node]}],
        "answer_generation": {"valid_data": False, "query": "q", "final_answer": ""},
    }
    file = tmp_path / "x.json"
    file.write_text(json.dumps(value))
    short = run("run", "show", str(file))
    assert "THE END" not in short.stdout
    assert "--full" in short.stderr
    assert "THE END" in run("run", "show", str(file), "--full").stdout


def test_a_store_that_cannot_be_written_never_loses_the_answer(run: Run, ready_dir: Path) -> None:
    (ready_dir / RUNS_FILE).write_bytes(b"damaged" * 1000)
    done = run("solve", TASK, "-q")
    assert done.exit_code == 0
    assert "Lima" in done.stdout
    assert "warning: the run was not kept" in done.stderr
    assert "may be removed" in done.stderr


def test_a_person_may_keep_nothing(
    run: Run, ready_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLSRV_KEEP_RUNS", "0")
    assert run("solve", TASK, "-q").exit_code == 0
    assert not (ready_dir / RUNS_FILE).exists()


def test_the_store_holds_no_more_than_the_setting(run: Run, kept: Path) -> None:
    assert run("config", "set", "keep_runs", "1").exit_code == 0
    assert run("solve", "What is the complementary color of teal?", "-q").exit_code == 0
    with RunStore.open(kept) as store:
        assert [row.task[-5:] for row in store.recent(9)] == ["teal?"]
