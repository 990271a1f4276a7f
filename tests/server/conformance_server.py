"""The real server with the tools that the official conformance suite calls: ``conformance_server.py PORT``.

On loopback without a token, as the suite has none to send. The tools are about tasks only.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from mcp.server.context import CallNext, HandlerResult
from mcp.server.mcpserver import Context, require_client_extension
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INTERNAL_ERROR,
    CallToolRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
)

from toolsrv.mcp_server import server as build
from toolsrv.mcp_server.server import ToolsrvServer, build_server
from toolsrv.mcp_server.tasks_extension import (
    TASKS,
    Ctx,
    TasksExtension,
    TaskState,
    TaskTool,
    declared,
    serving_task,
)

FIXTURES = (
    "slow_compute", "failing_job", "protocol_error_job", "confirm_delete", "multi_input",
    "test_tool_with_task",
)  # fmt: skip
ONLY_AS_TASKS = {"failing_job", "test_tool_with_task"}


class FixtureTasks(TasksExtension):
    """The extension, with tools that a client without it is refused."""

    def __init__(self, task_tools: Any, earlier: Any) -> None:
        super().__init__({**task_tools, **{name: TaskTool(0.15) for name in FIXTURES}}, earlier)

    async def intercept_tool_call(
        self, params: CallToolRequestParams, ctx: Ctx, call_next: CallNext
    ) -> HandlerResult:
        """Refuse, or go on."""
        if params.name in ONLY_AS_TASKS and not declared(ctx):
            require_client_extension(ctx, TASKS)
        return await super().intercept_tool_call(params, ctx, call_next)


def asked(message: str, field: str = "ok", kind: str = "boolean") -> ElicitRequest:
    """Return a form with one field."""
    schema = {"type": "object", "properties": {field: {"type": kind}}, "required": [field]}
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def task() -> TaskState:
    """Return the task that is served."""
    found = serving_task.get()
    assert found is not None
    return found


async def greet(name: str) -> str:
    """Answer at once."""
    return f"Hello, {name}!"


async def slow_compute(ctx: Context[None, Any], seconds: float = 1) -> str:
    """Work for so long."""
    for step in range(int(seconds * 10)):
        await asyncio.sleep(0.1)
        await ctx.report_progress(step + 1)
    return f"computed in {seconds}"


async def failing_job() -> str:
    """Fail as a tool does."""
    await asyncio.sleep(1)
    raise ValueError("job failed")


async def protocol_error_job() -> str:
    """Fail as a request does."""
    await asyncio.sleep(0.3)
    raise MCPError(INTERNAL_ERROR, "boom")


async def confirm_delete(filename: str = "x") -> str:
    """Ask one question."""
    said = await task().ask({"confirm": asked(f"Delete {filename}?", "confirm")})
    return f"deleted {filename}: {said['confirm']}"


async def multi_input() -> str:
    """Ask two questions at once."""
    said = await task().ask(
        {"name": asked("name?", "name", "string"), "age": asked("age?", "age", "integer")}
    )
    return f"{said['name']} {said['age']}"


async def test_tool_with_task(ctx: Context[None, Any]) -> str | InputRequiredResult:
    """Ask before it becomes a task."""
    said = (ctx.input_responses or {}).get("user_name")
    if not isinstance(said, ElicitResult) or not said.content:
        return InputRequiredResult(input_requests={"user_name": asked("name?", "name", "string")})
    await asyncio.sleep(0.5)
    return f"Hello {said.content['name']}"


def main() -> None:
    """Serve."""
    import runpy

    from toolsrv.settings import load

    scripted = runpy.run_path(str(Path(__file__).with_name("scripted_server.py")))
    bench = scripted["scripted_bench"](load().settings)
    pytest.MonkeyPatch().setattr(build, "TasksExtension", FixtureTasks)
    server: ToolsrvServer = build_server(bench, warm=False)
    for one in (greet, slow_compute, failing_job, protocol_error_job, confirm_delete, multi_input):
        server.add_tool(one)
    server.add_tool(test_tool_with_task)
    app = server.streamable_http_app(host="127.0.0.1")
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_config=None)


if __name__ == "__main__":
    main()
