"""Assignments of a teacher: tasks with the calls that serve them, made or read from files.

Files hold instructions, or tasks with gold calls.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from toolsrv_lab.instructions.compose import tell
from toolsrv_lab.instructions.errands import MARK, ErrandStep, Value, errands, spoken, written
from toolsrv_lab.nano.needs import Needs, ValuedNeed
from toolsrv_lab.retrieval.queries import Query, read_queries
from toolsrv_lab.solving import GoldCall, Task, read_tasks
from toolsrv_registry.api import Api, Parameter
from toolsrv_registry.errors import DataError, NotFoundError
from toolsrv_registry.words import content_words, stems
from toolsrv_runtime.planner.reading.parts import split

_SIZES = (1, 1, 1, 2, 2, 3)
_TAIL = " .?!"


@dataclass(frozen=True, slots=True)
class Assignment:
    """A task, the ``steps`` that serve it in their order, and what is offered besides their APIs.

    ``fails`` are ids of APIs that are down. ``unknown`` says why the steps are not known, empty
    where they are; then only a model can solve the task.
    """

    id: str
    task: str
    steps: tuple[ErrandStep, ...]
    candidates: tuple[str, ...] = ()
    fails: tuple[str, ...] = ()
    unknown: str = ""

    @property
    def apis(self) -> list[str]:
        """The ids of the APIs that are needed, once each."""
        return list(dict.fromkeys(step.api for step in self.steps if step.api))


def from_errands(known: Collection[str], seed: int) -> Iterator[Assignment]:
    """Yield the errands that APIs of these ids serve, in a drawn order."""
    told = list(enumerate(errands(), start=1))
    random.Random(f"{seed}/errands").shuffle(told)
    for number, one in told:
        if all(api_id in known for api_id in one.apis):
            yield Assignment(f"errand-{number}", one.task, one.steps)


def from_needs(apis: Sequence[Api], seed: int) -> Iterator[Assignment]:
    """Yield tasks of one to three needs over APIs that needs were written for, without end.

    Every API leads a task once per round; nothing where needs were written for none.
    """
    needs = Needs(apis)
    order: list[Api] = []
    number = 0
    while needs.apis:
        if not order:
            order = list(needs.apis)
            random.Random(f"{seed}/{number}/order").shuffle(order)
        number += 1
        yield _composed(needs, order.pop(), number, random.Random(f"{seed}/{number}"))


def taken(assignments: Iterator[Assignment], count: int | None) -> list[Assignment]:
    """Return the first ``count`` of them, all where that is None."""
    return list(islice(assignments, count))


def located(words: str, task: str) -> str:
    """Return the words as they stand in the task, without final punctuation."""
    core = words.strip().rstrip(_TAIL)
    at = task.lower().find(core.lower())
    return task[at : at + len(core)] if core and at >= 0 else core


def _composed(needs: Needs, first: Api, number: int, rng: random.Random) -> Assignment:
    known = needs.apis
    found = {first.id: first}
    for _ in range(rng.choice(_SIZES) - 1):
        near = [api for api in known if api.category == first.category]
        other = rng.choice(near if rng.random() < 0.5 else known)
        found.setdefault(other.id, other)
    told = [needs.tell(api, rng) for api in found.values()]
    task = tell([one.text for one in told], first.category, rng).text
    steps = tuple(_step(one, task) for one in told)
    return Assignment(f"need-{number}", task, steps)


def _step(told: ValuedNeed, task: str) -> ErrandStep:
    values = {name: Value(value, said) for name, (value, said) in told.values.items()}
    return ErrandStep(located(told.text, task), told.api.id, values)


NO_NEEDS = "the file does not say which words tell which need"
NO_VALUE = "a value that an API requires is not known"
ELSEWHERE = "it needs an API that these catalogs do not have"

_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.]*\w)")


def read_assignments(path: Path, apis: Mapping[str, Api]) -> Iterator[Assignment]:
    """Yield what a file assigns, in its order; ``apis`` are those that may be called, by id.

    Raises:
        NotFoundError: there is no such file.
        DataError: the file cannot be read, or holds neither instructions nor tasks.
    """
    if _holds_tasks(path):
        yield from (_of_task(task, apis) for task in read_tasks(path))
        return
    yield from (_of_query(query, apis) for query in read_queries(path))


def _holds_tasks(path: Path) -> bool:
    """Whether the first line is a task with its calls."""
    if path.is_dir() or path.suffix == ".gz":
        return False
    try:
        with path.open(encoding="utf-8-sig") as file:
            first = next((line for line in file if line.strip()), "")
    except FileNotFoundError:
        raise NotFoundError(f"there is no file of tasks {path}", hint="check the path") from None
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read the tasks {path}: {error}", hint="check the path") from error
    try:
        value = json.loads(first)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and "calls" in value


def _of_task(task: Task, apis: Mapping[str, Api]) -> Assignment:
    known = all(call.api in apis for call in task.calls)
    parts = [part.text for part in split(task.task)] or [task.task]
    steps = tuple(
        ErrandStep(_words(call, apis[call.api], parts) if known else "", call.api, _values(call))
        for call in task.calls
    )
    return Assignment(
        task.id, task.task, steps, fails=task.fails, unknown="" if known else ELSEWHERE
    )


def _values(call: GoldCall) -> dict[str, Value]:
    found = {}
    for name, value in call.arguments.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        found[name] = Value(text, text)
    return found


def _words(call: GoldCall, api: Api, parts: list[str]) -> str:
    """Return the part of a task that fits a call best: its values, its document's words."""
    wanted = stems(content_words(f"{api.name} {api.description}"))
    values = [str(value).lower() for value in call.arguments.values()]

    def fit(part: str) -> float:
        said = sum(value in part.lower() for value in values)
        return 2 * said + len(stems(content_words(part)) & wanted)

    return max(parts, key=fit)


def _of_query(query: Query, apis: Mapping[str, Api]) -> Assignment:
    ids = [one.id for one in query.relevant]
    listed = tuple(one.id for one in query.candidates if one.id in apis)
    unknown, steps = "", tuple(ErrandStep("", api_id, {}) for api_id in ids)
    if not all(api_id in apis for api_id in ids):
        unknown, steps = ELSEWHERE, ()
    elif len(query.needs) != len(ids):
        unknown = NO_NEEDS
    else:
        told = [
            _stated_values(need, apis[api_id])
            for need, api_id in zip(query.needs, ids, strict=True)
        ]
        unknown = "" if all(values is not None for values in told) else NO_VALUE
        steps = tuple(
            ErrandStep(located(need, query.query), api_id, values or {})
            for need, api_id, values in zip(query.needs, ids, told, strict=True)
        )
    return Assignment(query.query_id, query.query, steps, listed, unknown=unknown)


def _stated_values(need: str, api: Api) -> dict[str, Value] | None:
    """Return the values that a need states, None where a required one is not plain."""
    for own in written().get(api.id, ()):
        if spoken(own).strip(" .?!").lower() in need.lower():
            return {m[1]: Value(m[2], m[2] if m[3] is None else m[3]) for m in MARK.finditer(own)}
    found = {one.name: value for one in api.parameters if (value := _read(one, api, need))}
    missing = any(one.name not in found for one in api.required)
    return None if missing else {name: Value(value, value) for name, value in found.items()}


def _read(parameter: Parameter, api: Api, need: str) -> str:
    text = need.lower()
    example = str(parameter.default)
    for value in (*parameter.enum, example):
        if len(value) > 1 and re.search(rf"(?<!\w){re.escape(value.lower())}(?!\w)", text):
            return value
    numbers = _NUMBER.findall(need)
    alone = sum(one.type.upper() == "NUMBER" for one in api.required) == 1
    is_number = parameter.type.upper() == "NUMBER" and parameter in api.required
    return numbers[0] if is_number and alone and len(numbers) == 1 else ""
