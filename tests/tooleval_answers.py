"""Answers and a judge for tests of ToolEval."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from toolsrv_lab.tooleval.answer_sets import Judged, ToolStep
from toolsrv_lab.tooleval.verdicts import AnswerStatus, TaskStatus

TOOL = {"name": "tide_times", "description": "High and low tides of a port", "parameters": {}}


def step(name: str, response: Any = "", **arguments: Any) -> ToolStep:
    text = response if isinstance(response, str) else json.dumps(response)
    given = json.dumps(arguments)
    return ToolStep(name, given, text, str({"name": name, "arguments": given, "response": text}))


def judged(key: str = "7", final: str = "High tide is at 14:20.", **other: Any) -> Judged:
    given: dict[str, Any] = {
        "id": key,
        "query": "When is high tide in Brest?",
        "tools": (TOOL,),
        "final_answer": final,
        "method": "DFS",
        "total_steps": 4,
        "steps": (step("tide_times", {"high": "14:20"}, port="Brest"), step("Finish")),
    }
    return Judged(**given | other)


def converted(answer: str = "High tide is at 14:20.", *, finish: bool = True) -> dict[str, Any]:
    """Return an entry of ToolEval's converted form."""
    nodes: list[dict[str, Any]] = [
        {"role": "system", "message": ""},
        {"role": "user", "message": ""},
        {"role": "assistant", "message": "Ask."},
        {"role": "tool", "message": {"name": "tide_times", "arguments": "{}", "response": "14:20"}},
    ]
    if finish:
        call = {"name": "Finish", "arguments": '{"return_type": "give_answer"}', "response": ""}
        nodes.append({"role": "tool", "message": call})
    below: list[dict[str, Any]] = []
    for node in reversed(nodes):
        below = [{**node, "next": below}]
    details = {"method": "CoT", "total_steps": len(nodes), "final_answer": answer}
    return {
        "query": "When is high tide in Brest?",
        "available_tools": [TOOL, {"name": "Finish"}],
        "answer": {**details, "answer_details": below},
    }


class FixedJudge:
    """A judge that answers from a table and records what it is asked."""

    name = "fixed"

    def __init__(
        self,
        *answers: AnswerStatus,
        task: TaskStatus = "Solvable",
        better: Callable[[Judged, Judged], int] = lambda _first, _second: 0,
    ) -> None:
        self.asked: list[str] = []
        self._answers = list(answers)
        self._task = task
        self._better = better

    def check_answer_status(self, answer: Judged, at: int) -> AnswerStatus:
        del answer, at
        self.asked.append("check_answer_status")
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]

    def parse_answer_status(self, answer: Judged, at: int) -> AnswerStatus:
        del answer, at
        self.asked.append("parse_answer_status")
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]

    def check_task_solvable(self, answer: Judged, at: int) -> TaskStatus:
        del answer, at
        self.asked.append("check_task_solvable")
        return self._task

    def select_better_answer(self, first: Judged, second: Judged, at: int) -> int:
        del at
        self.asked.append("select_better_answer")
        return self._better(first, second)


def write(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), "utf-8")
    return path
