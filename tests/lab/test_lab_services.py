"""Requests to services with an OpenAPI document: how they are marked, and read beside the documents."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import pytest

from toolsrv_lab.evaluation.openapi_requests import requests as judged
from toolsrv_lab.instructions import requests
from toolsrv_lab.instructions.requests import read_line, read_services, service_requests
from toolsrv_registry.errors import NotFoundError

PHONE = {
    "openapi": "3.0.3",
    "info": {"title": "Phones", "version": "1"},
    "paths": {
        "/accounts/{sid}/calls": {
            "post": {"operationId": "createCall", "summary": "Create a call", "responses": {}},
            "get": {"operationId": "listCalls", "summary": "List calls", "responses": {}},
        },
        "/accounts/{sid}": {
            "get": {"operationId": "account", "summary": "Show the account", "responses": {}}
        },
    },
}
LINES = (
    "phone.json\t[[POST /accounts/{id}/calls: ring my mother]]",
    "phone.json\tHi: [[POST /accounts/{id}/calls: call: the office]] and [[GET /accounts/{id}/calls: who rang?]]",
    "phone.json\t[[GET /nowhere: what is this]]",
    "gone.json\t[[GET /x: y]]",
    "\t[[phone.json GET /accounts/{x}: who am I there]], and [[gone.json GET /x: what is that]]?",
    "\tand [[phone.json GET /accounts/{x}: who am I there]], [[phone.json GET /accounts/{sid}/calls: who rang?]]",
)


def test_marks_tell_which_words_need_which_operation() -> None:
    found = read_line(LINES[1])
    assert found.text == "Hi: call: the office and who rang?"
    assert found.needs == {
        ("phone.json", "POST", "/accounts/{id}/calls"): "call: the office",
        ("phone.json", "GET", "/accounts/{id}/calls"): "who rang?",
    }
    several = read_line(LINES[4])
    assert several.text == "who am I there, and what is that?"
    assert list(several.needs) == [
        ("phone.json", "GET", "/accounts/{x}"),
        ("gone.json", "GET", "/x"),
    ]


def test_the_requests_are_many_distinct_and_of_other_services_than_the_judged() -> None:
    found = service_requests()
    assert len(found) > 20_000
    assert len({one.text for one in found}) == len(found)
    assert all(one.needs and "[[" not in one.text for one in found)
    assert all(words in one.text for one in found for words in one.needs.values())
    names = {name for one in judged().values() for name in one.services}
    everyday = Path(str(files("toolsrv_lab.evaluation"))) / "data/everyday_sources.json"
    names |= json.loads(everyday.read_text("utf-8")).keys()
    titles = {place[0].casefold() for one in found for place in one.needs}
    for name in names - {"weather", "box"}:
        word = name.casefold().replace(" ", "").replace("_", "").removeprefix("google")
        assert not any(f"{word}.com" in title or f"/{word}.json" in title for title in titles), name


def test_requests_are_read_beside_their_documents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = tuple(map(read_line, LINES))
    monkeypatch.setattr(requests, "service_requests", lambda: lines)
    (tmp_path / "phone.json").write_text(json.dumps(PHONE))
    seen: list[tuple[int, int]] = []
    apis, queries = read_services(tmp_path, progress=lambda *now: seen.append(now))
    assert [one.query for one in queries] == [lines[0].text, lines[1].text, lines[5].text]
    assert [len(one.relevant) for one in queries] == [1, 2, 2]
    named = {one.id: one.name for one in apis}
    assert set(named.values()) == {"account", "createCall", "listCalls"}
    assert named[queries[0].relevant_ids[0]] == "createCall"
    assert seen == [(1, 2), (2, 2)]
    (tmp_path / "gone.json").write_text(json.dumps(PHONE))
    assert len(read_services(tmp_path, others=0)[0]) == len(apis)
    assert len(read_services(tmp_path, others=1)[0]) == len(apis) + 1


def test_a_folder_without_the_documents_says_where_they_are(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="none of the documents") as caught:
        read_services(tmp_path)
    assert "npm pack" in str(caught.value.hint)
