"""Judges of answers: ToolEval's four questions in our wording or ToolBench's, put to a chat model."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, get_args

from toolsrv_catalogs import yaml_text
from toolsrv_lab.evaluation.result_log import ResultLog
from toolsrv_lab.tooleval.answer_sets import Judged
from toolsrv_lab.tooleval.verdicts import AnswerStatus, TaskStatus
from toolsrv_registry.errors import DataError, ToolsrvError
from toolsrv_runtime.contract.models import (
    ChatModel,
    ChatReply,
    ChatRequest,
    ReplyConstraints,
    Tool,
    UserMessage,
)
from toolsrv_runtime.errors import ContextError
from toolsrv_runtime.files import read_text
from toolsrv_runtime.stop import Stop

QUESTIONS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "check_answer_status": ("answer_status", ("Unsure", "Unsolved", "Solved")),
    "parse_answer_status": ("answer_status", ("Unsure", "Unsolved", "Solved")),
    "check_task_solvable": ("task_status", ("Unsure", "Unsolvable", "Solvable")),
    "select_better_answer": ("index", ("0", "1")),
}
"""Question → the argument that holds the verdict, and its values."""

MOST_BYTES = 1 << 20
MOST_TOKENS = 4096
_REASON_LIMIT = 600
_PLACEHOLDER = re.compile(r"\{(query|answer|task|answer_0|answer_1)\}")
_BLOCK = re.compile(r"<function>(.*?)</function>", re.DOTALL)
_PART = re.compile(r"<(name|description)>(.*?)</\1>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Wording:
    """Prompts by question; ``{query}`` and the like stand for the parts of a question."""

    prompts: Mapping[str, str]
    temperature: float = 0.2
    max_tokens: int = 600

    @property
    def digest(self) -> str:
        """A hash that tells this wording from others."""
        every = repr((sorted(self.prompts.items()), self.temperature, self.max_tokens))
        return hashlib.sha256(every.encode()).hexdigest()[:16]

    def text(self, question: str, parts: Mapping[str, str]) -> str:
        """Return the prompt of a question with its parts filled in."""
        return _PLACEHOLDER.sub(lambda found: parts.get(found[1], found[0]), self.prompts[question])

    def tool(self, question: str, *, reasons: bool) -> Tool:
        """Return the function that a reply calls; ``reasons``: with a reason before the verdict."""
        name, values = QUESTIONS[question]
        properties: dict[str, Any] = {}
        if reasons:
            properties["reason"] = {
                "type": "string",
                "maxLength": _REASON_LIMIT,
                "description": "Why, in a sentence or two.",
            }
        properties[name] = {"type": "string", "enum": list(values), "description": "The verdict."}
        schema = {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }
        return Tool(question, "Give the verdict.", schema)


_STATUS = (
    "Solved: the answer serves all parts of the query with definite information or with the wanted "
    "action done. Unsolved: a part is missing, refused, only promised or plainly wrong, or the "
    "answer is an apology. Unsure: what you are shown does not tell."
)

OURS = Wording(
    {
        "check_answer_status": (
            "Judge whether a final answer serves a query. You see the answer only, not how it was "
            f"found.\n{_STATUS}\n\nQuery:\n{{query}}\n\nFinal answer:\n{{answer}}\n\n"
            "Call check_answer_status with the verdict."
        ),
        "parse_answer_status": (
            "Judge whether an agent's answer serves a query. You see its calls, what they returned "
            "and its final answer. Values that no response supports do not serve a query. A way "
            "along which every call failed does not either.\n"
            f"{_STATUS}\n\nQuery:\n{{query}}\n\nAnswer:\n{{answer}}\n\n"
            "Call parse_answer_status with the verdict."
        ),
        "check_task_solvable": (
            "Judge whether a query can be served with a list of functions. You see the query and the "
            "functions.\nSolvable: the functions can bring all that the query asks for, and the "
            "query says all that they need. Unsolvable: the query asks for something that none of "
            "them can bring or do, contradicts itself, or leaves out or invents what a call needs. "
            "Unsure: the descriptions do not tell.\n\nTask:\n{task}\n\n"
            "Call check_task_solvable with the verdict."
        ),
        "select_better_answer": (
            "Two agents answered one query with the same functions. Choose the better answer. Weigh "
            "in this order: how much of the needed information it has; whether it says truly what "
            "was done and what failed; how well its steps are reasoned; how many parts of the query "
            "it reached; how far it tried other functions where one failed; how few calls "
            "it wasted.\n\nQuery:\n{query}\n\nAnswer 0:\n{answer_0}\n\nAnswer 1:\n{answer_1}\n\n"
            "Call select_better_answer with the index of the better one."
        ),
    }
)
"""Our own wording, at ToolEval's temperature."""


def read_wording(folder: Path) -> Wording:
    """Return the wording of an evaluator folder of ToolBench (``evaluators/<name>``).

    Raises:
        NotFoundError: the folder has no ``config.yaml`` or template.
        DataError: they cannot be read, or lack one of the four questions.
    """
    config = _config(folder / "config.yaml")
    template = _read(folder / Path(str(config.get("prompt_template") or "template.txt")).name)
    prompts = {}
    for block in _BLOCK.findall(template):
        parts = dict(_PART.findall(block))
        prompts[parts.get("name", "").strip()] = parts.get("description", "")
    missing = [name for name in QUESTIONS if name not in prompts]
    if missing:
        raise DataError(
            f"the evaluator {folder} does not ask {', '.join(missing)}",
            hint="give tooleval_gpt-3.5-turbo_default of ToolBench, or leave --evaluator out",
        )
    kwargs = config.get("completions_kwargs")
    given = kwargs if isinstance(kwargs, dict) else {}
    temperature, tokens = given.get("temperature", 0.2), given.get("max_tokens", 600)
    if not _number(temperature) or not 0 <= temperature <= 2:
        raise DataError(f"{folder}/config.yaml: temperature is no number from 0 to 2")
    if not _number(tokens) or tokens < 1:
        raise DataError(f"{folder}/config.yaml: max_tokens is no positive number")
    return Wording(
        {name: prompts[name] for name in QUESTIONS},
        float(temperature),
        min(int(tokens), MOST_TOKENS),
    )


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _config(path: Path) -> dict[str, Any]:
    try:
        value = yaml_text.load(_read(path))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is no YAML: {error}", hint="give ToolBench's own file") from error
    if not isinstance(value, dict):
        raise DataError(f"{path} holds no settings", hint="give ToolBench's own file")
    return value


def _read(path: Path) -> str:
    hint = "give a folder of ToolBench's evaluators: config.yaml and its template"
    return read_text(path, MOST_BYTES, hint=hint)


ATTEMPTS = 2
"""Replies that are asked for before a question counts as unsure."""

ANSWER_LIMIT = 1000
"""Characters of a final answer in a comparison, as in ToolBench."""

_ROOM = (1_000_000, 12_000, 6_000, 3_000, 1_500, 700)
"""Characters of a part of a question, in turn, until the question fits the judge's context."""


class StoppedError(Exception):
    """The run is to end before this question has a reply."""


class Judge(Protocol):
    """Who judges answers. ``at`` numbers the votes on one question."""

    @property
    def name(self) -> str:
        """The judge's name in reports."""

    def check_answer_status(self, answer: Judged, at: int) -> AnswerStatus:
        """Return whether the final answer solves the query, by the answer alone."""

    def parse_answer_status(self, answer: Judged, at: int) -> AnswerStatus:
        """Return the same by all steps."""

    def check_task_solvable(self, answer: Judged, at: int) -> TaskStatus:
        """Return whether the query can be solved with its tools."""

    def select_better_answer(self, first: Judged, second: Judged, at: int) -> int:
        """Return 0 or 1: which of two answers to one query is better."""


class VoteLog:
    """Replies of a judge by question and number, kept in a result log. Thread-safe."""

    def __init__(self, log: ResultLog) -> None:
        """Read the votes of a log. Raises DataError where a line is none."""
        self.log = log
        self.fresh = 0
        self._unusable: set[str] = set()
        self._lock = threading.Lock()
        self._found: dict[str, dict[str, Any]] = {}
        for at, entry in enumerate(log, start=2):
            key, reply = entry.get("vote"), entry.get("reply")
            if not isinstance(key, str) or not isinstance(reply, dict):
                raise DataError(
                    f"{log.path}, line {at}: not a vote", hint="name another --out, or delete it"
                )
            self._found[key] = reply

    def get(self, key: str) -> dict[str, Any] | None:
        """Return the arguments that were voted, None where there is no such vote."""
        with self._lock:
            found = self._found.get(key)
            if found == {}:
                self._unusable.add(key)
            return found

    @property
    def broken(self) -> int:
        """Questions of this run without a usable reply, also those that an earlier run asked."""
        with self._lock:
            return len(self._unusable)

    def add(self, key: str, question: str, reply: Mapping[str, Any]) -> None:
        """Keep a vote; it is on the disk when this returns. Raises DataError."""
        with self._lock:
            self.log.add({"vote": key, "question": question, "reply": dict(reply)})
            self._found[key] = dict(reply)
            self.fresh += 1
            if not reply:
                self._unusable.add(key)


class ModelJudge:
    """A chat model as the judge."""

    def __init__(
        self,
        model: ChatModel,
        votes: VoteLog,
        *,
        wording: Wording = OURS,
        reasons: bool = False,
        seed: int = 0,
        stop: Stop | None = None,
    ) -> None:
        """Take the parts; ``reasons``: the judge writes a reason before its verdict."""
        self.name = model.name
        self._model = model
        self._votes = votes
        self._wording = wording
        self._reasons = reasons
        self._seed = seed
        self._stop = stop or Stop()

    def check_answer_status(self, answer: Judged, at: int) -> AnswerStatus:
        """Return whether the final answer solves the query."""
        parts = {"query": answer.query, "answer": answer.final_answer}
        return self._status("check_answer_status", parts, at)

    def parse_answer_status(self, answer: Judged, at: int) -> AnswerStatus:
        """Return whether the whole answer solves the query."""
        parts = {"query": answer.query, "answer": _whole(answer, answer.final_answer)}
        return self._status("parse_answer_status", parts, at)

    def check_task_solvable(self, answer: Judged, at: int) -> TaskStatus:
        """Return whether the query can be solved with its tools."""
        task = {"query": answer.query, "available_tools": list(answer.tools)}
        said = self._ask("check_task_solvable", {"task": _json(task)}, at).get("task_status")
        for status in get_args(TaskStatus):
            if said == status:
                return status  # type: ignore[no-any-return]
        return "Unsure"

    def select_better_answer(self, first: Judged, second: Judged, at: int) -> int:
        """Return which answer is better, the first where a reply names neither: the order alternates."""
        parts = {
            "query": _json({"query": first.query, "available_tools": first.tool_names}),
            "answer_0": _whole(first, first.final_answer[:ANSWER_LIMIT]),
            "answer_1": _whole(second, second.final_answer[:ANSWER_LIMIT]),
        }
        index = str(self._ask("select_better_answer", parts, at).get("index"))
        return int(index == "1")

    def _status(self, question: str, parts: Mapping[str, str], at: int) -> AnswerStatus:
        said = self._ask(question, parts, at).get("answer_status")
        for status in get_args(AnswerStatus):
            if said == status:
                return status  # type: ignore[no-any-return]
        return "Unsure"

    def _ask(self, question: str, parts: Mapping[str, str], at: int) -> dict[str, Any]:
        text = self._wording.text(question, parts)
        key = hashlib.sha256(_json([question, text, at]).encode()).hexdigest()[:32]
        if (found := self._votes.get(key)) is not None:
            return found
        said: dict[str, Any] = {}
        for attempt in range(ATTEMPTS):
            reply = self._reply(question, parts, at + 1000 * attempt)
            if reply.calls and not reply.problem:
                said = dict(reply.calls[0].arguments)
                break
        self._votes.add(key, question, said)
        return said

    def _reply(self, question: str, parts: Mapping[str, str], at: int) -> ChatReply:
        """Return the reply to a question that is shortened until the model takes it."""
        tool = self._wording.tool(question, reasons=self._reasons)
        problem: ToolsrvError | None = None
        for room in _ROOM:
            if self._stop.is_set():
                raise StoppedError
            cut = {key: _cut(value, room) for key, value in parts.items()}
            if cut == parts and room != _ROOM[0]:
                continue  # the same text again
            try:
                reply = self._model.reply(self._request(question, tool, cut, at), stop=self._stop)
            except ContextError as error:
                problem = error
                continue
            if reply is None:
                raise StoppedError
            return reply
        raise DataError(
            f"{self.name} has no room for a question of ToolEval: {problem and problem.message}",
            hint="name a judge with a longer context",
        ) from problem

    def _request(self, question: str, tool: Tool, parts: Mapping[str, str], at: int) -> ChatRequest:
        request = ChatRequest(
            (UserMessage(self._wording.text(question, parts)),),
            (tool,),
            ReplyConstraints((question,), calls=1, text=False),
            max_tokens=self._wording.max_tokens,
        )
        return replace(request, temperature=self._wording.temperature, seed=self._seed + at)


def _whole(answer: Judged, final_answer: str) -> str:
    """Return what a judge sees of a whole answer."""
    return _json(
        {
            "method": answer.method,
            "total_steps": answer.total_steps,
            "final_answer": final_answer,
            "answer_details": answer.steps_text(),
        }
    )


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    return f"{text[: limit * 2 // 3]} … {text[-limit // 3 :]}"
