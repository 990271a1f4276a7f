"""Text and data of every result say the same, fit the published schema and 2,000 tokens."""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from toolsrv.mcp_server import results, texts
from toolsrv.mcp_server.run_pages import NodePart, RunLine, RunsView, TreePart
from toolsrv.trees.shown import ShownNode
from toolsrv.views import runs as run_views
from toolsrv.views.apis import (
    ApiView,
    CallView,
    DescribeView,
    MissingView,
    ParameterView,
    call_view,
)
from toolsrv.views.search import HitView, SearchView
from toolsrv.workbench import Workbench
from toolsrv_runtime import outcome as out
from toolsrv_runtime.calls.result import RESULT_KINDS, CallResult, Consent, ResultKind

Connect = Callable[[], AbstractAsyncContextManager[Any]]
HALVES = runpy.run_path(str(Path(__file__).parent / "halves.py"))
check: Callable[[Any], None] = HALVES["check"]
CALL = "Location/world_clock/time_difference"
CITIES = {"from_city": "London", "to_city": "Sydney"}
ENDINGS: list[tuple[str, dict[str, Any], str]] = [
    ("search_apis", {"query": "convert a time between time zones"}, "hits"),
    ("search_apis", {"query": "time", "detail": "full", "limit": 50}, "hits"),
    ("search_apis", {"query": "fold the laundry and feed my hamster"}, "nothing_fits"),
    ("search_apis", {"query": "time", "offset": 900}, "total"),
    ("search_apis", {"query": "sunrse in Bergen"}, "notes"),
    ("search_apis", {"query": "x", "category": "Nonsense"}, "error"),
    ("search_apis", {"query": " "}, "error"),
    ("search_apis", {"query": "x", "limit": 99}, "error"),
    ("search_apis", {"query": "x", "limitt": 3}, "error"),
    ("search_apis", {"query": "time", "colour": "red"}, "ignored_arguments"),
    ("describe_apis", {"ids": [CALL, "no/such/api"]}, "not_found"),
    ("describe_apis", {"ids": ["no/such/api"]}, "not_found"),
    ("describe_apis", {"ids": []}, "error"),
    ("call_api", {"id": CALL, "arguments": CITIES}, "response"),
    ("call_api", {"id": CALL, "arguments": {**CITIES, "to_city": "Nowhereville"}}, "error"),
    ("call_api", {"id": CALL, "arguments": CITIES, "response_limit": 100}, "next_offset"),
    (
        "call_api",
        {"id": CALL, "arguments": CITIES, "response_limit": 100, "response_offset": 100},
        "offset",
    ),
    ("call_api", {"id": CALL, "arguments": CITIES, "response_offset": 9_000}, "error"),
    ("call_api", {"id": CALL, "arguments": {}}, "error"),
    ("call_api", {"id": "no/such/api", "arguments": {}}, "hint"),
    ("call_api", {"id": "boom"}, "error"),
    ("solve_task", {"task": "LOOKUP the answer"}, "evidence"),
    ("solve_task", {"task": "HOPELESS case"}, "next_step"),
    (
        "solve_task",
        {"task": "DOUBTFUL LOOKUP", "options": {"verify": True, "max_model_calls": 6}},
        "opinions",
    ),
    ("solve_task", {"task": "LOOKUP", "options": {"max_model_calls": 1}}, "reason"),
    ("solve_task", {"task": "SLOW one", "wait_s": 0}, "run_id"),
    ("solve_task", {"task": "x", "options": {"category": "Nonsense"}}, "reason"),
    ("solve_task", {"task": "  "}, "error"),
    ("get_run", {"run_id": "run_nope"}, "error"),
    ("show_run", {"run_id": "run_nope"}, "error"),
    ("cancel_run", {"run_id": "run_nope"}, "error"),
    ("no_such_tool", {}, "hint"),
]


@pytest.fixture
def boom(monkeypatch: pytest.MonkeyPatch) -> None:
    """An API whose description makes the program fail."""
    whole = Workbench.api

    def api(self: Workbench, api_id: str) -> Any:
        if api_id == "boom":
            raise RuntimeError("a fault of ours")
        return whole(self, api_id)

    monkeypatch.setattr(Workbench, "api", api)


def fits(tools: dict[str, Any], name: str, result: Any) -> None:
    """Assert that a result's data fit the published schema, as TypeScript clients demand."""
    import jsonschema

    if name in tools:
        jsonschema.validate(result.structured_content, tools[name].output_schema)


@pytest.mark.anyio
@pytest.mark.usefixtures("boom")
@pytest.mark.parametrize("transport", ["memory"])
async def test_both_halves_of_every_ending_say_the_same(connect: Connect) -> None:
    async with connect() as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}

        async def ends(name: str, arguments: dict[str, Any], field: str) -> dict[str, Any]:
            result = await client.call_tool(name, arguments)
            assert result.structured_content.get(field) not in (None, "", []), (name, arguments)
            check(result)
            fits(tools, name, result)
            data: dict[str, Any] = result.structured_content
            return data

        runs = []
        for name, arguments, field in ENDINGS:
            data = await ends(name, arguments, field)
            if data.get("run_id"):
                runs.append(data)
        assert {run["status"] for run in runs} >= {"answered", "gave_up", "partial", "failed"}
        (live,) = [run["run_id"] for run in runs if run["status"] in {"queued", "working"}]
        await ends("get_run", {"run_id": live, "wait_s": 0.1}, "phase")
        await ends("show_run", {"run_id": live}, "error")
        await ends("cancel_run", {"run_id": live}, "next_step")
        for run in runs:
            await ends("get_run", {"run_id": run["run_id"]}, "status")
            await ends("show_run", {"run_id": run["run_id"]}, "nodes")
        await ends("list_runs", {}, "runs")
        await ends("list_runs", {"task": "lookup"}, "next_step")


@pytest.mark.anyio
async def test_both_halves_say_the_same_over_every_transport(connect: Connect) -> None:
    async with connect() as client:
        solved = await client.call_tool("solve_task", {"task": "LOOKUP the answer", "wait_s": 60})
        run_id = solved.structured_content["run_id"]
        check(solved)
        check(await client.call_tool("show_run", {"run_id": run_id}))
        check(await client.call_tool("get_run", {"run_id": "run_nope"}))
        check(await client.call_tool("search_apis", {"query": "time", "limit": 99}))


@pytest.mark.parametrize("kind", RESULT_KINDS)
def test_a_call_of_every_kind_says_the_same_twice(kind: ResultKind) -> None:
    consent = Consent(
        api_id="C/t/a", method="POST", host="h.example", path="/p", arguments={"n": 7}, reason="why"
    )
    result = CallResult(
        api_id="C/t/a",
        arguments={"city": "Bergen", "n": 7},
        url="https://h.example/p",
        status=429 if kind == "rate_limited" else 0,
        response={"a": [1.5, "two", None, True]},
        error="" if kind == "ok" else f"it was {kind}",
        source="live",
        seconds=1.23456,
        kind=kind,
        hint="store a key that the host takes: toolsrv keys set rapidapi",
        page="https://h.example/subscribe",
        retry_after=17.0,
        consent=consent if kind == "needs_consent" else None,
    )
    view = call_view(result)
    sent = results.success(view) if view.ok else results.failure(view)
    check(sent)
    assert sent.structured_content is not None
    assert sent.structured_content["hint"].startswith("for the user, in a terminal: ")


LONG = "0123456789 words and more of them " * 300
EVIDENCE = out.Evidence(
    node=3, api_id="C/t/a", function="a_for_t", arguments={"q": LONG}, status=200,
    response={"rows": [LONG, 3]}, source="live", seconds=0.123456, used=True, times=2,
)  # fmt: skip
CLAIMS = tuple(
    out.Claim(text=f"claim {n}", kind="name", start=n, how="said", nodes=(3,)) for n in range(200)
)
PARAMETERS = tuple(
    ParameterView(name=f"p{n}", type="STRING", required=n == 0, description=LONG, default="x")
    for n in range(12)
)
HITS = tuple(
    HitView(id=f"C/t/a{n}", rank=n, score=0.5, description=LONG, parameters=PARAMETERS,
            similar=tuple(f"C/u{m}/a" for m in range(30)), catalog="theirs")
    for n in range(1, 51)
)  # fmt: skip
API = ApiView(
    id="C/t/a", name="a", tool="t", category="C", description=LONG, tool_description=LONG,
    method="GET", parameters=PARAMETERS, example={"p0": "x"},
)  # fmt: skip
BIG: list[Any] = [
    SearchView(query=LONG, hits=HITS, nothing_fits=False, nearest_categories=("C",), total=50,
               degraded="words only (run `toolsrv index build`)"),
    DescribeView(
        apis=tuple(API.model_copy(update={"id": f"C/t/a{n}"}) for n in range(20)),
        not_found=(MissingView(id="x", error="no API has the id 'x'", hint="toolsrv search"),),
    ),
    CallView(id="C/t/a", arguments={"q": LONG}, ok=True, status=200, response=[LONG] * 9,
             source="live", seconds=0.5),
    run_views.RunView(
        run_id="run_0123456789abcdef", status="partial", answer="It is 42.", reason="time ended",
        missing=("the rest",), supported=200, unsupported=CLAIMS, more="show_run has it",
        evidence=tuple(EVIDENCE.model_copy(update={"node": n}) for n in range(40)),
        usage=out.Usage(seconds=1.23456, calls=40), next_step="raise the budget",
    ),
    TreePart(
        name="run_0123456789abcdef", task="a task", status="answered", answer="It is 42.",
        facts={"time": "1.2 s"}, supported=CLAIMS, unsupported=CLAIMS, total_nodes=100,
        resource="toolsrv://runs/run_0123456789abcdef",
        nodes=(
            ShownNode(id=0, parent=-1, kind="root"),
            *(
                ShownNode(id=n, parent=n - 1, kind="call", thought=LONG, observation=LONG,
                          function="f", api_id="C/t/a", status=200, code=0, outcome="ok",
                          winning=n == 5, seconds=0.123456, tokens=12, has_response=True)
                for n in range(1, 100)
            ),
        ),
    ),
    NodePart(
        run_id="run_0123456789abcdef", node=3, api_id="C/t/a", status=200, source="live",
        text=LONG, offset=0, total_characters=9 * len(LONG), next_offset=len(LONG),
        kept_whole=True,
    ),
    RunsView(
        runs=tuple(
            RunLine(run_id=f"run_0123456789abcde{n}", status="answered", task=LONG,
                    ended="2026-11-01T00:00:00+00:00")
            for n in range(50)
        ),
        next_step="get_run",
    ),
]  # fmt: skip


@pytest.mark.parametrize("view", BIG, ids=lambda view: type(view).__name__)
def test_a_large_result_is_cut_in_both_halves_alike(view: Any) -> None:
    sent = results.success(view)
    check(sent)
    content = sent.content[0]
    text = getattr(content, "text", "")
    data = json.dumps(sent.structured_content, ensure_ascii=False)
    assert max(len(text.encode()), len(data.encode())) <= results.RESULT_BYTES
    assert "toolsrv index" not in text.replace("for the user, in a terminal: run `toolsrv", "")


def test_a_page_that_was_cut_goes_on_where_it_ended() -> None:
    sent = results.success(BIG[0])
    data = sent.structured_content
    assert data is not None
    assert [hit["rank"] for hit in data["hits"]] == list(range(1, data["next_offset"] + 1))
    assert data["total"] is None


def test_apis_without_room_are_named() -> None:
    data = results.success(BIG[1]).structured_content
    assert data is not None
    named = [api["id"] for api in data["apis"]] + data["left_out"]
    assert named == [f"C/t/a{n}" for n in range(20)]


def test_a_result_that_fits_is_rendered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    times = []

    def counted(view: Any) -> str:
        times.append(view)
        return texts.render(view)

    monkeypatch.setattr(results, "render", counted)
    told = results.success(RunsView(runs=()))
    assert len(times) == 1
    assert told.structured_content == results.json_data(RunsView(runs=()))
    assert told.content[0].text == texts.render(RunsView(runs=()))  # type: ignore[union-attr]
