"""``lab eval compress``: keys that a model keeps, against ToolBench's response schemas."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from toolsrv.cli.main import cli
from toolsrv_lab.evaluation.compression import (
    FEW_KEYS,
    NO_FIT,
    NO_SCHEMA,
    UNKNOWN,
    read_examples,
    read_pairs,
)
from toolsrv_registry.api import Api
from toolsrv_registry.errors import DataError

Lab = Callable[..., Result]
TEMPLATE = {
    "took": "int",
    "rows": [{"id": "int", "name": "str", "hash": "str", "_list_length": 40}],
    "page": "int",
}
SCHEMA = {"rows": [{"id": "int", "name": "str"}], "page": "int"}


def entry(name: str, template: Any) -> dict[str, Any]:
    return {
        "category_name": "Food", "tool_name": "Pantry", "api_name": name,
        "required_parameters": [], "optional_parameters": [], "template_response": template,
    }  # fmt: skip


@pytest.fixture
def queries(tmp_path: Path) -> Path:
    path = tmp_path / "G1_query.json"
    entries = [entry("find", TEMPLATE), entry("one", {"a": "int"}), entry("gone", TEMPLATE)]
    path.write_text(json.dumps([{"query": "?", "api_list": entries}, {"api_list": None}]), "utf-8")
    return path


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """The command line over a catalog with published schemas."""
    root = tmp_path / "toolenv"
    apis: list[dict[str, Any]] = [
        {"name": name, "required_parameters": [], "optional_parameters": []}
        for name in ("find", "one")
    ]
    schemas = [{"name": "find", "schema": SCHEMA}, {"name": "one", "schema": {"a": "int"}}]
    for folder, document in (
        ("tools", {"tool_name": "Pantry", "api_list": apis}),
        ("response_examples", {"api_list": schemas}),
    ):
        place = root / folder / "Food"
        place.mkdir(parents=True)
        (place / "pantry.json").write_text(json.dumps(document), "utf-8")
    monkeypatch.setenv("TOOLSRV_DATA_DIR", str(tmp_path / "data"))

    def invoke(*words: str) -> Result:
        return CliRunner().invoke(cli, list(words))

    words = ("catalog", "import", str(tmp_path), "--name", "pantry", "--no-index")
    assert invoke(*words).exit_code == 0
    return invoke


def script(path: Path, *replies: Any) -> str:
    path.write_text(json.dumps({"replies": [json.dumps(one) for one in replies]}), "utf-8")
    return f"scripted:{path}"


def test_recall_precision_and_tokens_are_counted_and_the_log_is_used_again(
    lab: Lab, queries: Path, tmp_path: Path
) -> None:
    model = script(tmp_path / "m.json", {"took": False, "rows[].name": False})
    words = ["lab", "eval", "compress", str(queries), "--model", model]
    words += ["--out", str(tmp_path / "out"), "--json"]
    done = lab(*words)
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["left_out"] == {FEW_KEYS: 1, UNKNOWN: 1}
    figures = told["figures"]["all"]
    assert (figures["recall"]["count"], figures["recall"]["of"]) == (2, 3)
    assert (figures["precision"]["count"], figures["precision"]["of"]) == (2, 3)
    assert (figures["base"]["count"], figures["base"]["of"]) == (3, 5)
    assert figures["saved"]["count"] > 0
    assert figures["saved_published"]["count"] > 0
    assert json.loads((tmp_path / "out" / "report.json").read_text())["apis"] == 1
    again = json.loads(lab(*words).stdout)  # the script is over
    assert again["figures"] == told["figures"]
    shown = lab(*words[:-1])
    assert "2/3 = 67" in shown.stdout


def test_what_a_model_made_here_is_not_taken_for_the_published_schema(
    lab: Lab, queries: Path, tmp_path: Path
) -> None:
    place = tmp_path / "toolenv" / "tools" / "Food" / "pantry.json"
    document = json.loads(place.read_text())
    document["api_list"][0]["test_endpoint"] = {
        "took": 1,
        "page": 1,
        "rows": [{"id": 1, "name": "x"}],
    }
    place.write_text(json.dumps(document))
    assert lab("catalog", "refresh", "pantry", "--accept", "--no-index").exit_code == 0
    model = script(tmp_path / "m.json", {"page": False})
    made = lab("catalog", "compress", "pantry", "--replace", "--model", model, "--json")
    assert json.loads(made.stdout)["with_schema"] == 1, made.output
    model = script(tmp_path / "n.json", {})
    done = lab("lab", "eval", "compress", str(queries), "--model", model, "--json")
    assert json.loads(done.stdout)["figures"]["all"]["recall"]["of"] == 3


def test_a_failing_model_and_wrong_files_are_one_line(
    lab: Lab, queries: Path, tmp_path: Path
) -> None:
    done = lab("lab", "eval", "compress", str(queries), "--model", script(tmp_path / "m.json", "x"))
    assert done.exit_code == 1
    assert "the script is over" in done.stderr
    assert "Traceback" not in done.output
    for text in ("", "[]", "{", '[{"api_list": [3]}]', "[" * 100_000):
        queries.write_text(text, "utf-8")
        with pytest.raises(DataError):
            read_examples(queries)
    assert lab("lab", "eval", "compress", str(tmp_path / "none"), "--model", "x").exit_code != 0


def test_pairs_that_say_nothing_are_left_out_by_reason() -> None:
    api = Api(id="a", category="F", tool="t", name="a")
    template = {"a": "int", "b": "int", "c": "int", "d": "int"}
    known = {
        "fits": (api, {"a": "int"}),
        "none": (api, None),
        "other": (api, {"type": "object", "properties": {"a": {"type": "string"}}}),
    }
    pairs, left_out = read_pairs(dict.fromkeys([*known, "gone"], template), known.get)
    assert [one.published for one in pairs] == [{"a"}]
    assert left_out == {NO_SCHEMA: 1, NO_FIT: 1, UNKNOWN: 1}
