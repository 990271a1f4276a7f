"""How many tasks a model solves: right calls and right answers against a file of tasks.

A task names the calls that serve it and, per call, the response fields a good answer must state.
The calls are made for real, so the expected values are what the APIs say today. A call counts as
right when the same API gave the same response; where the API draws lots (a coin, a password), when
it was called with the same arguments. An answer is right when it states every such value. A task
that nothing serves (``none``) is right when it is given up. APIs that a task ``fails`` are down
while it is solved; its own calls are one way round them, and another one that was told every wanted
value is as good.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from toolsrv_lab.answer_values import states
from toolsrv_registry.api import Api
from toolsrv_registry.errors import DataError, NotFoundError
from toolsrv_runtime.calls.caller import Caller, CallResult
from toolsrv_runtime.calls.result import Consent, Spool
from toolsrv_runtime.outcome import Evidence, Outcome, Usage
from toolsrv_runtime.solve import SolveOptions, Solver
from toolsrv_runtime.values import facts

_AGAIN = 8
"""How often a task's own call is made again, to see whether its response is drawn by lot.

A coin falls on the same side so often in a row once in 256 times.
"""


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
    """What became of one task.

    ``offered``: all needed APIs were among the candidates. ``right_functions``: each of them was
    called with success; ``right_calls``: and answered what the task's own call answers;
    ``another_way``: or others told the same, where the task ``fails`` APIs.
    ``right_answer``: the answer states every wanted value (``answer_values``); for a task that
    nothing serves, it was given up. ``unsupported``: claims of the answer that no result and not
    the task supports. ``chained`` and ``fails`` are the task's.
    """

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
    right_functions: bool = False
    chained: bool = False
    fails: bool = False
    another_way: bool = False
    unsupported: tuple[str, ...] = ()

    @property
    def solved(self) -> bool:
        """Whether both the calls and the answer are right."""
        return (self.right_calls or self.another_way) and self.right_answer

    @property
    def wrong_claim(self) -> bool:
        """Whether an answer was given that is not right."""
        return self.status == "answered" and not self.right_answer


class FaultyCaller(Caller):
    """A caller of a world in which some APIs are ``down``: they answer 503."""

    down: frozenset[str] = frozenset()

    async def call(
        self,
        api: Api,
        arguments: Mapping[str, Any],
        *,
        tainted: bool = False,
        consent: Consent | None = None,
        spool: Spool | None = None,
    ) -> CallResult:
        """Call ``api`` as ``Caller`` does, unless it is down."""
        result = await super().call(api, arguments, tainted=tainted, consent=consent, spool=spool)
        if api.id not in self.down or result.refused:
            return result
        return CallResult(
            api_id=api.id,
            arguments=result.arguments,
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
        NotFoundError: There is no such file.
        DataError: The file cannot be read, or a line is not a task; names the line.
    """
    try:
        text = path.read_text(encoding="utf-8-sig").removesuffix("\n")
    except FileNotFoundError:
        raise NotFoundError(
            f"there is no file of tasks {str(path)!r}", hint="check the path"
        ) from None
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
    for number, line in enumerate(text.split("\n") if text else (), start=1):
        try:
            tasks.append(Task.model_validate_json(line))
        except ValidationError as error:
            first = error.errors()[0]
            raise DataError(
                f"{str(path)!r}, line {number}: {first['msg']} at {first['loc']}",
                hint="one JSON object a line: id, kind, task, calls",
            ) from None
    return tasks


def check_tasks(tasks: Sequence[Task], apis: Collection[str]) -> None:
    """Raise DataError for an id that comes twice, or an API that is not among ``apis`` (ids)."""
    seen: set[str] = set()
    for task in tasks:
        if task.id in seen:
            raise DataError(f"two tasks have the id {task.id!r}", hint="give each its own")
        seen.add(task.id)
        named = [*(call.api for call in task.calls), *task.fails]
        unknown = [api_id for api_id in named if api_id not in apis]
        if unknown:
            raise DataError(
                f"task {task.id!r} names the API {unknown[0]!r}, which no catalog has",
                hint="correct the task file, or enable the catalog it was written for",
            )


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
        DataError: see ``check_tasks``, and a task's own call that cannot be made.
    """
    check_tasks(tasks, apis)
    verdicts = []
    for task in tasks:
        verdict = await solve_one(task, solver=solver, caller=caller, apis=apis, options=options)
        verdicts.append(verdict)
        progress(verdict)
    return verdicts


async def solve_one(
    task: Task,
    *,
    solver: Solver,
    caller: FaultyCaller,
    apis: Mapping[str, Api],
    options: SolveOptions,
) -> Verdict:
    """Make a task's own calls, solve it with what it ``fails`` down, and judge the outcome.

    Raises:
        DataError: one of the task's own calls cannot be made.
        ModelError: the engine failed.
    """
    responses = [await _gold(task, call, apis[call.api], caller) for call in task.calls]
    drawn = [
        await _is_drawn(task, call, apis[call.api], caller, response)
        for call, response in zip(task.calls, responses, strict=True)
    ]
    caller.down = frozenset(task.fails)
    try:
        outcome = await solver.solve(task.task, options.model_copy(update={"keep_on_fault": False}))
    finally:
        caller.down = frozenset()
    responses = [
        _drawn_for(call, apis[call.api], outcome, response) if by_lot else response
        for call, response, by_lot in zip(task.calls, responses, drawn, strict=True)
    ]
    return judge(task, responses, outcome)


async def _gold(task: Task, call: GoldCall, api: Api, caller: FaultyCaller) -> Any:
    result = await caller.call(api, call.arguments)
    if result.refused:
        raise DataError(
            f"task {task.id!r}: its call of {call.api!r} cannot be made: {result.error}",
            hint=result.hint,
        )
    return result.response


async def _is_drawn(
    task: Task, call: GoldCall, api: Api, caller: FaultyCaller, response: Any
) -> bool:
    """Whether a call is answered by lot: differently when it is made again."""
    for _ in range(_AGAIN):
        if await _gold(task, call, api, caller) != response:
            return True
    return False


def _drawn_for(gold: GoldCall, api: Api, outcome: Outcome, response: Any) -> Any:
    """Return what was drawn for a solve that made a task's own call; else the own ``response``."""
    wanted = _given_arguments(api, gold.arguments)
    return next(
        (
            call.response
            for call in outcome.evidence
            if call.ok
            and call.api_id == gold.api
            and _given_arguments(api, call.arguments) == wanted
        ),
        response,
    )


def _given_arguments(api: Api, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that are not the API's defaults."""
    defaults = {one.name: one.default for one in api.parameters}
    return {
        name: value for name, value in arguments.items() if str(value) != str(defaults.get(name))
    }


_TELLS_NOTHING = frozenset({"true", "false", "yes", "no", "none"})
_ARITHMETIC = re.compile(r"(?:[\d\s.,+*/^()%-]|sqrt|pi)+")


def _is_same(gold: GoldCall, response: Any, call: Evidence) -> bool:
    """Whether a call answered what the task's own call answers.

    An expression may be written in many ways: where a response repeats it, under whatever name, only
    its result counts. So do the wanted fields alone where two values stand the other way round: from
    Rome to Oslo it is as far as from Oslo to Rome.
    """
    if call.api_id != gold.api or call.response == response:
        return call.api_id == gold.api
    if not isinstance(response, dict) or not isinstance(call.response, dict):
        return False
    if _is_turned(gold.arguments, call.arguments):
        mine, theirs = facts.whole(call.response), facts.whole(response)
        return bool(gold.answer) and all(mine.get(key) == theirs.get(key) for key in gold.answer)
    written = {
        key
        for name in gold.arguments.keys() & call.arguments.keys()
        if all(_ARITHMETIC.fullmatch(str(one[name])) for one in (gold.arguments, call.arguments))
        and any(sign in str(call.arguments[name]) for sign in "+-*/^")
        for key, value in response.items()
        if value == gold.arguments[name]
        and (key == name or call.response.get(key) == call.arguments[name])
    }
    return bool(written) and all(
        call.response.get(key) == value for key, value in response.items() if key not in written
    )


def _is_told(gold: GoldCall, response: Any, call: Evidence) -> bool:
    """Whether another API told every value that is wanted of a task's own call; yes and no tell nothing."""
    wanted = [facts.whole(response).get(key, "") for key in gold.answer]
    told = set(facts.whole(call.response).values())
    given = set(map(str, call.arguments.values()))
    return bool(wanted) and all(
        len(value) > 1 and value.lower() not in _TELLS_NOTHING and value in told - given
        for value in wanted
    )


def _is_turned(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two calls have the same values for the same parameters, two of them exchanged."""
    if one.keys() != other.keys():
        return False
    differing = [key for key in one if one[key] != other[key]]
    return (
        len(differing) == 2
        and one[differing[0]] == other[differing[1]]
        and one[differing[1]] == other[differing[0]]
    )


def judge(task: Task, responses: Sequence[Any], outcome: Outcome) -> Verdict:
    """Compare an outcome with the gold calls and their responses."""
    called = {call.api_id for call in outcome.evidence if call.ok}
    made = [call for call in outcome.evidence if call.ok]
    right_calls = all(
        any(_is_same(gold, response, call) for call in made)
        for gold, response in zip(task.calls, responses, strict=True)
    )
    another_way = bool(task.fails) and all(
        any(_is_same(gold, response, call) or _is_told(gold, response, call) for call in made)
        for gold, response in zip(task.calls, responses, strict=True)
    )
    wanted = [
        (key, facts.whole(response).get(key, ""))
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
        and all(states(outcome.answer, value, key) for key, value in wanted),
        answer=outcome.answer,
        calls=tuple(f"{c.api_id} {json.dumps(c.arguments)} {c.status}" for c in outcome.evidence),
        usage=outcome.usage,
        right_functions={call.api for call in task.calls} <= called,
        chained=task.chained,
        fails=bool(task.fails),
        another_way=another_way,
        unsupported=tuple(claim.text for claim in outcome.unsupported),
    )
