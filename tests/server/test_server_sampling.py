"""The MCP client's own model: a real client on real stdio answers for the model, in both eras."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.anyio
CAPITAL = "capital_city_for_country_facts"
TASK = "capital of Peru"
SOURCES = {key: value for key, value in os.environ.items() if key == "PYTHONPATH"}
Asked = list[Any]


def said(function: str, **arguments: object) -> str:
    return json.dumps({"thought": "go on", "name": function, "arguments": arguments})


def client(ready_dir: Path, era: str, script: list[str] | None, asked: Asked) -> Any:
    """Return a client whose model says the script; without one it declares no sampling."""
    from mcp import Client, StdioServerParameters
    from mcp.types import CreateMessageResult, TextContent

    async def model(context: Any, params: Any) -> CreateMessageResult:
        del context
        asked.append(params)
        text = (script or [""])[min(len(asked), len(script or [""])) - 1]
        content = TextContent(type="text", text=text)
        return CreateMessageResult(role="assistant", content=content, model="somebody's")

    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-m", "toolsrv", "serve", "--no-warm", "--model", "sampling"],
        env={"TOOLSRV_DATA_DIR": str(ready_dir), **SOURCES},
    )
    callback = None if script is None else model
    return Client(parameters, mode=era, sampling_callback=callback)


async def test_the_clients_model_solves_a_task(ready_dir: Path, era: str) -> None:
    asked: Asked = []
    script = [said(CAPITAL, country="Peru"), "It is Lima."]
    async with client(ready_dir, era, script, asked) as one:
        result = await one.call_tool("solve_task", {"task": TASK, "wait_s": 60})
    run = result.structured_content
    assert (run["status"], run["answer"]) == ("answered", "It is Lima.")
    assert len(asked) == 3
    assert asked[0].messages[0].content.text == TASK
    assert CAPITAL in asked[0].system_prompt
    assert "Lima" in str(asked[1].messages)


async def test_a_client_that_takes_tools_is_given_tools(ready_dir: Path, era: str) -> None:
    from mcp import Client, StdioServerParameters
    from mcp.types import (
        CreateMessageResultWithTools,
        SamplingCapability,
        SamplingToolsCapability,
        TextContent,
        ToolUseContent,
    )

    asked: Asked = []
    call = ToolUseContent(name=CAPITAL, id="toolu_01", input={"country": "Peru"})

    async def model(context: Any, params: Any) -> CreateMessageResultWithTools:
        del context
        asked.append(params)
        first = len(asked) == 1
        content: list[Any] = (
            [TextContent(text="go on"), call] if first else [TextContent(text="It is Lima.")]
        )
        return CreateMessageResultWithTools(
            role="assistant", content=content, model="somebody's", stop_reason="endTurn"
        )

    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-m", "toolsrv", "serve", "--no-warm", "--model", "sampling"],
        env={"TOOLSRV_DATA_DIR": str(ready_dir), **SOURCES},
    )
    tools = SamplingCapability(tools=SamplingToolsCapability())
    one = Client(parameters, mode=era, sampling_callback=model, sampling_capabilities=tools)
    async with one:
        result: Any = await one.call_tool("solve_task", {"task": TASK, "wait_s": 60})
    run = result.structured_content
    assert (run["status"], run["answer"]) == ("answered", "It is Lima.")
    first, second, last = asked
    assert CAPITAL in {tool.name for tool in first.tools}
    assert last.tools is None
    assert first.tool_choice.mode == "required"
    assert CAPITAL not in first.system_prompt
    task, made, response = second.messages
    assert task.content.text == TASK
    assert [block.type for block in made.content] == ["text", "tool_use"]
    assert [block.type for block in response.content] == ["tool_result"]
    assert response.content[0].tool_use_id == made.content[1].id
    assert "Lima" in response.content[0].content[0].text


async def test_more_questions_than_one_request_may_have_go_on_with_the_run(
    ready_dir: Path, era: str
) -> None:
    asked: Asked = []
    lands = ["Peru", "Chile", "Bolivia", "Japan", "France", "Spain", "Italy", "Norway"]
    many = "Lima, Santiago, Sucre, Tokyo, Paris, Madrid, Rome and Oslo."
    script = [*(said(CAPITAL, country=land) for land in lands), "no call", many]
    async with client(ready_dir, era, script, asked) as one:
        call = {"task": TASK, "wait_s": 60, "options": {"depth": 96}}
        run = (await one.call_tool("solve_task", call)).structured_content
        if era == "auto":
            assert run["status"] == "working"
            again = {"run_id": run["run_id"], "wait_s": 60}
            run = (await one.call_tool("get_run", again)).structured_content
    assert (run["status"], run["answer"]) == ("answered", many)
    assert len(asked) == len(script)


async def test_a_client_without_a_model_is_told_what_to_do(ready_dir: Path, era: str) -> None:
    async with client(ready_dir, era, None, []) as one:
        result = await one.call_tool("solve_task", {"task": TASK})
        found = await one.call_tool("search_apis", {"query": "sunrise"})
    assert result.is_error
    assert "sampling" in result.content[0].text
    assert not found.is_error


async def test_replies_that_are_no_calls_are_told_as_that(ready_dir: Path, era: str) -> None:
    async with client(ready_dir, era, ["Lima, I think."], []) as one:
        result = await one.call_tool(
            "solve_task", {"task": TASK, "wait_s": 60, "options": {"width": 1}}
        )
    told = result.structured_content
    assert (told["status"], told["answer"], told["missing"]) == ("partial", "", [TASK])
    assert "cannot be used" in told["reason"]


async def test_a_client_that_refuses_ends_the_run_with_the_reason(ready_dir: Path) -> None:
    from mcp import Client, StdioServerParameters
    from mcp.types import ErrorData

    async def refuse(context: Any, params: Any) -> ErrorData:
        del context, params
        return ErrorData(code=-1, message="the person said no")

    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-m", "toolsrv", "serve", "--no-warm", "--model", "sampling"],
        env={"TOOLSRV_DATA_DIR": str(ready_dir), **SOURCES},
    )
    async with Client(parameters, mode="legacy", sampling_callback=refuse) as one:
        result: Any = await one.call_tool("solve_task", {"task": TASK, "wait_s": 60})
    assert result.is_error
    assert "the person said no" in result.content[0].text


def test_a_command_without_a_client_refuses_the_clients_model(
    run: Callable[..., Any], ready_dir: Path
) -> None:
    done = run("--data-dir", str(ready_dir), "solve", "--model", "sampling", TASK)
    assert done.exit_code == 2
    assert "serve" in done.stderr
