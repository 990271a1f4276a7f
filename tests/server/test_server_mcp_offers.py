"""What else a client is offered: the rest of a response, runs by name, prompts, completion, changes."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import anyio
import pytest

from toolsrv.runs.store import RunStore

pytestmark = pytest.mark.anyio
Connect = Callable[[], AbstractAsyncContextManager[Any]]
CALL = "Location/world_clock/time_difference"
CITIES = {"from_city": "London", "to_city": "Sydney"}


@pytest.fixture
def transport() -> str:
    return "memory"


async def parts(client: Any, limit: int) -> list[dict[str, Any]]:
    """Return all parts of a response, by what each says of the next."""
    found, offset = [], 0
    while True:
        arguments = {"id": CALL, "arguments": CITIES, "response_limit": limit}
        if offset:
            arguments["response_offset"] = offset
        result = await client.call_tool("call_api", arguments)
        found.append(result.structured_content)
        offset = found[-1]["next_offset"]
        if offset is None:
            return found


async def test_a_response_is_read_to_its_end_without_a_second_call(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    from toolsrv.calls.files import FileSavingCaller

    made = []
    whole = FileSavingCaller.call

    async def call(self: FileSavingCaller, *given: Any, **named: Any) -> Any:
        made.append(given)
        return await whole(self, *given, **named)

    monkeypatch.setattr(FileSavingCaller, "call", call)
    async with connect() as client:
        found = await parts(client, 100)
        assert len(found) == 2
        assert len(made) == 1
        text = "".join(one["response"].removesuffix("…") for one in found)
        assert json.loads(text)["hours_difference"] in {9.0, 10.0, 11.0}
        assert {one["characters"] for one in found} == {len(text)}
        assert [one["truncated"] for one in found] == [True, False]
        assert "response_offset 100" in found[0]["hint"]
        (content,) = (await client.read_resource(found[0]["resource"])).contents
        assert content.text == text
        part = f"{found[0]['resource']}?offset=3&limit=9"
        assert (await client.read_resource(part)).contents[0].text == text[3:12]


async def test_the_size_of_a_response_is_that_of_the_whole_however_often_it_was_cut(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    from toolsrv.calls.files import FileSavingCaller

    whole, text = FileSavingCaller.call, "0123456789" * 37_000

    async def call(self: FileSavingCaller, *given: Any, **named: Any) -> Any:
        result = await whole(self, *given, **named)
        return result.model_copy(update={"response": text})

    monkeypatch.setattr(FileSavingCaller, "call", call)
    async with connect() as client:
        for limit in (4_000, 40_000):
            arguments = {"id": CALL, "arguments": CITIES, "response_limit": limit}
            result = await client.call_tool("call_api", arguments)
            data = result.structured_content
            assert data["characters"] == 370_000
            assert data["next_offset"] <= limit
            assert f"characters 0 to {data['next_offset']} of 370000" in result.content[0].text
            assert data["response"].count("…") == 1


async def test_the_rest_of_a_call_that_was_not_made_is_refused(connect: Connect) -> None:
    async with connect() as client:
        arguments = {"id": CALL, "arguments": CITIES, "response_offset": 5}
        result = await client.call_tool("call_api", arguments)
        assert result.is_error
        assert "without response_offset" in result.structured_content["hint"]
        with pytest.raises(Exception, match="no such response"):
            await client.read_resource("toolsrv://responses/made-up")


async def test_a_response_of_a_run_is_shown_by_the_page(connect: Connect) -> None:
    async with connect() as client:
        solved = await client.call_tool("solve_task", {"task": "LOOKUP the answer", "wait_s": 60})
        view = solved.structured_content
        node = view["evidence"][0]["node"]
        given = {"run_id": view["run_id"], "node": node}
        whole = (await client.call_tool("show_run", given)).structured_content
        rest = (await client.call_tool("show_run", {**given, "offset": 4})).structured_content
        assert whole["text"][4:] == rest["text"]
        assert whole["total_characters"] == rest["total_characters"] == len(whole["text"])
        tree = (await client.call_tool("show_run", {"run_id": view["run_id"]})).structured_content
        later = {"run_id": view["run_id"], "offset": 1}
        part = (await client.call_tool("show_run", later)).structured_content
        assert part["nodes"] == tree["nodes"][1:]
        assert tree["total_nodes"] == len(tree["nodes"])
        assert len(tree["supported"]) == view["supported"]


async def test_a_run_is_found_again_by_its_task_and_cancelled_without_harm(
    connect: Connect, ready_dir: Path
) -> None:
    async with connect() as client:
        for task in ("LOOKUP the answer", "LOOKUP another thing"):
            solved = await client.call_tool("solve_task", {"task": task, "wait_s": 60})
        slow = await client.call_tool("solve_task", {"task": "SLOW one", "wait_s": 0})
        listed = (await client.call_tool("list_runs", {})).structured_content["runs"]
        assert [one["task"] for one in listed] == [
            "SLOW one", "LOOKUP another thing", "LOOKUP the answer",
        ]  # fmt: skip
        assert [bool(one["ended"]) for one in listed] == [False, True, True]
        await client.call_tool("cancel_run", {"run_id": slow.structured_content["run_id"]})
    async with connect() as client:  # another server
        found = await client.call_tool("list_runs", {"task": "another lookup"})
        (run,) = found.structured_content["runs"]
        assert run["run_id"] == solved.structured_content["run_id"]
        stopped = await client.call_tool("cancel_run", {"run_id": run["run_id"]})
        assert not stopped.is_error
        assert stopped.structured_content == {**solved.structured_content}
        with RunStore.open(ready_dir) as store:
            assert store.get(run["run_id"]).status == "answered"
        (resource, *_) = (await client.list_resources()).resources
        whole = json.loads((await client.read_resource(resource.uri)).contents[0].text)
        assert whole["name"] == resource.name


async def test_an_ended_run_and_a_cut_response_are_linked(connect: Connect) -> None:
    async with connect() as client:
        solved = await client.call_tool("solve_task", {"task": "LOOKUP the answer", "wait_s": 60})
        link = solved.content[1]
        assert link.type == "resource_link"
        shown = json.loads((await client.read_resource(str(link.uri))).contents[0].text)
        assert shown["answer"] == solved.structured_content["answer"]
        assert str(link.uri) in solved.structured_content["more"]


async def test_a_task_goes_on_from_a_run(connect: Connect) -> None:
    async with connect() as client:

        async def solved(task: str, **options: Any) -> dict[str, Any]:
            arguments = {"task": task, "wait_s": 60, "options": options}
            result = await client.call_tool("solve_task", arguments)
            assert not result.is_error, result.content
            data: dict[str, Any] = result.structured_content
            return data

        first = await solved("LOOKUP the answer")
        second = await solved("What was it?", continues=first["run_id"])
        assert second["status"] == "answered"
        assert second["unsupported"] == []  # 42 is what the first run answered
        shown = await client.call_tool("show_run", {"run_id": second["run_id"]})
        assert shown.structured_content["facts"]["goes on from"] == first["run_id"]
    async with connect() as client:  # kept by another server
        third = await solved("And again?", continues=second["run_id"])
        assert third["status"] == "answered"
        for wrong, said in (("run_nope", "run_nope"), (first["run_id"][:-1], "no finished run")):
            arguments = {"task": "x", "options": {"continues": wrong}}
            refused = await client.call_tool("solve_task", arguments)
            assert refused.is_error
            assert said in refused.structured_content["error"]


async def test_prompts_have_arguments_and_tell_a_model_what_to_do(connect: Connect) -> None:
    async with connect() as client:
        await client.call_tool("solve_task", {"task": "LOOKUP the answer", "wait_s": 60})
        prompts = {one.name: one for one in (await client.list_prompts()).prompts}
        needed = {
            name: [each.name for each in one.arguments or () if each.required]
            for name, one in prompts.items()
        }
        assert needed == {"delegate_task": ["task"], "explore_catalog": [], "explain_run": []}
        assert all(one.title and one.description for one in prompts.values())

        async def text(name: str, **given: str) -> str:
            (message,) = (await client.get_prompt(name, given)).messages
            said: str = message.content.text
            return said

        assert "fold the laundry" in await text("delegate_task", task="fold the laundry")
        assert "solve_task" in await text("delegate_task", task="x", category="Data")
        assert "search_apis" in await text("explore_catalog")
        assert "LOOKUP the answer" in await text("explain_run")


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("no_such_prompt", {}, "unknown prompt"),
        ("delegate_task", {}, "'task'"),
        ("delegate_task", {"task": ""}, "'task'"),
        ("explain_run", {}, "no run has ended"),
        ("explain_run", {"run_id": "run_nope"}, "run_nope"),
    ],
)
async def test_a_prompt_that_cannot_be_made_is_invalid_params_without_a_traceback(
    connect: Connect,
    caplog: pytest.LogCaptureFixture,
    name: str,
    given: dict[str, str],
    said: str,
) -> None:
    from mcp.shared.exceptions import MCPError

    async with connect() as client:
        with pytest.raises(MCPError, match=said) as raised:
            await client.get_prompt(name, given)
    assert raised.value.error.code == -32602
    assert "Traceback" not in caplog.text


async def test_runs_nodes_categories_and_ids_are_completed(connect: Connect) -> None:
    from mcp.types import PromptReference, ResourceTemplateReference

    async with connect() as client:
        solved = await client.call_tool("solve_task", {"task": "LOOKUP the answer", "wait_s": 60})
        view = solved.structured_content
        uri = "toolsrv://runs/{run_id}/responses/{node}{?offset,limit}"

        async def values(ref: Any, name: str, typed: str, **before: str) -> list[str]:
            argument = {"name": name, "value": typed}
            found = await client.complete(ref, argument, before or None)
            completed: list[str] = found.completion.values
            return completed

        prompt = PromptReference(type="ref/prompt", name="explain_run")
        template = ResourceTemplateReference(type="ref/resource", uri=uri)
        assert await values(prompt, "run_id", "") == [view["run_id"]]
        assert await values(prompt, "run_id", "nope") == []
        nodes = await values(template, "node", "", run_id=view["run_id"])
        assert nodes == [str(one["node"]) for one in view["evidence"]]
        assert await values(template, "node", "", run_id="run_nope") == []
        api = ResourceTemplateReference(type="ref/resource", uri="toolsrv://apis/{+id}")
        assert CALL in await values(api, "id", "time_diff")
        assert (await values(api, "id", "Location/w"))[0].startswith("Location/w")
        assert await values(api, "id", "%") == []
        assert "Location" in await values(prompt, "category", "loc")
        found = await client.read_resource(f"toolsrv://apis/{CALL}")
        assert "from_city" in found.contents[0].text
        with pytest.raises(Exception, match="did you mean"):
            await client.read_resource(f"toolsrv://apis/{CALL}s")


@pytest.mark.parametrize("era", ["auto", "legacy"])
async def test_only_changes_that_are_published_are_promised(connect: Connect, era: str) -> None:
    async with connect() as client:
        able = client.server_capabilities
        published = era == "auto"
        assert not able.prompts.list_changed
        assert bool(able.tools.list_changed) is published
        assert bool(able.resources.list_changed) is published
        assert bool(able.resources.subscribe) is published
        assert able.completions is not None
        assert able.logging is None


@pytest.mark.parametrize("era", ["auto"])
async def test_who_listens_is_told_of_a_run_and_of_tools_that_say_something_else(
    connect: Connect, ready_dir: Path, monkeypatch: pytest.MonkeyPatch, era: str
) -> None:
    from mcp.server.subscriptions import ResourcesListChanged, ResourceUpdated, ToolsListChanged

    from toolsrv.mcp_server import notifications
    from toolsrv_registry.catalog_state import STORE_FILE
    from toolsrv_registry.storage.store import Store

    assert era == "auto"
    monkeypatch.setattr(notifications, "RUNS_S", 0.02)
    async with connect() as client:
        before = {one.name: one.description for one in (await client.list_tools()).tools}
        slow = await client.call_tool("solve_task", {"task": "SLOW one", "wait_s": 0})
        uri = f"toolsrv://runs/{slow.structured_content['run_id']}"
        seen: set[Any] = set()
        listening = client.listen(
            tools_list_changed=True, resources_list_changed=True, resource_subscriptions=[uri]
        )
        with anyio.fail_after(30):
            async with listening as changed:
                await client.call_tool("cancel_run", {"run_id": uri.rpartition("/")[2]})
                await client.call_tool("solve_task", {"task": "LOOKUP the answer", "wait_s": 60})
                with Store.open(ready_dir / STORE_FILE) as store:
                    store.set_enabled("offline", enabled=False)
                async for event in changed:
                    seen.add(type(event))
                    if seen >= {ResourceUpdated, ResourcesListChanged, ToolsListChanged}:
                        break
        after = {one.name: one.description for one in (await client.list_tools()).tools}
        assert {name for name in after if after[name] != before[name]} == {
            "search_apis", "solve_task",
        }  # fmt: skip


async def test_what_is_kept_of_a_cut_response_is_bounded() -> None:
    from toolsrv.mcp_server import call_resources
    from toolsrv_runtime.calls.result import CallResult

    held = call_resources.CallResponses()
    result = CallResult(
        api_id="C/t/a", arguments={}, url="", status=200, response="x" * 1_000, error="",
        source="live", seconds=0.1,
    )  # fmt: skip
    views = [held.view(str(n), result, 10, ()) for n in range(call_resources.MOST + 5)]
    gone, kept = views[0], views[-1]
    assert held.read(kept.resource.rpartition("/")[2], 0, 5) == "xxxxx"
    with pytest.raises(Exception, match="no such response"):
        held.read(gone.resource.rpartition("/")[2], 0, 5)
    again = held.view("104", result, 10, ())
    with pytest.raises(Exception, match="no such response"):
        held.read(kept.resource.rpartition("/")[2], 0, 5)
    assert held.read(again.resource.rpartition("/")[2], 0, 5) == "xxxxx"


def test_a_kept_run_knows_the_true_size_of_a_response(tmp_path: Path) -> None:
    from toolsrv.runs.records import RunRecord
    from toolsrv.views.runs import record_view
    from toolsrv_runtime import outcome as out

    evidence = out.Evidence(
        node=3, api_id="C/t/a", function="a", arguments={}, status=200, response="y" * 50_000,
        source="live", seconds=0.1, used=True,
    )  # fmt: skip
    outcome = out.Outcome(
        task="t", status="answered", answer="a", reason="", evidence=(evidence,), candidates=(),
        tree=(), usage=out.Usage(), limits=out.Limits(), strategy="dfsdt", model="m",
        format="chat", seed=0, versions={},
    )  # fmt: skip
    with RunStore.open(tmp_path) as store:
        store.keep(RunRecord(id="run_x", task="t", status="answered", outcome=outcome), 9)
        (kept,) = record_view(store.get("run_x")).evidence
    assert kept.characters == 50_000
