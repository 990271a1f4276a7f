"""Human labels of answers and pairs, to compare a judge with.

A JSON line has ``id``, ``task``, ``functions`` (name, description, parameters), two answers ``a`` and
``b`` with ``steps`` (thought, function, arguments, response) and ``finish`` (return_type, final_answer),
``task_status``, ``pass_a``, ``pass_b`` (Solved, Unsolved or Unsure) and ``preferred`` (a, b or tie).
ToolBench's ``human_cross_annotated_data.json`` (query, available_tools, answers, preference) is read
as it is; it has preferences alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from toolsrv_lab.tooleval.answer_sets import Judged, ToolStep, parse_judged
from toolsrv_lab.tooleval.verdicts import AnswerStatus, Preference, TaskStatus
from toolsrv_registry import wellformed
from toolsrv_registry.errors import DataError
from toolsrv_registry.functions import FINISH
from toolsrv_runtime.files import read_text

MOST_BYTES = 256 * 1024 * 1024
SHIPPED = "shipped"
"""Name of the labelled pairs that ship."""

_HINT = "give JSON lines of labelled pairs, or ToolBench's human_cross_annotated_data.json"


class _Shape(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class LabelledStep(_Shape):
    """A call of a labelled answer."""

    thought: str = ""
    function: str
    arguments: Any = Field(default_factory=dict)
    response: Any = None


class LabelledFinish(_Shape):
    """How a labelled answer ended."""

    return_type: str
    final_answer: str = ""


class LabelledAnswer(_Shape):
    """One side of a labelled pair."""

    steps: tuple[LabelledStep, ...] = ()
    finish: LabelledFinish | None = None


class _Line(_Shape):
    id: str
    task: str
    functions: tuple[dict[str, Any], ...]
    a: LabelledAnswer
    b: LabelledAnswer
    task_status: TaskStatus
    pass_a: AnswerStatus
    pass_b: AnswerStatus
    preferred: Preference


@dataclass(frozen=True, slots=True)
class LabelledPair:
    """Two answers and what people say of them; statuses are None where nobody was asked.

    ``people`` are the single preferences where there are several.
    """

    id: str
    a: Judged
    b: Judged
    preferred: Preference
    task_status: TaskStatus | None = None
    status_a: AnswerStatus | None = None
    status_b: AnswerStatus | None = None
    people: tuple[int, ...] = ()


def shipped_pairs() -> list[LabelledPair]:
    """Return the 200 labelled pairs that ship."""
    data = (files("toolsrv_lab.tooleval") / "data" / "labelled_pairs.jsonl").read_text("utf-8")
    return list(_lines(data, "labelled_pairs.jsonl"))


def read_pairs(path: Path) -> list[LabelledPair]:
    """Return the labelled pairs of a file.

    Raises:
        NotFoundError: there is no such file.
        DataError: it cannot be read, or an entry is no labelled pair; names its place.
    """
    text = read_text(path, MOST_BYTES, hint=_HINT)
    found = list(_annotations(text, path) if text.lstrip().startswith("[") else _lines(text, path))
    if not found:
        raise DataError(f"{path} holds no labelled pairs", hint=_HINT)
    if len({one.id for one in found}) < len(found):
        raise DataError(f"{path} has an id twice", hint="give each pair an id of its own")
    return found


def _lines(text: str, where: str | Path) -> Iterator[LabelledPair]:
    for at, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            one = _Line.model_validate(wellformed.loads(line))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = ".".join(map(str, first["loc"])) or "the whole"
            raise DataError(f"{where}, line {at}, {place}: {first['msg']}", hint=_HINT) from None
        except (ValueError, RecursionError) as error:
            raise DataError(f"{where}, line {at}: not JSON: {error}", hint=_HINT) from None
        yield LabelledPair(
            id=one.id,
            a=_judged(one, one.a),
            b=_judged(one, one.b),
            preferred=one.preferred,
            task_status=one.task_status,
            status_a=one.pass_a,
            status_b=one.pass_b,
        )


def _judged(line: _Line, answer: LabelledAnswer) -> Judged:
    steps = [_step(one.function, one.arguments, one.response) for one in answer.steps]
    final = ""
    if answer.finish is not None:
        steps.append(_step(FINISH, answer.finish.model_dump(), ""))
        gave = answer.finish.return_type == "give_answer"
        final = answer.finish.final_answer if gave else answer.finish.return_type
    return Judged(
        id=line.id,
        query=line.task,
        tools=line.functions,
        final_answer=final,
        method="labelled",
        total_steps=len(steps) + 2,
        steps=tuple(steps),
    )


def _step(name: str, arguments: Any, response: Any) -> ToolStep:
    text = response if isinstance(response, str) else json.dumps(response, ensure_ascii=False)
    given = json.dumps(arguments, ensure_ascii=False)
    message = str({"name": name, "arguments": given, "response": text})
    return ToolStep(name, given, text, message)


def _annotations(text: str, path: Path) -> Iterator[LabelledPair]:
    """Yield the pairs of ToolBench's human annotations; most people decide."""
    try:
        entries = wellformed.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is no JSON, or cut off: {error}", hint=_HINT) from None
    for at, entry in enumerate(entries):
        where = f"{path}, entry {at}"
        answers = entry.get("answers") if isinstance(entry, dict) else None
        if not isinstance(answers, list) or len(answers) != 2:
            raise DataError(f"{where}: no pair of answers", hint=_HINT)
        said = entry.get("preference")
        people = tuple(said) if isinstance(said, list) else (said,)
        if not people or any(one not in (0, 1) for one in people):
            raise DataError(f"{where}: a preference is 0 or 1, or a list of these", hint=_HINT)
        both = [parse_judged(str(at), {**entry, "answer": one}, where) for one in answers]
        ahead = people.count(0) - people.count(1)
        yield LabelledPair(
            id=str(at),
            a=both[0],
            b=both[1],
            preferred="tie" if not ahead else "a" if ahead > 0 else "b",
            people=people,
        )
