"""Simulation by settings, end to end, and the whole of a response that a model saw shortened."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

Run = Callable[..., Result]
LEDGER = "Finance/big_ledger/list_rows"
FIELDS = [f"field_{at}" for at in range(40)]
TOOL = {
    "tool_name": "Big Ledger",
    "tool_description": "Rows of a ledger.",
    "api_list": [
        {
            "name": "List rows",
            "description": "Lists all rows of a ledger of an account.",
            "method": "GET",
            "url": "https://big-ledger.p.rapidapi.com/rows",
            "required_parameters": [
                {"name": "account", "type": "STRING", "description": "The account.", "default": ""}
            ],
            "optional_parameters": [],
        }
    ],
}
SCHEMA = {"account": "str", "rows": [{**dict.fromkeys(FIELDS, "str"), "_list_length": 20}]}
SCRIPT = {
    "replies": [
        {"function": "list_rows_for_big_ledger", "arguments": {"account": "A1"}},
        {
            "function": "Finish",
            "arguments": {"return_type": "give_answer", "final_answer": "20 rows"},
        },
    ]
}


@pytest.fixture
def imported(ready_dir: Path, tmp_path: Path, run: Run) -> Path:
    """A data folder with a catalog of one API that nobody serves, and its response schema."""
    said = {"api_list": [{"name": "List rows", "schema": SCHEMA}]}
    for folder, document in (("tools", TOOL), ("response_examples", said)):
        place = tmp_path / "toolenv" / folder / "Finance" / "big_ledger.json"
        place.parent.mkdir(parents=True)
        place.write_text(json.dumps(document), "utf-8")
    done = run("catalog", "import", str(tmp_path / "toolenv"), "--name", "ledgers")
    assert done.exit_code == 0, done.output
    return ready_dir


@pytest.mark.usefixtures("imported")
def test_a_simulated_call_says_so_and_has_the_shape_of_the_schema(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLSRV_SIMULATE", "schema")
    one = json.loads(run("call", LEDGER, '{"account": "A1"}', "--json").stdout)
    assert (one["source"], one["status"]) == ("simulated", 200)
    assert one["response"]["account"] == "A1"
    assert [list(row) for row in one["response"]["rows"]] == [FIELDS] * 20
    again = json.loads(run("call", LEDGER, '{"account": "A1"}', "--json").stdout)
    assert again["response"] == one["response"]
    assert "simulated" in run("call", LEDGER, '{"account": "A1"}').output


@pytest.mark.usefixtures("imported")
def test_nothing_is_simulated_unless_it_is_asked_for(run: Run) -> None:
    done = run("call", LEDGER, '{"account": "A1"}', "--mode", "offline", "--json")
    assert done.exit_code != 0
    assert '"simulated"' not in done.stdout


@pytest.mark.usefixtures("imported")
def test_a_model_simulates_by_setting(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reply = json.dumps({"error": "", "response": {"rows": 3}})
    (tmp_path / "mirror.json").write_text(json.dumps({"replies": [reply]}), "utf-8")
    mirror = f"scripted:{tmp_path / 'mirror.json'}"
    by_option = ("--simulate", mirror), ("--simulate", "model", "--simulator", mirror)
    monkeypatch.setenv("TOOLSRV_SIMULATE", mirror)
    for words in ((), *by_option):
        one = json.loads(run("call", LEDGER, '{"account": "A1"}', "--json", *words).stdout)
        assert (one["source"], one["response"]) == ("simulated", {"rows": 3})
        monkeypatch.delenv("TOOLSRV_SIMULATE", raising=False)


@pytest.mark.usefixtures("imported")
def test_what_is_simulated_is_not_recorded(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLSRV_SIMULATE", "schema")
    done = run("call", LEDGER, '{"account": "A1"}', "--mode", "record")
    assert done.exit_code == 2
    assert "choose one" in done.stderr


@pytest.mark.usefixtures("imported")
def test_a_replay_may_simulate_what_is_not_recorded(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLSRV_SIMULATE", "schema")
    done = run("call", LEDGER, '{"account": "A1"}', "--mode", "replay", "--json")
    assert json.loads(done.stdout)["source"] == "simulated"


@pytest.mark.usefixtures("imported")
def test_a_response_that_the_model_saw_shortened_is_kept_whole(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLSRV_SIMULATE", "schema")
    script = tmp_path / "script.json"
    script.write_text(json.dumps(SCRIPT), "utf-8")
    task = "List all rows of the ledger of account A1"
    done = run("solve", task, "--model", f"scripted:{script}", "--json")
    assert done.exit_code == 0, done.output
    outcome = json.loads(done.stdout)
    (seen,) = [one for one in outcome["tree"] if one["kind"] == "call"]
    assert "more items" in seen["observation"]
    assert "toolsrv" not in seen["observation"]
    assert [one["source"] for one in outcome["evidence"]] == ["simulated"]
    assert "toolsrv run response run_" in run("run", "show", "last").output
    page = json.loads(run("run", "response", "last", str(seen["id"]), "--json").stdout)
    assert page["source"] == "simulated"
    text, offset = page["text"], page["next_offset"]
    while offset is not None:
        more = run("run", "response", "last", str(seen["id"]), "--offset", str(offset), "--json")
        page = json.loads(more.stdout)
        text, offset = text + page["text"], page["next_offset"]
    assert [list(row) for row in json.loads(text)["rows"]] == [FIELDS] * 20
    assert len(text) > 5 * len(seen["observation"])
