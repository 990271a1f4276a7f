"""Requests that were written whole: how they are marked, and what is in the file."""

from __future__ import annotations

import re
from collections import Counter
from importlib.resources import files
from pathlib import Path

import pytest

from toolsrv_lab.instructions.requests import read_request, requests, write_requests
from toolsrv_lab.retrieval.queries import read_queries
from toolsrv_registry.api import Api
from toolsrv_registry.errors import UsageError


def api(api_id: str) -> Api:
    category, tool, name = api_id.split("/")
    return Api(id=api_id, category=category, tool=tool, name=name, description="")


def test_marks_tell_which_words_need_which_api() -> None:
    line = "Hi: [[C/t/a: where is [RX-5] now]]? And [[C/u/b: what: a quote]], [[C/t/a: again]]."
    found = read_request(line)
    assert found.text == "Hi: where is [RX-5] now? And what: a quote, again."
    assert dict(found.needs) == {"C/t/a": "where is [RX-5] now", "C/u/b": "what: a quote"}


def test_the_requests_are_many_distinct_and_whole() -> None:
    openings = Counter(" ".join(re.findall(r"[\w']+", one.text.lower())[:5]) for one in requests())
    assert len(requests()) > 10_000
    assert len(openings) > 0.98 * len(requests())
    assert len({one.text for one in requests()}) == len(requests())
    for one in requests():
        assert 1 <= len(one.needs) <= 5
        assert not {"[[", "]]"} & set(re.findall(r"\[\[|\]\]", one.text)), one.text
        assert all(
            words in one.text and api_id.count("/") == 2 for api_id, words in one.needs.items()
        )


def test_the_talk_is_of_four_kinds_and_told_once() -> None:
    text = (files("toolsrv_lab.instructions") / "data" / "talk.tsv").read_text("utf-8")
    lines = [line.split("\t") for line in text.splitlines()]
    kinds = Counter(kind for kind, _ in lines)
    assert kinds == {"greet": 400, "about": 400, "today": 200, "none": 500}
    assert len({said.casefold() for _, said in lines}) == len(lines)


def test_a_file_has_the_requests_all_of_whose_apis_are_known(tmp_path: Path) -> None:
    first = requests()[0]
    known = {one: api(one) for one in first.needs}
    path = tmp_path / "requests.jsonl"
    assert write_requests(known, path) >= 1
    query = next(one for one in read_queries(path) if one.query == first.text)
    assert query.relevant_ids == tuple(first.needs)
    assert query.needs == tuple(first.needs.values())
    with pytest.raises(UsageError, match="no request"):
        write_requests({"C/t/a": api("C/t/a")}, path)
