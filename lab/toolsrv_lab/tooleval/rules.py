"""The deterministic judge ``rules``: a baseline that needs no model to generate.

An answer is solved when Finish gave one, some call succeeded, every value that it states is traced to
a response, to the arguments of a successful call or to the query, and every subtask that the matcher finds in the query is served by a
successful call. A task is solvable unless the matcher finds that no function serves any of it. Knows no
words of any language; what has to be understood, it cannot see.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from toolsrv_lab.tooleval.answer_sets import Judged, ToolStep
from toolsrv_lab.tooleval.verdicts import AnswerStatus, TaskStatus, empty_answer
from toolsrv_registry import wellformed
from toolsrv_registry.api import Api, Parameter
from toolsrv_registry.functions import FINISH, Function, parameter_keys
from toolsrv_registry.matcher import Matcher, MatchRequest
from toolsrv_runtime.agent.coverage import UNSERVED_LOG_ODDS, find_subtasks
from toolsrv_runtime.evidence.tracing import Traced, trace

NAME = "rules"

_ERROR_KEYS = frozenset({"error", "errors", "detail", "message", "msg", "status", "code"})


@dataclass(frozen=True, slots=True)
class Findings:
    """What the rules find in an answer."""

    gave_answer: bool
    succeeded: int
    failed: int
    unsupported: int
    supported: int
    subtasks: int
    open_subtasks: int

    @property
    def status(self) -> AnswerStatus:
        """The status; calls that all failed, or a value from nowhere, solve nothing."""
        if not self.gave_answer or not self.succeeded or self.unsupported:
            return "Unsolved"
        return "Unsolved" if self.open_subtasks else "Solved"


class RulesJudge:
    """The rules as a judge; thread-safe, and the same for every vote."""

    name = NAME

    def __init__(self, matcher: Matcher | None = None) -> None:
        """Take the matcher, the shipped one by default; it is loaded with the first question."""
        self._matcher = matcher or Matcher()
        self._lock = threading.Lock()
        self._findings: dict[tuple[str, ...], Findings] = {}

    def check_answer_status(self, answer: Judged, at: int) -> AnswerStatus:  # noqa: ARG002 - the port
        """Return the status by all rules."""
        return self.findings(answer).status

    def parse_answer_status(self, answer: Judged, at: int) -> AnswerStatus:
        """Return the same."""
        return self.check_answer_status(answer, at)

    def check_task_solvable(self, answer: Judged, at: int) -> TaskStatus:  # noqa: ARG002 - the port
        """Return whether the matcher finds a function for any of the query."""
        matches = self._matcher.match(
            MatchRequest(answer.query), [one.api for one in _functions(answer)]
        )
        return (
            "Solvable" if any(one.serves >= UNSERVED_LOG_ODDS for one in matches) else "Unsolvable"
        )

    def select_better_answer(self, first: Judged, second: Judged, at: int) -> int:  # noqa: ARG002 - the port
        """Return which answer is better, of equals the first: the order alternates.

        More subtasks served, fewer unsupported values, more supported ones, fewer failed calls and
        fewer calls count, in this order.
        """
        one, other = _rank(self.findings(first)), _rank(self.findings(second))
        return int(other < one)

    def findings(self, answer: Judged) -> Findings:
        """Return what the rules find; what was found before is kept."""
        key = (answer.query, answer.final_answer, answer.steps_text(), *answer.tool_names)
        with self._lock:
            if (known := self._findings.get(key)) is not None:
                return known
        found = self._find(answer)
        with self._lock:
            self._findings[key] = found
        return found

    def _find(self, answer: Judged) -> Findings:
        calls = [one for one in answer.steps if one.name != FINISH]
        succeeded = [one for one in calls if not failed(one)]
        wanted, _ = find_subtasks(answer.query, _functions(answer), self._matcher)
        made = {one.name for one in succeeded}
        traced = _traced(answer, succeeded)
        return Findings(
            gave_answer=answer.finished and not empty_answer(answer.final_answer),
            succeeded=len(succeeded),
            failed=len(calls) - len(succeeded),
            unsupported=len(traced.unsupported),
            supported=len(traced.supported),
            subtasks=len(wanted),
            open_subtasks=sum(made.isdisjoint(one.functions) for one in wanted),
        )


def _functions(answer: Judged) -> list[Function]:
    """Return the tools as functions under the names that the answer calls them by."""
    apis = [as_api(one) for one in answer.tools if one.get("name") != FINISH]
    return [Function(api.name, api, parameter_keys(api)) for api in apis]


def failed(step: ToolStep) -> bool:
    """Whether a response says that the call failed: by ToolBench's envelope or its own fields."""
    value = _value(step.response)
    if isinstance(value, dict) and value.keys() <= {"error", "response", "toolsrv"}:
        if "response" in value:
            if value.get("error"):
                return True
            value = _value(value["response"])
        elif value.get("error"):
            return True
    if isinstance(value, dict):
        if not value.keys() - _ERROR_KEYS and value.keys() & {"error", "errors", "detail"}:
            return True
        return bool(value.get("error")) and len(value) == 1
    return value is None or value == ""


def as_api(function: dict[str, Any]) -> Api:
    """Return a function object as an API, for the matcher to read.

    Parameters are JSON Schema, or names with descriptions.
    """
    name = str(function.get("name") or "function")
    given = function.get("parameters")
    schema = given if isinstance(given, dict) else {}
    properties = schema.get("properties") if "properties" in schema else schema
    needed = schema.get("required")
    required = set(map(str, needed)) if isinstance(needed, list) else set()
    every = [
        (str(key), _parameter(str(key), value))
        for key, value in (properties.items() if isinstance(properties, dict) else ())
    ]
    return Api(
        id=f"Functions/functions/{name}",
        category="Functions",
        tool="functions",
        name=name,
        description=str(function.get("description") or ""),
        required=tuple(one for key, one in every if key in required),
        optional=tuple(one for key, one in every if key not in required),
    )


def _parameter(name: str, value: Any) -> Parameter:
    if not isinstance(value, dict):
        return Parameter(name=name, description=str(value))
    kind = {"integer": "NUMBER", "number": "NUMBER", "boolean": "BOOLEAN"}
    enum = value.get("enum")
    return Parameter(
        name=name,
        type=kind.get(str(value.get("type")), "STRING"),
        description=str(value.get("description") or ""),
        enum=tuple(map(str, enum)) if isinstance(enum, list) else (),
    )


def _traced(answer: Judged, succeeded: Sequence[ToolStep]) -> Traced:
    said = [value for one in succeeded for value in (_value(one.response), _value(one.arguments))]
    return trace(_final(answer.final_answer), answer.query, enumerate(said, 1))


def _final(text: str) -> str:
    """Return the answer's words where the text is the raw argument of Finish."""
    value = _value(text)
    inner = value.get("final_answer") if isinstance(value, dict) else None
    return inner if isinstance(inner, str) else text


def _value(text: Any) -> Any:
    if not isinstance(text, str):
        return text
    try:
        return wellformed.loads(text)
    except (ValueError, RecursionError):
        return text


def _rank(one: Findings) -> tuple[int, ...]:
    served = one.subtasks - one.open_subtasks
    return (
        -int(one.gave_answer),
        -served,
        one.unsupported,
        -one.supported,
        one.failed,
        one.succeeded,
    )
