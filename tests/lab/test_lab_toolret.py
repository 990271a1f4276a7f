"""ToolRet's queries and tools, read from its files and evaluated."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from toolsrv.cli.main import cli
from toolsrv_lab.retrieval.queries import read_queries
from toolsrv_lab.retrieval.toolret import api_id, read_tools
from toolsrv_registry.errors import DataError, NotFoundError

TOOLS: list[dict[str, Any]] = [
    {
        "id": "lab_tool_1",
        "doc": {
            "name": "colony_growth",
            "description": "Computes how many bacteria a colony has after some hours.",
            "parameters": {"hours": {"description": "time that has passed", "type": "int"}},
        },
    },
    {
        "id": "lab_tool_2",
        "doc": json.dumps(
            {
                "api_name": "lens_focus",
                "functionality": "Finds the focal length of a glass lens.",
                "arguments": {"properties": {"radius": {"description": "of the surface"}}},
            }
        ),
    },
    {"id": "shop/tool", "documentation": "Lists parcels that a customer waits for."},
]
QUERIES: list[dict[str, Any]] = [
    {
        "id": "lab_query_1",
        "query": "How many bacteria are there after 6 hours?",
        "instruction": "Given a growth task, retrieve tools that compute colonies.",
        "labels": json.dumps([{"id": "lab_tool_1", "relevance": 1}]),
    },
    {
        "id": "lab_query_2",
        "query": "Which parcels does my customer wait for?",
        "instruction": "Given an order, retrieve tools that list parcels.",
        "labels": [
            {"id": "shop/tool", "relevance": 1},
            {"id": "lab_tool_2", "relevance": 0},
        ],
    },
]


def write(path: Path, rows: list[dict[str, Any]], form: str = "lines") -> Path:
    text = json.dumps(rows) if form == "list" else "".join(f"{json.dumps(one)}\n" for one in rows)
    data = text.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


@pytest.mark.parametrize(("name", "form"), [("q.jsonl", "lines"), ("q.json", "list"), ("q.gz", "")])
def test_queries_of_toolret_are_read(tmp_path: Path, name: str, form: str) -> None:
    first, second = read_queries(write(tmp_path / name, QUERIES, form))
    assert (first.query_id, first.set) == ("lab_query_1", "lab")
    assert first.query == QUERIES[0]["query"]
    assert first.relevant_ids == (api_id("lab_tool_1"),)
    assert second.relevant_ids == (api_id("shop/tool"),)  # relevance 0 is none


def test_an_instruction_may_stand_before_its_query(tmp_path: Path) -> None:
    path = write(tmp_path / "q.jsonl", QUERIES)
    assert read_queries(path, instructed=True)[0].query.startswith("Given a growth task")


def test_tools_become_a_catalog(tmp_path: Path) -> None:
    found = read_tools(
        [write(tmp_path / "t.jsonl", TOOLS), write(tmp_path / "u.json", TOOLS[:1], "list")]
    )
    growth, lens, parcels = found.apis
    assert (growth.name, lens.name, parcels.name) == ("colony_growth", "lens_focus", "shop/tool")
    assert growth.description.startswith("Computes")
    assert lens.description.startswith("Finds the focal length")
    assert parcels.description.startswith("Lists parcels")
    assert [one.name for one in growth.parameters] == ["hours"]
    assert [one.name for one in lens.parameters] == ["radius"]
    assert all(len(api.id.split("/")) == 3 for api in found.apis)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"id": "x_query_1", "labels": []}, "no id and query"),
        ({"id": "x_query_1", "query": "q", "labels": "["}, "labels are no list"),
        ({"id": "x_query_1", "query": "q", "labels": [3]}, "labels are no list"),
    ],
)
def test_a_damaged_query_is_told_with_its_line(
    tmp_path: Path, row: dict[str, Any], said: str
) -> None:
    with pytest.raises(DataError, match=f"line 1: not a query: {said}"):
        read_queries(write(tmp_path / "q.jsonl", [row]))


def test_damaged_tools_are_told(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    with pytest.raises(NotFoundError):
        read_tools([path])
    for text, said in (("{", "not JSON"), ('{"doc": {}}', "tool 1: no id"), ("", "empty")):
        path.write_text(text, "utf-8")
        with pytest.raises(DataError, match=said):
            read_tools([path])


def test_the_command_searches_the_tools_of_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLSRV_DATA_DIR", str(tmp_path / "data"))
    words = ["lab", "eval", "retrieval", "--queries", str(write(tmp_path / "q.jsonl", QUERIES))]
    words += ["--tools", str(write(tmp_path / "t.jsonl", TOOLS)), "--index", str(tmp_path / "i")]
    shown = CliRunner().invoke(cli, [*words, "--json"])
    assert shown.exit_code == 0, shown.output
    report = json.loads(shown.stdout)
    assert report["apis"] == 3
    assert report["sets"]["lab"]["ndcg"]["10"]["mean"] == 100
    assert report["sets"]["lab"]["complete"]["10"]["mean"] == 100
    again = CliRunner().invoke(cli, [*words, "--instructions"])
    assert again.exit_code == 0, again.output
    assert "NDCG@10" in again.stdout
    assert "100.0 [34.2, 100.0]" in again.stdout  # uncut, although the table is too wide


@pytest.mark.parametrize(
    "words",
    [
        ["retrieval", "--tools", "{tools}"],
        ["retrieval"],
        ["retrieval", "--index", "{index}"],
        ["retrieval", "--tools", "{tools}", "--index", "{tools}"],
        ["parts"],
        ["unserved"],
    ],
)
def test_queries_of_other_tools_are_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.setenv("TOOLSRV_DATA_DIR", str(tmp_path / "data"))
    row = {"id": "x_query_1", "query": "q", "labels": [{"id": "other_tool_7"}]}
    places = {"tools": write(tmp_path / "t.jsonl", TOOLS), "index": tmp_path / "i"}
    given = [word.format(**places) for word in words]
    given += ["--queries", str(write(tmp_path / "q.jsonl", [row]))]
    shown = CliRunner().invoke(cli, ["lab", "eval", *given])
    assert shown.exit_code == 2, shown.output
    assert "Traceback" not in shown.output
    assert "hint:" in shown.output


def test_a_line_of_queries_ends_at_a_line_feed_alone(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text('\ufeff{"query": "a\u2028b \\ud800", "relevant": []}\r\n', "utf-8")
    (query,) = read_queries(path)
    assert query.query == "a\u2028b \ufffd"


@pytest.mark.parametrize("opening", ['{"query": ', ""])
def test_queries_that_are_nested_too_deeply_are_told(tmp_path: Path, opening: str) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text(opening + "[" * 100_000, "utf-8")
    with pytest.raises(DataError, match=r"q\.jsonl"):
        read_queries(path)
