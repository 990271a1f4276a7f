"""The catalog that ships in other words: names, calls, tasks, and an evaluation over it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from toolsrv.cli.main import cli
from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_lab.evaluation.other_words import (
    OTHER_WORDS,
    apis,
    catalog,
    ids,
    open_registry,
    tasks,
    words,
)
from toolsrv_lab.solving import GoldCall, Task, check_tasks, judge, read_tasks
from toolsrv_registry.api import Api
from toolsrv_registry.errors import DataError
from toolsrv_runtime.calls.caller import CallResult, default_caller
from toolsrv_runtime.outcome import Evidence, Limits, Outcome, Usage

DATA = Path(__file__).parents[1] / "runtime" / "data"
ORIGINALS = load_offline_catalog().apis
COPIES = {api.id: api for api in apis()}


def pairs() -> Iterator[tuple[Api, Api]]:
    return zip(ORIGINALS, apis(), strict=True)


def task(api: str, *fails: str, **arguments: Any) -> Task:
    call = GoldCall(api=api, arguments=arguments, answer=("result",))
    return Task(id="t", kind="single", task="x", calls=(call,), fails=fails)


# ---------------------------------------------------------------- the catalog
def test_every_api_has_a_copy_of_its_own() -> None:
    assert len(COPIES) == len(ORIGINALS) == len(words()) == 170
    assert catalog().name == OTHER_WORDS
    assert catalog().apis == apis()
    assert len(catalog().tools) == len({(one.category, one.tool) for one in apis()})
    assert not COPIES.keys() & {api.id for api in ORIGINALS}


def test_names_and_descriptions_differ_and_nothing_else_does() -> None:
    for old, new in pairs():
        assert new.tool_key != old.tool_key, old.id
        assert new.name.lower() != old.name.lower(), old.id
        assert new.description != old.description, old.id
        assert new.tool_description != old.tool_description, old.id
        assert (new.method, new.url, new.body_type) == (old.method, old.url, old.body_type)
        assert len(new.required) == len(old.required)
        assert len({one.key for one in new.parameters}) == len(new.parameters), new.id
        for one, other in zip(new.parameters, old.parameters, strict=True):
            assert one.name != other.name, old.id
            changed = {"name": other.name, "description": other.description, "wire": other.wire}
            assert one.wire == other.name
            assert one.model_copy(update=changed) == other


@pytest.mark.parametrize(
    ("api_id", "arguments"),
    [
        ("Data/country_facts/capital_city", {"country": "Peru"}),
        (
            "Tools/date_calculator/days_between_dates",
            {"start": "2026-03-01", "end": "2026-12-25"},
        ),
        (
            "Science/unit_converter/convert_units",
            {"amount": 5, "from_unit": "miles", "to_unit": "km"},
        ),
    ],
)
def test_a_call_is_answered_alike(api_id: str, arguments: Mapping[str, Any]) -> None:
    call = tasks([task(api_id, **arguments)])[0].calls[0]
    assert call.arguments.keys() != arguments.keys()

    async def both() -> list[CallResult]:
        original = next(api for api in ORIGINALS if api.id == api_id)
        async with default_caller() as caller:
            return [
                await caller.call(original, arguments),
                await caller.call(COPIES[call.api], call.arguments),
            ]

    mine, theirs = asyncio.run(both())
    assert mine.ok, mine.error
    assert theirs.response == mine.response


def test_a_registry_has_the_copy_alone(tmp_path: Path) -> None:
    with open_registry(tmp_path) as registry:
        assert [one.name for one in registry.store.catalogs()] == [OTHER_WORDS]
        assert {api.id for api in registry.store.apis()} == COPIES.keys()
        assert registry.index.state() != "ready"


# ---------------------------------------------------------------- tasks
@pytest.mark.parametrize("name", ["tasks_blind.jsonl", "tasks_down.jsonl", "tasks_open.jsonl"])
def test_tasks_have_their_calls_in_the_copy_s_words(name: str) -> None:
    given = read_tasks(DATA / name)
    found = tasks(given)
    check_tasks(found, COPIES)
    for old, new in zip(given, found, strict=True):
        assert old.model_dump(exclude={"calls", "fails"}) == new.model_dump(
            exclude={"calls", "fails"}
        )
        assert new.fails == tuple(ids()[one] for one in old.fails)
        for before, call in zip(old.calls, new.calls, strict=True):
            assert call.api == ids()[before.api]
            assert call.answer == before.answer
            assert list(call.arguments.values()) == list(before.arguments.values())
            assert call.arguments.keys() <= {one.name for one in COPIES[call.api].parameters}


def test_a_task_over_other_catalogs_is_refused() -> None:
    with pytest.raises(DataError, match="no catalog has"):
        tasks([task("X/y/z")])


def test_an_expression_may_be_written_otherwise_in_the_copy_too() -> None:
    (one,) = tasks([task("Education/math_desk/calculate", expression="345 + 872")])
    name = next(iter(one.calls[0].arguments))
    assert name != "expression"
    made = Evidence(
        node=1,
        api_id=one.calls[0].api,
        function="f",
        arguments={name: "872+345"},
        status=200,
        response={"expression": "872+345", "result": 1217},
        source="offline",
        seconds=0.0,
        used=True,
    )
    outcome = Outcome(
        task="x",
        status="answered",
        answer="It is 1217.",
        reason="",
        evidence=(made,),
        candidates=(one.calls[0].api,),
        tree=(),
        usage=Usage(seconds=1.0),
        limits=Limits(),
        strategy="dfsdt",
        model="m",
        format="chat",
        seed=0,
        versions={},
    )
    response = {"expression": "345 + 872", "result": 1217}
    assert judge(one, [response], outcome).solved
    assert not judge(one, [response | {"result": 1218}], outcome).right_calls


# ---------------------------------------------------------------- the command
def evaluate(monkeypatch: pytest.MonkeyPatch, folder: Path, *more: str) -> Result:
    monkeypatch.setenv("TOOLSRV_DATA_DIR", str(folder / "data"))
    words = ["lab", "eval", "models", "--threads", "1", "--json", "--out", str(folder / "out")]
    return CliRunner().invoke(cli, [*words, *more])


def test_tasks_are_solved_over_the_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    given = ["--tasks", str(DATA / "tasks.jsonl"), "--limit", "2"]
    found = evaluate(monkeypatch, tmp_path, *given, "--other-words")
    assert found.exit_code == 0, found.output
    report = json.loads(found.stdout)
    assert report["settings"]["catalogs"] == [OTHER_WORDS]
    assert report["cells"][0]["strata"]["all"]["tasks"] == 2
    head, *results = map(json.loads, (tmp_path / "out/results.jsonl").read_text().splitlines())
    assert head["settings"] == report["settings"]
    called = {call.split()[0] for one in results for call in one["result"]["calls"]}
    assert called
    assert called <= COPIES.keys()
    assert list(scratch.iterdir()) == []
    other = evaluate(monkeypatch, tmp_path, *given)
    assert other.exit_code == 1
    assert "other settings: catalogs" in other.stderr


def test_queries_have_no_other_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "queries.jsonl"
    path.write_text('{"query_id": "1", "query": "x", "relevant": ["a/b/c"]}\n', "utf-8")
    refused = evaluate(monkeypatch, tmp_path, "--tasks", str(path), "--other-words")
    assert refused.exit_code == 2
    assert "leave --other-words out" in refused.stderr
