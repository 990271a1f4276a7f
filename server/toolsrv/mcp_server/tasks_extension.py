"""The tasks extension (SEP-2663, ``io.modelcontextprotocol/tasks``): tool calls as tasks.

A call of a long tool answers with a task as soon as it takes longer than its grace period; the
client polls it with ``tasks/get``, answers its questions with ``tasks/update`` and stops it with
``tasks/cancel``. Only clients that declare the extension on the request, from revision 2026-07-28
on, see any of it. Knows nothing of what the tools do. Belongs to one event loop.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, Protocol

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.extension import Extension, MethodBinding
from mcp.server.mcpserver import require_client_extension
from mcp.shared.exceptions import MCPError
from mcp.types import (
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolRequestParams,
    InputRequest,
    InputRequiredResult,
    InputResponse,
    RequestParams,
)
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from toolsrv.plain import one_line

TASKS = "io.modelcontextprotocol/tasks"
TTL_MS = 24 * 3600 * 1000
"""From the creation of a task; a solve may take as long."""
POLL_MS = 1000
MAX_LIVE = 64
"""Tasks that have not ended; calls beyond that are answered without one."""
MAX_ENDED = 128
"""Ended tasks whose results are held; the oldest go first."""
_REVISIONS = frozenset({"2026-07-28"})

Status = Literal["working", "input_required", "completed", "failed", "cancelled"]
Ctx = ServerRequestContext[Any, Any]

serving_task: ContextVar[TaskState | None] = ContextVar("serving_task", default=None)
"""The task that a tool call belongs to, None for a call that is no task."""


@dataclass(frozen=True, slots=True)
class TaskTool:
    """A tool whose calls may become tasks.

    ``grace_s``: a call that ends within so many seconds is answered directly.
    """

    grace_s: float
    new_id: Callable[[], str] = lambda: f"task_{secrets.token_urlsafe(16)}"


class EarlierTasks(Protocol):
    """Tasks that the extension itself does not hold, such as those of an earlier process."""

    async def get(self, task_id: str) -> dict[str, Any] | None:
        """Return a task as ``tasks/get`` has it; None where there is no such task."""

    async def cancel(self, task_id: str) -> bool:
        """Ask a task to stop; False where there is no such task."""


class TaskState:
    """One task: its status, its questions to the client, and its end.

    ``stop`` is called when the client cancels the task, before its tool call is cancelled.
    """

    def __init__(self, task_id: str) -> None:
        self.id = task_id
        self.stop: Callable[[], object] = lambda: None
        self.handed_out = False
        self.error: MCPError | None = None
        self.result: HandlerResult = None
        self.runner: asyncio.Task[None] | None = None
        self.until = time.monotonic() + TTL_MS / 1000
        self._end: Status | None = None
        self._message = ""
        self._created = self._updated = timestamp(datetime.now(UTC))
        self._waiting: dict[str, tuple[InputRequest, asyncio.Future[object]]] = {}

    @property
    def status(self) -> Status:
        """The status as the protocol has it."""
        return self._end or ("input_required" if self._waiting else "working")

    @property
    def live(self) -> bool:
        """Whether it has not ended."""
        return self._end is None

    def set_message(self, message: str) -> None:
        """Set the message that goes with the status."""
        self._message = one_line(message, 300)
        self._updated = timestamp(datetime.now(UTC))

    def end(self, status: Status, message: str = "") -> None:
        """Set the status that stays."""
        if self._end is None:
            self._end = status
            self.set_message(message)

    async def ask(self, requests: Mapping[str, InputRequest]) -> dict[str, Any]:
        """Return the client's responses to these requests, by the same keys."""
        loop = asyncio.get_running_loop()
        keys = {key: f"{key}_{secrets.token_urlsafe(6)}" for key in requests}  # never used again
        futures: dict[str, asyncio.Future[object]] = {key: loop.create_future() for key in requests}
        for key, unique in keys.items():
            self._waiting[unique] = (requests[key], futures[key])
        self._updated = timestamp(datetime.now(UTC))
        try:
            return {key: await one for key, one in futures.items()}
        finally:
            for unique in keys.values():
                self._waiting.pop(unique, None)
            self._updated = timestamp(datetime.now(UTC))

    def answer(self, responses: Mapping[str, object]) -> None:
        """Take responses; those to questions that are not open are ignored.

        Raises:
            MCPError: A response is none; nothing is taken then.
        """
        open_ones = {key: one for key, one in responses.items() if key in self._waiting}
        try:
            read = {key: _RESPONSE.validate_python(one) for key, one in open_ones.items()}
        except ValidationError as error:
            raise MCPError(INVALID_PARAMS, "a response has not the form of one") from error
        for key, response in read.items():
            _, future = self._waiting.pop(key)
            if not future.done():
                future.set_result(response)
            self._updated = timestamp(datetime.now(UTC))

    def seed(self) -> dict[str, Any]:
        """Return the task without what came of it, as the call that became it is answered."""
        return task_document(
            self.id, self.status, self._created, self._updated, message=self._message
        )

    def document(self) -> dict[str, Any]:
        """Return the task as ``tasks/get`` has it."""
        document = self.seed()
        match self.status:
            case "input_required":
                document["inputRequests"] = {
                    key: wire(one) for key, (one, _) in self._waiting.items()
                }
            case "completed":
                document["result"] = wire(self.result)
            case "failed":
                error = self.error or MCPError(INTERNAL_ERROR, self._message)
                document["error"] = error.error.model_dump(mode="json", exclude_none=True)
            case _:
                pass
        return document


_RESPONSE: TypeAdapter[InputResponse] = TypeAdapter(InputResponse)


class _TaskParams(RequestParams):
    task_id: str


class _UpdateParams(_TaskParams):
    input_responses: dict[str, Any] = Field(default_factory=dict)


class TasksExtension(Extension):
    """Serves tool calls as tasks, to the clients that declare the extension."""

    identifier = TASKS

    def __init__(self, task_tools: Mapping[str, TaskTool], earlier: EarlierTasks) -> None:
        """Take the tools whose calls may become tasks, and where other tasks are found."""
        self._task_tools = task_tools
        self._earlier = earlier
        self._held: dict[str, TaskState] = {}
        self._last_line = False

    def methods(self) -> Sequence[MethodBinding]:
        """Return the three methods of the extension."""
        return [
            MethodBinding("tasks/get", _TaskParams, self._get, _REVISIONS),
            MethodBinding("tasks/update", _UpdateParams, self._update, _REVISIONS),
            MethodBinding("tasks/cancel", _TaskParams, self._cancel, _REVISIONS),
        ]

    def on_last_line(self) -> None:
        """Note that the client can poll no more: calls are answered with their end."""
        self._last_line = True

    async def close(self) -> None:
        """Break off every call that is still at work."""
        runners = [one.runner for one in self._held.values() if one.live and one.runner]
        for runner in runners:
            runner.cancel()
        await asyncio.gather(*runners, return_exceptions=True)

    async def intercept_tool_call(
        self, params: CallToolRequestParams, ctx: Ctx, call_next: CallNext
    ) -> HandlerResult:
        """Answer a call directly, or with a task where it takes longer than its grace period.

        Raises:
            MCPError: The call ended with it within that time.
        """
        kind = self._task_tools.get(params.name)
        if kind is None or not declared(ctx) or not self._has_room():
            return await call_next(ctx)
        task = TaskState(kind.new_id())
        task.runner = asyncio.create_task(self._work(task, params, ctx, call_next), name=task.id)
        try:
            await asyncio.wait({task.runner}, timeout=kind.grace_s)
            while self._last_line and not task.runner.done():
                await asyncio.wait({task.runner})
        except asyncio.CancelledError:  # the client took the request back
            task.stop()
            task.runner.cancel()
            raise
        if task.runner.done():
            if task.error is not None:
                raise task.error
            return task.result
        task.handed_out = True
        self._held[task.id] = task
        return {"resultType": "task", **task.seed()}

    async def _work(
        self, task: TaskState, params: CallToolRequestParams, ctx: Ctx, call_next: CallNext
    ) -> None:
        """Make the call; a task's questions are put to its client and the call repeated."""
        serving_task.set(task)
        try:
            async with asyncio.timeout(TTL_MS / 1000):
                result = await call_next(ctx)
                while isinstance(result, InputRequiredResult) and task.handed_out:
                    params.input_responses = await task.ask(result.input_requests or {})
                    params.request_state = result.request_state
                    result = await call_next(ctx)
            task.result = result
            task.end("completed")
        except asyncio.CancelledError:
            task.end("cancelled")
        except TimeoutError:
            task.end("failed", "it took longer than its time to live")
        except MCPError as error:
            task.error = error
            task.end("failed", str(error))
        except Exception as error:  # noqa: BLE001 - the boundary of a task: whoever polls learns of it
            task.error = MCPError(INTERNAL_ERROR, f"internal error: {type(error).__name__}")
            task.end("failed", str(task.error))

    def _has_room(self) -> bool:
        """Forget what is too old or too much; return whether another task can be held."""
        now = time.monotonic()
        ended = [one for one in self._held.values() if not one.live]
        for index, one in enumerate(ended):
            if one.until <= now or index < len(ended) - MAX_ENDED:
                del self._held[one.id]
        return sum(one.live for one in self._held.values()) < MAX_LIVE

    async def _get(self, ctx: Ctx, params: _TaskParams) -> HandlerResult:
        task = self._task(ctx, params.task_id)
        found = await self._earlier.get(params.task_id) if task is None else task.document()
        if found is None:
            raise _unknown(params.task_id)
        return {"resultType": "complete", **found}

    async def _update(self, ctx: Ctx, params: _UpdateParams) -> HandlerResult:
        task = self._task(ctx, params.task_id)
        if task is not None:
            task.answer(params.input_responses)
        elif await self._earlier.get(params.task_id) is None:
            raise _unknown(params.task_id)
        return {"resultType": "complete"}

    async def _cancel(self, ctx: Ctx, params: _TaskParams) -> HandlerResult:
        task = self._task(ctx, params.task_id)
        if task is None:
            if not await self._earlier.cancel(params.task_id):
                raise _unknown(params.task_id)
        elif task.live and task.runner is not None:
            task.stop()
            task.runner.cancel()
            await asyncio.wait({task.runner}, timeout=1.0)
        return {"resultType": "complete"}

    def _task(self, ctx: Ctx, task_id: str) -> TaskState | None:
        """Return a task that is held.

        Raises:
            MCPError: The client does not declare the extension, or names two tasks.
        """
        require_client_extension(ctx, TASKS)
        named = getattr(ctx.request, "headers", {}).get("mcp-name")  # none on stdio
        if named is not None and named != task_id:
            raise MCPError(HEADER_MISMATCH, "Mcp-Name does not match params.taskId")
        return self._held.get(task_id)


def declared(ctx: Ctx) -> bool:
    """Whether a request comes from a client that declares the extension on it."""
    able = ctx.session.client_capabilities
    named = able.extensions if able is not None else None
    return ctx.protocol_version in _REVISIONS and TASKS in (named or {})


def task_document(
    task_id: str, status: Status, created: str, updated: str, *, message: str = ""
) -> dict[str, Any]:
    """Return a task as the protocol has it, without what came of it."""
    extra = {"statusMessage": message} if message else {}
    return {
        "taskId": task_id,
        "status": status,
        "createdAt": created,
        "lastUpdatedAt": updated,
        "ttlMs": TTL_MS,
        "pollIntervalMs": POLL_MS,
        **extra,
    }


def timestamp(moment: datetime) -> str:
    """Return a time in UTC as ISO 8601."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def wire(value: BaseModel | Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a value of the protocol as it is written."""
    if isinstance(value, BaseModel):
        dumped: dict[str, Any] = value.model_dump(by_alias=True, mode="json", exclude_none=True)
        return dumped
    return dict(value or {})


def _unknown(task_id: str) -> MCPError:
    return MCPError(INVALID_PARAMS, f"unknown task {task_id[:80]!r}", {"taskId": task_id[:80]})
