"""Evaluation cells: one model with one strategy and one set of aids, over a list of tasks.

A local model may generate freely or by its grammar.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from pydantic import BaseModel, ValidationError

from toolsrv_lab.evaluation.result_log import ELSE, ResultLog
from toolsrv_lab.execution import (
    Backend,
    Codec,
    Make,
    Pool,
    TaskFailedError,
    adapted,
)
from toolsrv_registry import wellformed
from toolsrv_registry.errors import DataError, ToolsrvError, UsageError
from toolsrv_runtime.agent.concurrency import run_in_thread
from toolsrv_runtime.contract.models import ChatModel, ChatRequest, Engine, SpecialTokens
from toolsrv_runtime.models.local import LocalChatModel
from toolsrv_runtime.profiles import Profile
from toolsrv_runtime.stop import Stop
from toolsrv_runtime.templates.tool_template import ToolTemplate

DEFAULT_AIDS = "default"
"""Name of the aids that the options have anyway."""
NO_AIDS = "none"


@dataclass(frozen=True, slots=True)
class Cell:
    """``model`` is its name for people, ``identity`` what tells it from others (a file's hash)."""

    model: str
    identity: str
    strategy: str
    aids: str = DEFAULT_AIDS

    @property
    def key(self) -> tuple[str, str, str]:
        """What its results are kept by."""
        return self.identity, self.strategy, self.aids

    @property
    def name(self) -> str:
        """The strategy, and the aids where they are not the options' own."""
        return self.strategy if self.aids == DEFAULT_AIDS else f"{self.strategy} + {self.aids}"


class HasId(Protocol):
    """A result on a task."""

    @property
    def id(self) -> str:
        """The task's id."""


R = TypeVar("R", bound=BaseModel)
T = TypeVar("T")
Setting = TypeVar("Setting")
V = TypeVar("V")
Options = TypeVar("Options", bound=BaseModel)


class CellLog(Generic[R]):
    """Results of one type by cell and task, on a result log."""

    def __init__(self, log: ResultLog, kind: type[R]) -> None:
        """Read what the log has. Raises DataError where a line is no such result."""
        self.log = log
        self.kind = kind
        self._found: dict[tuple[tuple[str, str, str], str], R] = {}
        for at, entry in enumerate(log, start=2):
            try:
                one = kind.model_validate(entry.get("result"))
            except ValidationError as error:
                raise DataError(
                    f"{log.path}, line {at}: not a result: {error.errors()[0]['msg']}", hint=ELSE
                ) from None
            identity, strategy, aids, task = (
                entry.get(name) for name in ("identity", "strategy", "aids", "task")
            )
            if None in (identity, strategy, aids, task):
                raise DataError(f"{log.path}, line {at}: a result of no cell", hint=ELSE)
            self._found[(str(identity), str(strategy), str(aids)), str(task)] = one

    def __len__(self) -> int:
        return len(self._found)

    def get(self, cell: Cell, task: str) -> R | None:
        """Return the result, None where there is none yet."""
        return self._found.get((cell.key, task))

    def of(self, cell: Cell, tasks: Sequence[str]) -> list[R]:
        """Return the results that there are, in the order of the tasks."""
        found = (self.get(cell, task) for task in tasks)
        return [one for one in found if one is not None]

    def add(self, cell: Cell, task: str, result: R) -> None:
        """Keep a result; it is on the disk when this returns. Raises DataError."""
        self.log.add(
            {
                "model": cell.model,
                "identity": cell.identity,
                "strategy": cell.strategy,
                "aids": cell.aids,
                "task": task,
                "result": result.model_dump(mode="json"),
            }
        )
        self._found[cell.key, task] = result


CellTask = tuple[Cell, str]
"""A cell and the name of a task."""

Solver = Backend[tuple[T, Setting], R]
"""Opens what solves a task with the options of a cell."""


def cell_backend(
    solver: Solver[T, Setting, R],
    tasks: Mapping[str, T],
    cells: Mapping[Cell, Setting],
    *,
    on_fault: Callable[[T, ToolsrvError], R] | None = None,
) -> Backend[CellTask, R]:
    """Return the backend that solves tasks of cells by name.

    ``on_fault`` makes the result of a solve that failed; None: it ends the run.
    """

    def by_name(solve: Make[tuple[T, Setting], R]) -> Make[CellTask, R]:
        async def make(item: CellTask) -> R:
            cell, name = item
            try:
                return await solve((tasks[name], cells[cell]))
            except ToolsrvError as error:
                if on_fault is None:
                    raise
                return on_fault(tasks[name], error)

        return make

    return adapted(solver, by_name)


def cell_codec(kind: type[R]) -> Codec[CellTask, R]:
    """Return how tasks of cells and results of one type are passed between processes."""
    return Codec(_write_task, _read_task, _write_result, kind.model_validate_json)


def _write_task(task: CellTask) -> str:
    cell, name = task
    return json.dumps([*dataclasses.astuple(cell), name])


def _read_task(text: str) -> CellTask:
    *fields, name = json.loads(text)
    return Cell(*fields), name


def _write_result(result: BaseModel) -> str:
    return result.model_dump_json()


async def run_on_pool(
    tasks: Iterable[str],
    cells: Iterable[Cell],
    log: CellLog[R],
    pool: Pool[CellTask, R],
    *,
    progress: Callable[[bool], None] = lambda _fresh: None,
) -> None:
    """Have a pool solve what the log lacks; which cell is first changes from task to task.

    ``progress`` is called for each task of a cell with whether it was solved just now.

    Raises:
        DataError: a solve failed; says what is kept and how to go on.
    """
    every = list(cells)
    lacking: list[CellTask] = []
    for at, name in enumerate(tasks):
        by = at % len(every)
        for cell in every[by:] + every[:by]:
            if log.get(cell, name) is None:
                lacking.append((cell, name))
            else:
                progress(False)

    async def keep(task: CellTask, result: R) -> None:
        log.add(*task, result)
        progress(True)

    try:
        await pool.run(lacking, keep)
    except TaskFailedError as failed:
        cell, name = failed.task
        error = failed.error
        raise DataError(
            f"the evaluation stopped at task {name!r} with {cell.name}: {error.message}",
            hint=f"{error.hint}; {log.log.kept()}".lstrip("; "),
        ) from error


async def in_thread(work: Callable[[Stop], V | None]) -> V:
    """Run blocking work in a thread; a cancellation sets its stop and waits for its end.

    Raises:
        DataError: it returned nothing although nobody stopped it.
    """
    stop = Stop()
    made = await run_in_thread(lambda: work(stop), stop)
    if made is None:
        raise DataError("a reply was broken off", hint="try again")
    return made


def make_options(
    base: Options, strategy: str, aids: str = DEFAULT_AIDS, given: Sequence[str] = ()
) -> Options:
    """Return the options of a cell; ``given`` are ``key=value``, a dot leads into a field.

    ``aids``: names with ``+`` between, ``none``, or ``default`` for those that the options have.
    Values are JSON, or text where they are none.

    Raises:
        UsageError: no such field, strategy or aid, or a value that it does not take.
    """
    value = base.model_dump() | {"strategy": strategy}
    if aids != DEFAULT_AIDS:
        _field(value, "aids", "--aids")
        value["aids"] = [] if aids == NO_AIDS else [one for one in aids.split("+") if one]
    for one in given:
        name, equals, text = one.partition("=")
        if not equals:
            raise UsageError(f"{one!r} sets nothing", hint="--set key=value, as in --set width=3")
        *path, last = name.strip().split(".")
        place = value
        for step in path:
            place = _field(place, step, "--set")
        _field(place, last, "--set", inner=False)
        place[last] = _value(text)
    try:
        return type(base).model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise UsageError(
            f"the solve's options do not take {first['input']!r} for {where}",
            hint=str(first["msg"]),
        ) from None


def _field(place: dict[str, Any], name: str, flag: str, *, inner: bool = True) -> dict[str, Any]:
    if name not in place:
        raise UsageError(
            f"{flag}: the solve's options have no {name!r}", hint=f"they have {', '.join(place)}"
        )
    found = place[name]
    if isinstance(found, dict) or not inner or flag == "--aids":
        return found if isinstance(found, dict) else {}
    raise UsageError(f"{flag}: {name!r} has no parts", hint=f"set {name} itself")


def _value(text: str) -> Any:
    try:
        return wellformed.loads(text)
    except (ValueError, RecursionError):
        return text


_NO_TOKENS = SpecialTokens()
_ANYTHING = "TEXT: /(?s:.*)/\n"


class FreeTemplate(ToolTemplate):
    """A template whose replies may be any text; calls in it are parsed as ever."""

    def __init__(
        self, source: str | None, *, place: str = "", tokens: SpecialTokens = _NO_TOKENS
    ) -> None:
        super().__init__(source, place=place, tokens=tokens)
        markers = self.call_syntax.markers
        self._marks = sorted(
            number
            for text, number in tokens.control.items()
            if text in markers and text not in (tokens.bos, tokens.eos)
        )

    def grammar(self, request: ChatRequest) -> str:
        """Return the grammar of any text, with the control tokens that calls are written with."""
        del request
        if not self._marks:
            return f"start: TEXT\n{_ANYTHING}"
        return f"start: TEXT (mark TEXT)*\nmark: <[{','.join(map(str, self._marks))}]>\n{_ANYTHING}"


def chat_model(engine: Engine, profile: Profile, *, free: bool = False) -> ChatModel:
    """Return the chat model of an engine; the two kinds of one engine may be used side by side.

    Raises:
        UsageError: the model's format knows no conversations.
    """
    if profile.format != "chat":
        raise UsageError(
            f"{engine.name} is of the format {profile.format}, which has no tool calls",
            hint="name a chat model's GGUF file",
        )
    kind = FreeTemplate if free else ToolTemplate
    template = kind(
        profile.chat_template or None,
        place=profile.chat_template_from,
        tokens=engine.special_tokens,
    )
    return LocalChatModel(engine, template)
