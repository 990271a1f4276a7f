"""``catalog compress``: a model chooses the keys of responses, and calls leave the others out."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from tests.catalog_commands import told

from toolsrv_registry.catalog_state import STORE_FILE
from toolsrv_registry.storage.store import Store
from toolsrv_runtime.calls.compress import TextBudget, compress
from toolsrv_runtime.calls.recordings import Recording
from toolsrv_runtime.calls.recordings.storage import RECORDINGS_FILE, RecordingStore

Run = Callable[..., Result]
FIND, ONE, STOCK = (f"Food/pantry/{name}" for name in ("find_recipes", "recipe", "stock"))
RECIPES = {
    "request_id": "a1",
    "count": 2,
    "recipes": [
        {"id": 7, "title": "Soup", "thumb": "https://pantry.example/t/7.png"},
        {"id": 8, "title": "Stew", "thumb": "https://pantry.example/t/8.png"},
    ],
}
ITEM = {"sku": "s", "name": "Salt", "left": 2, "_rev": "f" * 80}
KEPT = {"count": "int", "recipes": [{"id": "int", "title": "str"}]}
LESS = {"request_id": False, "recipes[].thumb": False, "recipes[].id": False, "_rev": False}


def api(name: str, *required: str, **more: Any) -> dict[str, Any]:
    parameters = [{"name": one, "type": "STRING", "default": ""} for one in required]
    return {
        "name": name,
        "description": f"{name} of a kitchen",
        "method": "GET",
        "url": f"https://pantry.example/{name.replace(' ', '_')}",
        "required_parameters": parameters,
        "optional_parameters": [],
        **more,
    }


def write_catalog(folder: Path, *apis: dict[str, Any]) -> Path:
    path = folder / "toolenv" / "tools" / "Food" / "pantry.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"tool_name": "Pantry", "api_list": apis}), "utf-8")
    return folder


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """The catalog's folder: one API with an example, one with too small a one, one without."""
    return write_catalog(
        tmp_path / "source",
        api("find recipes", "ingredient", test_endpoint=RECIPES),
        api("recipe", "recipe_id", test_endpoint={"id": 7}),
        api("stock"),
    )


@pytest.fixture
def pantry(run: Run, source: Path, data_dir: Path) -> Path:
    """A data folder with the catalog."""
    told(run("catalog", "import", str(source), "--name", "pantry", "--no-index", "--json"))
    return data_dir


@pytest.fixture
def model(tmp_path: Path) -> str:
    """A scripted model that leaves some keys out."""
    return script(tmp_path / "model.json", LESS)


def script(path: Path, *replies: Any, **more: Any) -> str:
    texts = [one if isinstance(one, str) else json.dumps(one) for one in replies]
    path.write_text(json.dumps({"replies": texts, "loop": True, **more}), "utf-8")
    return f"scripted:{path}"


def schema_of(folder: Path, place: str) -> Any:
    with Store.open(folder / STORE_FILE) as store:
        return store.home(place)[2]


def recorded(folder: Path, place: str, *responses: Any, kind: str = "ok") -> None:
    with RecordingStore.open(folder / RECORDINGS_FILE) as store:
        for at, response in enumerate(responses):
            values: dict[str, Any] = {"key": f"{at:064x}", "api_id": place, "arguments": {}}
            values |= {"status": 200, "kind": kind, "response": response, "error": ""}
            values |= {"seconds": 0.1, "provenance": "live", "origin": "live"}
            values |= {"recorded_at": "", "api_hash": ""}
            store.add(Recording.model_validate(values))


def test_a_schema_is_chosen_kept_with_its_provenance_and_used(
    run: Run, pantry: Path, model: str
) -> None:
    done = told(run("catalog", "compress", "pantry", "--model", model, "--seed", "5", "--json"))
    assert (done["asked"], done["with_schema"], done["failed"]) == (1, 1, {})
    assert set(done["left_out"]) == {ONE, STOCK}
    (entry,) = done["apis"]
    assert entry["response_schema"] == KEPT  # an id that another API takes stays
    assert entry["tokens_after"] < entry["tokens_before"] == done["tokens_before"]
    assert (entry["model"], entry["seed"], entry["source"]) == (model, 5, "document")
    assert entry["version"]
    assert entry["made_at"].endswith("+00:00")
    assert told(run("catalog", "inspect", "pantry", "--json"))["compressed_by"] == {model: 1}
    schema = schema_of(pantry, FIND)
    shown = compress(RECIPES, TextBudget(90), schema)
    assert json.loads(shown)["recipes"][1] == {"id": 8, "title": "Stew"}


def test_a_second_run_asks_nothing_and_another_model_asks_again(
    run: Run, pantry: Path, model: str, tmp_path: Path
) -> None:
    words = ("catalog", "compress", "pantry", "--json", "--model")
    first = told(run(*words, model))
    Path(model.removeprefix("scripted:")).write_text('{"replies": []}', "utf-8")
    again = told(run(*words, model))
    assert (again["asked"], again["done_before"], again["apis"]) == (0, 1, first["apis"])
    other = script(tmp_path / "other.json", LESS | {"count": False})
    told(run(*words, other))
    assert schema_of(pantry, FIND) == {"recipes": [{"id": "int", "title": "str"}]}


def test_recordings_come_before_the_document_and_their_keys_are_merged(
    run: Run, pantry: Path
) -> None:
    recorded(pantry, STOCK, [ITEM], [{"sku": "t", "best_before": "2024"}], [])
    recorded(pantry, FIND, {"error": "no such thing"})
    document = told(run("catalog", "compress", "pantry", "--dry-run", "--json"))
    found = {one["id"]: one for one in document["apis"]}
    assert found[FIND]["source"] == "document"
    assert found[STOCK]["source"] == "recordings"
    names = ("sku", "name", "left", "_rev", "best_before")
    assert set(found[STOCK]["keys"]) == {f"[].{name}" for name in names}
    assert schema_of(pantry, FIND) is None  # nothing was asked


def test_replies_of_a_check_are_examples_too(
    run: Run, pantry: Path, model: str, tmp_path: Path
) -> None:
    file = tmp_path / "replies.jsonl"
    lines = [
        {"api_id": STOCK, "status": 200, "body": ITEM},
        {"api_id": ONE, "status": 500, "body": {"a": 1, "b": 2, "c": 3, "d": 4}},
    ]
    file.write_text("".join(f"{json.dumps(one)}\n" for one in lines), "utf-8")
    words = ("catalog", "compress", "pantry", "--file", str(file), "--model", model, "--json")
    done = told(run(*words))
    assert {one["api_id"]: one["source"] for one in done["apis"]} == {
        FIND: "document",
        STOCK: "check",
    }
    assert "_rev" not in schema_of(pantry, STOCK)
    missing = run(*words[:4], str(tmp_path / "none"), "--model", model)
    assert missing.exit_code != 0
    assert "Traceback" not in missing.output


def test_a_schema_of_the_source_that_leaves_something_out_stays_unless_replaced(
    run: Run, source: Path, model: str, data_dir: Path
) -> None:
    schemas = source / "toolenv" / "response_examples" / "Food" / "pantry.json"
    schemas.parent.mkdir(parents=True)
    entry = {"name": "find recipes", "schema": {"count": "int"}}
    schemas.write_text(json.dumps({"api_list": [entry]}), "utf-8")
    told(run("catalog", "import", str(source), "--name", "pantry", "--no-index", "--json"))
    words = ("catalog", "compress", "pantry", "--model", model, "--json")
    assert "--replace" in told(run(*words))["left_out"][FIND]
    assert schema_of(data_dir, FIND) == {"count": "int"}
    told(run(*words, "--replace"))
    assert schema_of(data_dir, FIND) == KEPT
    assert told(run("catalog", "compress", "pantry", "--undo", "--json"))["removed"] == 1
    assert schema_of(data_dir, FIND) == {"count": "int"}


def test_a_schema_that_names_every_key_is_narrowed_and_keys_that_no_example_has_stay(
    run: Run, model: str, tmp_path: Path
) -> None:
    row = {"id": {"type": "integer"}, "title": {"type": "string"}, "thumb": {"type": "string"}}
    schema = {
        "type": "object",
        "properties": {
            "request_id": {"type": "string"},
            "count": {"type": "integer"},
            "note": {"type": "string"},
            "recipes": {"type": "array", "items": {"type": "object", "properties": row}},
        },
    }
    content = {"application/json": {"schema": schema, "example": RECIPES}}
    get = {"operationId": "find", "responses": {"200": {"content": content}}}
    document = {
        "openapi": "3.0.0",
        "info": {"title": "Pantry", "version": "1"},
        "servers": [{"url": "https://pantry.example"}],
        "paths": {"/recipes": {"get": get}},
    }
    path = tmp_path / "pantry.openapi.json"
    path.write_text(json.dumps(document), "utf-8")
    told(run("catalog", "import", str(path), "--name", "pantry", "--no-index", "--json"))
    (entry,) = told(run("catalog", "compress", "pantry", "--model", model, "--json"))["apis"]
    assert entry["response_schema"] == {
        "count": "int",
        "recipes": [{"title": "str"}],
        "note": "str",
    }


def test_an_api_whose_text_changes_has_its_source_s_schema_again(
    run: Run, pantry: Path, source: Path, model: str
) -> None:
    told(run("catalog", "compress", "pantry", "--model", model, "--json"))
    told(run("catalog", "refresh", "pantry", "--no-index", "--json"))
    assert schema_of(pantry, FIND) == KEPT  # as long as nothing changed
    write_catalog(
        source, api("find recipes", "ingredient", description="New.", test_endpoint=RECIPES)
    )
    told(run("catalog", "refresh", "pantry", "--accept", "--no-index", "--json"))
    assert schema_of(pantry, FIND) is None
    assert told(run("catalog", "compress", "pantry", "--model", model, "--json"))["asked"] == 1
    assert schema_of(pantry, FIND)["count"] == "int"


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "no JSON",
        "[]",
        dict.fromkeys(["request_id", "count", "recipes[].title", "recipes[].thumb"], False),
    ],
)
def test_a_model_that_keeps_nothing_changes_nothing(
    run: Run, pantry: Path, tmp_path: Path, reply: Any
) -> None:
    folder = tmp_path / "empty.json"
    done = told(run("catalog", "compress", "pantry", "--model", script(folder, reply), "--json"))
    assert list(done["failed"]) == [FIND]
    assert schema_of(pantry, FIND) is None


def test_where_nothing_would_be_saved_there_is_no_schema(
    run: Run, pantry: Path, tmp_path: Path
) -> None:
    every = script(tmp_path / "all.json", "{}")
    words = ("catalog", "compress", "pantry", "--model", every, "--json")
    done = told(run(*words))
    assert (done["asked"], done["with_schema"], done["failed"]) == (1, 0, {})
    assert done["tokens_after"] == done["tokens_before"]
    assert schema_of(pantry, FIND) is None
    assert told(run(*words))["asked"] == 0  # that is known


def test_hostile_responses_end_in_schemas_or_reasons(run: Run, pantry: Path, model: str) -> None:
    deep: Any = 1
    for _ in range(180):
        deep = {"a": deep}
    odd = {"\x1b[31m": 1, "a\nb": 2, "": 3, "x" * 5000: 4, "request_id": 5, "b": 6, "c": 7, "d": 8}
    huge = {"rows": [{"id": at, "hash": "f" * 40} for at in range(20_000)], "a": 1, "b": 2}
    recorded(pantry, STOCK, odd)
    recorded(pantry, ONE, huge)
    recorded(pantry, FIND, {"deep": deep, "request_id": "x", "b": 1, "c": 2})
    done = told(run("catalog", "compress", "pantry", "--model", model, "--json"))
    assert done["failed"] == {}
    schemas = {one["api_id"]: one["response_schema"] for one in done["apis"]}
    assert schemas[FIND].keys() == {"deep", "b", "c"}
    assert schemas[STOCK].keys() == odd.keys() - {"request_id"}  # odd keys are no choice
    assert schemas[ONE] is None  # all its keys were kept
    shown = run("catalog", "compress", "pantry", "--model", model)
    assert "\x1b[31m" not in shown.output


def test_limit_and_single_apis(run: Run, pantry: Path, model: str) -> None:
    recorded(pantry, STOCK, ITEM)
    words = ("catalog", "compress", "pantry", "--model", model, "--json")
    one = told(run(*words, "--api", STOCK))
    assert [each["api_id"] for each in one["apis"]] == [STOCK]
    told(run("catalog", "compress", "pantry", "--undo", "--json"))
    assert told(run(*words, "--limit", "1"))["asked"] == 1
    assert told(run(*words))["asked"] == 1
    unknown = run(*words, "--api", "Food/pantry/stok")
    assert unknown.exit_code != 0
    assert "stok" in unknown.stderr
    assert run("catalog", "compress", "nowhere", "--dry-run").exit_code != 0
    none = run("catalog", "compress", "pantry", "--api", ONE, "--api", FIND, "--dry-run")
    assert "hint:" not in none.stderr


def test_a_catalog_without_examples_says_where_they_come_from(
    run: Run, data_dir: Path, tmp_path: Path
) -> None:
    assert data_dir
    source = write_catalog(tmp_path / "source", api("stock"))
    told(run("catalog", "import", str(source), "--name", "pantry", "--no-index", "--json"))
    done = run("catalog", "compress", "pantry", "--dry-run")
    assert done.exit_code == 0
    assert "--record FILE" in done.stderr


def test_a_model_without_conversations_is_refused_before_anything(run: Run, pantry: Path) -> None:
    done = run("catalog", "compress", "pantry", "--model", "nano")
    assert done.exit_code == 2
    assert "hint:" in done.stderr
    assert schema_of(pantry, FIND) is None


def test_a_failing_model_keeps_what_was_chosen_before(
    run: Run, pantry: Path, tmp_path: Path
) -> None:
    recorded(pantry, STOCK, ITEM)
    path = tmp_path / "once.json"
    path.write_text(json.dumps({"replies": [json.dumps(LESS)]}), "utf-8")
    words = ("catalog", "compress", "pantry", "--jobs", "1", "--model", f"scripted:{path}")
    failed = run(*words)
    assert failed.exit_code == 1
    assert "the script is over" in failed.stderr
    assert "1 API that is kept" in failed.stderr
    assert "Traceback" not in failed.output
    path.write_text(json.dumps({"replies": [json.dumps(LESS)]}), "utf-8")
    done = told(run(*words, "--json"))
    assert (done["asked"], done["done_before"]) == (1, 1)


def test_a_locked_store_is_one_line_and_nothing_is_lost(
    run: Run, pantry: Path, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolsrv_registry.storage.database.BUSY_SECONDS", 0.2)
    told(run("catalog", "list", "--json"))
    holder = sqlite3.connect(pantry / STORE_FILE, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    try:
        done = run("catalog", "compress", "pantry", "--model", model)
        assert done.exit_code != 0
        assert "error:" in done.stderr
        assert "Traceback" not in done.output
    finally:
        holder.close()
    assert told(run("catalog", "compress", "pantry", "--model", model, "--json"))["asked"] == 1


@pytest.mark.skipif(sys.platform == "win32", reason="limits of files are POSIX")
def test_a_full_disk_is_one_line_and_the_run_goes_on_when_there_is_room(
    run: Run, pantry: Path, model: str
) -> None:
    import resource

    words = ["catalog", "compress", "pantry", "--model", model]
    done = subprocess.run(
        [sys.executable, "-m", "toolsrv", *words],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)),
        env=os.environ | {"TOOLSRV_DATA_DIR": str(pantry)},
    )
    assert done.returncode == 1, done.stderr
    assert "error:" in done.stderr
    assert "Traceback" not in done.stderr
    assert told(run(*words, "--json"))["asked"] == 1


@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX")
@pytest.mark.parametrize("way", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_is_ended_goes_on_with_the_same_command(
    run: Run, pantry: Path, tmp_path: Path, way: signal.Signals
) -> None:
    recorded(pantry, STOCK, ITEM)
    slow = script(tmp_path / "slow.json", LESS, seconds=0.7)
    words = ["catalog", "compress", "pantry", "--jobs", "1", "--model", slow]
    process = subprocess.Popen(
        [sys.executable, "-m", "toolsrv", *words],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"TOOLSRV_DATA_DIR": str(pantry)},
    )
    assert process.stderr is not None
    for line in process.stderr:
        if "1 of 2" in line:
            break
    process.send_signal(way)
    process.communicate(timeout=60)
    assert process.returncode in (-signal.SIGKILL, 130)
    done = told(run(*words, "--json"))
    assert (done["asked"], done["done_before"]) == (1, 1)
