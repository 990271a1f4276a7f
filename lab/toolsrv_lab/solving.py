"""How many tasks a model solves: right calls and right answers against a file of tasks.

A task names the calls that serve it and, per call, the response fields a good answer must state.
The calls are made for real, so the expected values are what the APIs say today. A call counts as
right when the same API gave the same response; an answer when it states every such value. A task
that nothing serves (``none``) is right when it is given up. APIs that a task ``fails`` are down
while it is solved.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from toolsrv_registry.api import Api
from toolsrv_registry.errors import DataError
from toolsrv_runtime.calls import arguments as args
from toolsrv_runtime.calls.caller import Caller, CallResult
from toolsrv_runtime.formats import facts
from toolsrv_runtime.outcome import Outcome, Usage
from toolsrv_runtime.solve import SolveOptions, Solver


class GoldCall(BaseModel):
    """A call that serves a task, and the response keys that the answer must state."""

    model_config = ConfigDict(frozen=True)

    api: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    answer: tuple[str, ...] = ()


class Task(BaseModel):
    """A task in a person's words with the calls that serve it."""

    model_config = ConfigDict(frozen=True)

    id: str
    kind: Literal["single", "two", "three", "none"]
    chained: bool = False
    task: str
    calls: tuple[GoldCall, ...]
    fails: tuple[str, ...] = ()


class Verdict(BaseModel):
    """What became of one task. ``offered``: all needed APIs were among the candidates."""

    model_config = ConfigDict(frozen=True)

    id: str
    kind: str
    status: str
    offered: bool
    right_calls: bool
    right_answer: bool
    answer: str
    calls: tuple[str, ...]
    usage: Usage


class FaultyCaller(Caller):
    """A caller of a world in which some APIs are ``down``: they answer 503."""

    down: frozenset[str] = frozenset()

    async def call(self, api: Api, arguments: Mapping[str, Any]) -> CallResult:
        """Call ``api`` as ``Caller`` does, unless it is down."""
        if api.id not in self.down:
            return await super().call(api, arguments)
        return CallResult(
            api_id=api.id,
            arguments=args.bind(api, arguments),
            url=api.url,
            status=503,
            response={"error": "the service is down"},
            error="HTTP status 503",
            source="offline",
            seconds=0.0,
        )


def read_tasks(path: Path) -> list[Task]:
    """Return the tasks of a JSON-lines file.

    Raises:
        DataError: The file cannot be read, or a line is not a task; names the line.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise DataError(
            f"cannot read the tasks {str(path)!r}: {error.strerror}", hint="check the path"
        ) from None
    except UnicodeDecodeError as error:
        raise DataError(
            f"the tasks {str(path)!r} are not UTF-8 text: {error.reason} at byte {error.start}",
            hint="one JSON object a line, in UTF-8",
        ) from None
    tasks = []
    for number, line in enumerate(lines, start=1):
        try:
            tasks.append(Task.model_validate_json(line))
        except ValidationError as error:
            first = error.errors()[0]
            raise DataError(
                f"{str(path)!r}, line {number}: {first['msg']} at {first['loc']}",
                hint="one JSON object a line: id, kind, task, calls",
            ) from None
    return tasks


async def evaluate(
    tasks: Sequence[Task],
    *,
    solver: Solver,
    caller: FaultyCaller,
    apis: Mapping[str, Api],
    options: SolveOptions,
    progress: Callable[[Verdict], None] = lambda _: None,
) -> list[Verdict]:
    """Solve every task and judge it; one after the other, since a model serves one at a time.

    ``caller`` is the one that ``solver`` calls with.

    Raises:
        DataError: a task names an API that is not among ``apis``.
    """
    verdicts = []
    for task in tasks:
        named = [*(call.api for call in task.calls), *task.fails]
        unknown = [api_id for api_id in named if api_id not in apis]
        if unknown:
            raise DataError(
                f"task {task.id!r} names the API {unknown[0]!r}, which no catalog has",
                hint="correct the task file, or enable the catalog it was written for",
            )
        gold = [await caller.call(apis[call.api], call.arguments) for call in task.calls]
        caller.down = frozenset(task.fails)
        try:
            outcome = await solver.solve(task.task, options)
        finally:
            caller.down = frozenset()
        verdicts.append(judge(task, [result.response for result in gold], outcome))
        progress(verdicts[-1])
    return verdicts


def judge(task: Task, responses: Sequence[Any], outcome: Outcome) -> Verdict:
    """Compare an outcome with the gold calls and their responses."""
    made = [(call.api_id, call.response) for call in outcome.evidence if call.ok]
    right_calls = all(
        (call.api, response) in made for call, response in zip(task.calls, responses, strict=True)
    )
    wanted = [
        facts.whole(response).get(key)
        for call, response in zip(task.calls, responses, strict=True)
        for key in call.answer
    ]
    finished = "gave_up" if task.kind == "none" else "answered"
    return Verdict(
        id=task.id,
        kind=task.kind,
        status=outcome.status,
        offered={call.api for call in task.calls} <= set(outcome.candidates),
        right_calls=right_calls,
        right_answer=outcome.status == finished
        and all(value is not None and value in outcome.answer for value in wanted),
        answer=outcome.answer,
        calls=tuple(f"{c.api_id} {json.dumps(c.arguments)} {c.status}" for c in outcome.evidence),
        usage=outcome.usage,
    )
