"""A client with the tasks extension: what it declares, and the requests that it sends."""

from __future__ import annotations

import asyncio
import time
from typing import Any, ClassVar, Literal

from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp.types import CallToolResult, Request, RequestParams, Result
from pydantic import ConfigDict

TASKS = "io.modelcontextprotocol/tasks"


class Created(Result):
    """What a call that became a task is answered with."""

    model_config = ConfigDict(extra="allow")
    result_type: Literal["task"] = "task"

    @property
    def id(self) -> str:
        """The task's id."""
        found: str = (self.model_extra or {})["taskId"]
        return found


class Anything(Result):
    """Any result, as it is."""

    model_config = ConfigDict(extra="allow")

    @property
    def told(self) -> dict[str, Any]:
        """All its members."""
        return self.model_extra or {}


class TasksClient(ClientExtension):
    """Declares the extension; polls a task to its end where it is called by ``Client``."""

    identifier = TASKS

    def claims(self) -> list[ResultClaim[Any]]:
        """Return the one shape."""
        return [ResultClaim(result_type="task", model=Created, resolve=self._polled)]

    async def _polled(self, created: Created, ctx: ClaimContext) -> CallToolResult:
        told = await until_ended(ctx.session, created.id)
        return CallToolResult.model_validate(told["result"])


class TaskParams(RequestParams):
    """Params of the three methods."""

    model_config = ConfigDict(extra="allow")
    task_id: str


class TaskRequest(Request[TaskParams, str]):
    """A request about one task."""

    name_param: ClassVar[str] = "taskId"
    method: str
    params: TaskParams


async def ask(session: Any, method: str, task_id: str, **given: Any) -> dict[str, Any]:
    """Send ``tasks/get``, ``tasks/update`` or ``tasks/cancel``."""
    params = TaskParams(task_id=task_id, **given)
    answer: Anything = await session.send_request(
        TaskRequest(method=f"tasks/{method}", params=params), Anything
    )
    return answer.told


async def until_ended(session: Any, task_id: str, seconds: float = 60.0) -> dict[str, Any]:
    """Poll a task until it ends or asks."""
    end = time.monotonic() + seconds
    while True:
        told = await ask(session, "get", task_id)
        if told["status"] != "working":
            return told
        assert time.monotonic() < end, told
        await asyncio.sleep(0.2)


async def begun(one: Any, name: str, arguments: dict[str, Any]) -> Any:
    """Call a tool and return the task, or the result, that it answers with."""
    return await one.session.call_tool(name, arguments, allow_claimed=True)
