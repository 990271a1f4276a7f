"""Answers as ToolEval judges them, read from every kind of file."""

from __future__ import annotations

import ast
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from toolsrv_registry import wellformed
from toolsrv_registry.errors import DataError, NotFoundError
from toolsrv_registry.functions import FINISH
from toolsrv_runtime.files import read_file
from toolsrv_runtime.toolbench.answer_files import (
    Answer,
    AnswerConversation,
    AnswerNode,
    DfsAnswer,
    parse_answer,
)

SEED = 42

Step = dict[str, Any]
"""``role`` and ``message``."""


def tooleval_form(answer: Answer, method: str, *, seed: int = SEED) -> dict[str, Any]:
    """Return ``query``, ``available_tools`` and ``answer`` of a file; ``method`` is its name's.

    ``total_steps`` counts the system and the user step too.
    """
    generation = answer.answer_generation
    if generation.valid_data and generation.train_messages:
        steps = list(_conversation_steps(generation.train_messages[-1]))
    else:
        steps = list(_walked(_drawn(answer, random.Random(seed))))
    steps = [_form_step("system", ""), _form_step("user", ""), *steps]
    details: list[Step] = []
    for step in reversed(steps):
        details = [{**step, "next": details}]
    return {
        "query": generation.query,
        "available_tools": list(generation.function),
        "answer": {
            "method": method,
            "total_steps": len(steps),
            "final_answer": generation.final_answer,
            "answer_details": details,
        },
    }


def _form_step(role: str, message: Any) -> Step:
    return {"role": role, "message": message}


def _tool(name: str, arguments: str, response: str) -> Step:
    shown = "" if name == FINISH else response
    return _form_step("tool", {"name": name, "arguments": arguments, "response": shown})


def _conversation_steps(conversation: AnswerConversation) -> Iterator[Step]:
    """Yield the steps of a conversation; the calls of one reply are answered in their order."""
    for at, message in enumerate(conversation[2:], start=3):
        if message.role != "assistant":
            continue
        if not message.calls:
            yield _form_step("assistant", message.content or "")
        for place, call in enumerate(message.calls, start=at):
            after = conversation[place] if place < len(conversation) else None
            answered = after is not None and after.role in ("function", "tool")
            yield _tool(
                call.name, call.arguments, (after.content or "") if answered and after else ""
            )


def _drawn(answer: Answer, rng: random.Random) -> Sequence[AnswerNode]:
    """Return the nodes of one try, or of one walk down the tree."""
    if not isinstance(answer, DfsAnswer):
        return rng.choice(answer.trys).chain if answer.trys else ()
    found, node = [], answer.tree.tree
    while node.children:
        node = rng.choice(node.children)
        found.append(node)
    return found


def _walked(nodes: Sequence[AnswerNode]) -> Iterator[Step]:
    for at, node in enumerate(nodes):
        if node.node_type == "Thought":
            yield _form_step("assistant", node.description)
        elif node.node_type == "Action":
            below = nodes[at + 1] if at + 1 < len(nodes) else None
            if below is not None and below.node_type == "Action Input":
                yield _tool(node.description, below.description, below.observation)


MOST_BYTES = 512 * 1024 * 1024
_HINT = (
    "give an answer file or a folder of them: <query id>_<method>.json of ToolBench or of "
    "toolsrv --save-answer, or ToolEval's converted <subset>.json"
)


@dataclass(frozen=True, slots=True)
class ToolStep:
    """A call and its response. ``message`` is what ToolEval prints of the step."""

    name: str
    arguments: str
    response: str
    message: str


@dataclass(frozen=True, slots=True)
class Judged:
    """One answer to one query. ``tools`` are function objects; ``steps`` the calls in order."""

    id: str
    query: str
    tools: tuple[dict[str, Any], ...]
    final_answer: str
    method: str
    total_steps: int
    steps: tuple[ToolStep, ...]

    @property
    def finished(self) -> bool:
        """Whether the last call is Finish."""
        return bool(self.steps) and self.steps[-1].name == FINISH

    @property
    def hallucinated(self) -> bool:
        """Whether a function was called that is not among the tools."""
        known = {str(one.get("name")) for one in self.tools} | {FINISH}
        return any(one.name not in known for one in self.steps)

    @property
    def tool_names(self) -> list[str]:
        """The names of the tools, in order."""
        return [str(one.get("name", "")) for one in self.tools]

    def steps_text(self) -> str:
        """Return the calls as ToolEval prints them, ``Step 1: …`` a line."""
        return "\n".join(f"Step {at}: {one.message}" for at, one in enumerate(self.steps, 1))

    def final_step(self) -> str:
        """Return the last call as ToolEval prints it; empty where there is none."""
        return f"Final step: {self.steps[-1].message}" if self.steps else ""


@dataclass(frozen=True, slots=True)
class AnswerSet:
    """The answers of one model to one subset, by query id."""

    model: str
    subset: str
    answers: Mapping[str, Judged] = field(default_factory=dict)


def read_sets(path: Path, *, model: str = "") -> list[AnswerSet]:
    """Return the sets of a file or a folder; ``model`` names them, else the path does.

    Raises:
        NotFoundError: there is nothing at the path.
        DataError: a file is damaged or of another kind, kinds are mixed, or there is none.
    """
    if not path.exists():
        raise NotFoundError(f"{path} does not exist", hint=_HINT)
    if not path.is_dir():
        return [_one_file(path, model)]
    files = sorted(one for one in path.glob("*.json") if one.is_file())
    if not files:
        raise DataError(f"{path} has no .json file", hint=_HINT)
    values = {file: _load(file) for file in files}
    raw = [file for file, value in values.items() if "answer_generation" in value]
    if raw and len(raw) < len(values):
        other = next(file for file in values if file not in raw)
        raise DataError(
            f"{path} mixes answer files ({raw[0].name}) and others ({other.name})",
            hint="put each kind into a folder of its own",
        )
    if not raw:
        return [
            AnswerSet(model or path.name, file.stem, _converted(value, file))
            for file, value in values.items()
        ]
    answers: dict[str, Judged] = {}
    for file, value in values.items():
        one = _raw(value, file)
        if one.id in answers:
            raise DataError(
                f"{path} has two answers to the query {one.id!r}, the second in {file.name}",
                hint="put each method into a folder of its own",
            )
        answers[one.id] = one
    return [AnswerSet(model or path.resolve().parent.name, path.name, answers)]


def converted(value: Mapping[str, Any], where: str) -> dict[str, Judged]:
    """Return the answers of ToolEval's converted form; ``where`` names it in errors.

    Raises:
        DataError: it is not of that form.
    """
    return {key: parse_judged(key, one, f"{where}, {key}") for key, one in value.items()}


def parse_judged(key: str, value: Any, where: str) -> Judged:
    """Return one entry of the converted form. Raises DataError where it is none."""
    answer = value.get("answer") if isinstance(value, dict) else None
    if not isinstance(answer, dict) or not isinstance(value.get("query"), str):
        raise DataError(f"{where}: no query with an answer", hint=_HINT)
    tools = value.get("available_tools")
    return Judged(
        id=key,
        query=value["query"],
        tools=tuple(_function(one) for one in tools if isinstance(one, dict))
        if isinstance(tools, list)
        else (),
        final_answer=_text(answer.get("final_answer")),
        method=_text(answer.get("method")),
        total_steps=_whole(answer.get("total_steps")),
        steps=tuple(_steps(answer.get("answer_details"))),
    )


def _one_file(path: Path, model: str) -> AnswerSet:
    value = _load(path)
    folder = path.resolve().parent
    if "answer_generation" in value:
        one = _raw(value, path)
        return AnswerSet(model or one.method, folder.name, {one.id: one})
    return AnswerSet(model or folder.name, path.stem, _converted(value, path))


def _converted(value: Mapping[str, Any], path: Path) -> dict[str, Judged]:
    found = converted(value, str(path))
    if not found:
        raise DataError(f"{path} holds no answers", hint=_HINT)
    return found


def _raw(value: Any, path: Path) -> Judged:
    key, _, method = path.stem.partition("_")
    form = tooleval_form(parse_answer(value, str(path)), method or "toolsrv")
    return parse_judged(key, form, str(path))


def _load(path: Path) -> dict[str, Any]:
    try:
        value = wellformed.loads(read_file(path, MOST_BYTES).decode("utf-8-sig"))
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}", hint=_HINT) from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 (byte {error.start})", hint=_HINT) from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is no JSON, or cut off: {error}", hint=_HINT) from error
    if not isinstance(value, dict):
        raise DataError(f"{path} holds no JSON object", hint=_HINT)
    return value


def _function(value: dict[str, Any]) -> dict[str, Any]:
    inner = value.get("function")
    return inner if isinstance(inner, dict) and "name" not in value else value


def _steps(details: Any) -> Iterator[ToolStep]:
    """Yield the calls on the first path through the nodes; a list may be the nodes in order."""
    nodes: list[Any] = list(details) if isinstance(details, list) else [details]
    while nodes:
        node = nodes.pop(0)
        if not isinstance(node, dict):
            continue
        if node.get("role") == "tool":
            yield _step(node.get("message"))
        below = node.get("next")
        if isinstance(below, list) and below:
            nodes = [below[0]]


def _step(message: Any) -> ToolStep:
    value = message
    if isinstance(message, str):  # older files hold Python's notation
        try:
            value = ast.literal_eval(message)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            value = {}
    if not isinstance(value, dict):
        value = {}
    shown = message if isinstance(message, str) else str(message)
    return ToolStep(
        _text(value.get("name")),
        _text(value.get("arguments")),
        _text(value.get("response")),
        shown,
    )


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _whole(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def only(sets: Sequence[AnswerSet], ids: frozenset[str] | None) -> list[AnswerSet]:
    """Return the sets with the queries of ``ids`` alone; None keeps all.

    Raises:
        DataError: a set has none of them.
    """
    if ids is None:
        return list(sets)
    found = []
    for one in sets:
        answers = {key: value for key, value in one.answers.items() if key in ids}
        if not answers:
            raise DataError(
                f"{one.model} {one.subset} has no answer to any query of the id file",
                hint="give the ids of these queries, or leave --ids out",
            )
        found.append(AnswerSet(one.model, one.subset, answers))
    return found
