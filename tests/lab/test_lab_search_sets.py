"""The queries that a search is judged with: everyday requests, other languages; and other judged data."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from toolsrv_lab.retrieval.evaluation import evaluate
from toolsrv_lab.retrieval.queries import Query, read_queries
from toolsrv_registry.errors import DataError

DATA = Path(str(files("toolsrv_lab.evaluation"))) / "data"


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def query(relevant: list[str], alternatives: list[list[str]]) -> Query:
    named = [{"id": one} for one in relevant]
    return Query.model_validate(
        {"query_id": "1", "query": "x", "relevant": named, "alternatives": alternatives}
    )


def ndcg_at_1_and_recall_at_5(found: Query, *ranking: str) -> tuple[float, float]:
    ranked = [(one, 1 - at / 100) for at, one in enumerate(ranking)]
    figures = evaluate([found], lambda _text, _pool: ranked, frozenset("abcdefg")).sets["all"]
    return figures.ndcg[1].mean, figures.recall[5].mean


def test_an_api_that_serves_a_need_as_well_stands_for_it_once() -> None:
    found = query(["a", "b"], [["c", "d"], []])
    assert ndcg_at_1_and_recall_at_5(found, "c", "d", "e", "f", "g", "b") == (100, 100)
    assert ndcg_at_1_and_recall_at_5(found, "d", "c", "a", "e", "f", "g") == (100, 50)
    assert ndcg_at_1_and_recall_at_5(query(["a", "b"], []), "c", "d", "e", "b") == (0, 50)


def test_what_is_needed_itself_stands_for_nothing_else() -> None:
    found = query(["a", "b"], [["b"], []])
    assert ndcg_at_1_and_recall_at_5(found, "b", "c", "d") == (100, 50)


def test_alternatives_are_told_for_every_need(tmp_path: Path) -> None:
    path = tmp_path / "queries.jsonl"
    line = {"query_id": "1", "query": "x", "relevant": ["a", "b"], "alternatives": [["c"]]}
    path.write_text(json.dumps(line))
    with pytest.raises(DataError, match="not a query"):
        read_queries(path)


def test_the_everyday_requests_are_of_documents_that_can_be_had() -> None:
    path = DATA / "everyday_requests.jsonl"
    found = read_queries(path)
    sources = json.loads((DATA / "everyday_sources.json").read_text("utf-8"))
    assert Counter(one.set for one in found) == {"one need": 119, "several needs": 39, "none": 2}
    assert len({one.query for one in found}) == len(found)
    services = {name for row in rows(path) for name in row["services"]}
    assert services == sources.keys()
    assert all(len(one["sha256"]) == 64 for one in sources.values())


def test_the_queries_in_other_languages_are_twenty_of_each() -> None:
    found = read_queries(DATA / "other_languages.jsonl")
    assert Counter(one.set for one in found) == dict.fromkeys(
        ("German", "French", "Spanish", "Hindi", "Chinese"), 20
    )


def test_the_labelled_pairs_are_whole() -> None:
    pairs = rows(Path(str(files("toolsrv_lab.tooleval"))) / "data" / "labelled_pairs.jsonl")
    assert len(pairs) == 200
    statuses = {"Solved", "Unsolved", "Unsure"}
    for one in pairs:
        assert one["task_status"] in {"Solvable", "Unsolvable", "Unsure"}
        assert {one["pass_a"], one["pass_b"]} <= statuses
        assert one["preferred"] in {"a", "b", "tie"}
        assert all(one["reasons"][key] for key in ("task", "a", "b", "preferred"))
        for path in (one["a"], one["b"]):
            assert path["finish"]["return_type"] in {"give_answer", "give_up_and_restart"}
            assert all(isinstance(step["arguments"], dict) for step in path["steps"])


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_the_c_cases_compile_and_hold_the_use_they_are_about(tmp_path: Path) -> None:
    cases = rows(DATA / "llift_cases.jsonl")
    assert Counter(one["label"] for one in cases) == {"before": 13, "safe": 27}
    for one in cases:
        assert one["use"].strip() in one["code"][one["function"]]
        assert set(one["needs"]) <= one["code"].keys()
        macros = [code for code in one["code"].values() if code.lstrip().startswith("#")]
        others = [code for code in one["code"].values() if code not in macros]
        text = "\n".join([one["prelude"], *macros, *others])
        (tmp_path / f"{one['id']}.c").write_text(text)
    command = ["gcc", "-fsyntax-only", "-std=gnu11", *map(str, tmp_path.glob("*.c"))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
