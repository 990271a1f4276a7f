"""Requests to real services: the data, and figures that count alternatives."""

from __future__ import annotations

import json
from collections import Counter
from importlib.resources import files
from pathlib import Path

import pytest

from toolsrv_lab.evaluation.openapi_requests import figures, main, requests
from toolsrv_lab.evaluation.toolbench_queries import QueryResult
from toolsrv_lab.retrieval.queries import read_queries
from toolsrv_runtime.outcome import Usage

DATA = files("toolsrv_lab.evaluation") / "data"


def result(name: str, *called: str) -> QueryResult:
    return QueryResult(
        id=name,
        set=requests()[name].set,
        status="answered",
        offered=True,
        needed_called=False,
        first_relevant=False,
        called=called,
        arguments=0,
        invented=(),
        unsupported=0,
        answer="",
        usage=Usage(seconds=1.0),
    )


def with_alternative() -> str:
    return next(
        name for name, one in requests().items() if one.set == "single" and any(one.alternatives)
    )


def test_a_hundred_requests_are_read_by_the_evaluation_too() -> None:
    assert Counter(one.set for one in requests().values()) == {
        "single": 75,
        "two": 20,
        "unserved": 5,
    }
    queries = read_queries(Path(str(DATA / "openapi_requests.jsonl")))
    assert {one.query_id: one.relevant_ids for one in queries} == {
        name: tuple(dict.fromkeys(one.relevant)) for name, one in requests().items()
    }


def test_every_service_has_a_source() -> None:
    sources = json.loads((DATA / "openapi_sources.json").read_text("utf-8"))
    named = {api.split("/")[1] for one in requests().values() for api in one.relevant}
    assert len(named) == len(sources) == 14
    assert all(one["address"] and one["licence"] for one in sources.values())


def test_an_alternative_is_as_good() -> None:
    name = with_alternative()
    one = requests()[name]
    two = next(key for key, request in requests().items() if request.set == "two")
    found = figures(
        [
            result(name, one.alternatives[0][0]),
            result(name),
            result(name, "X/y/z", one.relevant[0]),
            result(two, requests()[two].relevant[0]),
        ]
    )
    assert (found["single"].met.count, found["single"].first.count) == (2, 1)
    assert (found["two"].met.count, found["two"].first.count) == (0, 1)
    assert found["all"].met.of == 4


def test_results_of_the_evaluation_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = with_alternative()
    told = result(name, requests()[name].relevant[0]).model_dump(mode="json")
    line = {"model": "m", "strategy": "dfsdt", "aids": "default", "task": name, "result": told}
    path = tmp_path / "results.jsonl"
    path.write_text(f'{{"settings": {{}}}}\n{json.dumps(line)}\n', "utf-8")
    assert main([str(path)]) == 0
    assert (
        "m dfsdt default, single: needs met 1 of 1, first call right 1" in capsys.readouterr().out
    )
    path.write_text('{"settings": {}}\n{}\n', "utf-8")
    assert main([str(path)]) == 1
    assert "line 2: not a result" in capsys.readouterr().err
    assert main([str(tmp_path / "none.jsonl")]) == 1
