"""A task of two parts, a chat model that solves it with any switches, and the APIs it chooses from."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.agents import CAPITAL, CHAT, CURRENCY, Hit, Hits, Unmatched, capital, currency

from toolsrv_registry.api import Api
from toolsrv_runtime.calls.caller import Caller, default_caller
from toolsrv_runtime.contract.models import ChatRequest, ToolMessage
from toolsrv_runtime.models.scripted import ScriptedChat, ScriptedReply
from toolsrv_runtime.options import SolveOptions
from toolsrv_runtime.outcome import Event, Outcome
from toolsrv_runtime.profiles import Profile
from toolsrv_runtime.solve import Solver
from toolsrv_runtime.stop import Stop

TASK = "What is the capital of Peru, and which currency do people pay with in Chile?"
PARTS = ("What is the capital of Peru?", "Which currency do people pay with in Chile?")
FLAG = "country_flag_for_country_facts"
LIMA, PESO = capital(), currency()
ANSWER = "The capital of Peru is Lima, and in Chile people pay with the Chilean peso."
IDS = tuple(
    f"Data/country_facts/{name}"
    for name in ("capital_city", "national_currency", "country_flag", "continent", "country_codes")
)


@dataclass
class Shelf(Unmatched):
    """A retriever that has the same APIs for whatever is asked."""

    apis: Sequence[Api]
    asked: list[str] = field(default_factory=list)
    best: Mapping[str, str] = field(default_factory=dict)

    def search(self, text: str, limit: int = 5, *, category: str | None = None) -> Hits:
        """Find all, the ``best`` for this text first."""
        del category
        self.asked.append(text)
        first = self.best.get(text, "")
        ranked = sorted(self.apis, key=lambda api: not api.id.endswith(first or "?"))
        return Hits([Hit(api) for api in ranked[:limit]])


def task_of(request: ChatRequest) -> str:
    """Return what the user says first."""
    return request.messages[1].text


def called(request: ChatRequest) -> set[str]:
    """Return the functions whose results the model sees."""
    return {one.call.name for one in request.messages if isinstance(one, ToolMessage)}


def asks_for(request: ChatRequest) -> str:
    """Return the first property of the JSON that is asked for, "" where none is."""
    schema = request.expected.schema
    return next(iter(schema.get("properties", ["a letter"]))) if schema else ""


@dataclass
class Mind:
    """A model that solves ``TASK`` if it is led well; what it says of each kind can be changed."""

    plan: Any = PARTS
    wants: Iterable[str] = (CAPITAL, CURRENCY)
    conditions: Sequence[str] = ()
    verdicts: list[str] = field(default_factory=list)
    of_results: str = "kept"
    problems: tuple[str, ...] = ()
    corrected: str = ANSWER
    drafts: list[str] = field(default_factory=lambda: [ANSWER])
    call: Callable[[ChatRequest], ScriptedReply] | None = None
    asked: list[str] = field(default_factory=list)

    def __call__(self, request: ChatRequest) -> ScriptedReply:
        kind = asks_for(request)
        if kind:
            self.asked.append(kind)
            return json.dumps(self._structured(kind, request))
        if not request.expected.names:
            self.asked.append("draft")
            return self.drafts.pop(0) if len(self.drafts) > 1 else self.drafts[0]
        self.asked.append("call")
        if self.call is not None:
            return self.call(request)
        return self._next(request)

    def _next(self, request: ChatRequest) -> ScriptedReply:
        task, done = task_of(request).split("\n")[0], called(request)
        if "Peru" in task and CAPITAL not in done:
            return LIMA
        if "Chile" in task and CURRENCY not in done:
            return PESO
        return "That is all."

    def _structured(self, kind: str, request: ChatRequest) -> Any:
        if kind == "a letter":
            return "A"
        if kind == "subtasks":
            return {kind: self.plan}
        if kind == "functions":
            return {kind: list(self.wants)}
        if kind == "conditions":
            return {kind: list(self.conditions)}
        if kind == "problems":
            return {kind: list(self.problems), "answer": self.corrected}
        verdict = self.of_results
        if "\nAnswer:" in request.messages[-1].text:
            verdict = self.verdicts.pop(0) if self.verdicts else "kept"
        schema = request.expected.schema
        assert schema is not None
        return dict.fromkeys(schema["properties"], verdict)


def solve(
    finder: Shelf,
    said: Callable[[ChatRequest], ScriptedReply],
    *,
    profile: Profile = CHAT,
    events: list[Event] | None = None,
    stop: Stop | None = None,
    caller: Caller | None = None,
    seconds: float = 0.0,
    task: str = TASK,
    every_vote: bool = False,
    **options: Any,
) -> tuple[Outcome, ScriptedChat]:
    """Solve ``TASK`` on the offline catalog with a model that answers as ``said`` does."""
    model = ScriptedChat(said, seconds=seconds)
    heard: list[Event] = [] if events is None else events

    async def main() -> Outcome:
        async with caller or default_caller() as calls:
            solver = Solver(retriever=finder, engine=model, profile=profile, caller=calls)
            chosen = SolveOptions.model_validate(options)
            return await solver.solve(
                task, chosen, on_event=heard.append, stop=stop, every_vote=every_vote
            )

    return asyncio.run(main()), model


def functions(outcome: Outcome) -> list[str]:
    """Return the functions whose results the answer uses."""
    return [one.function for one in outcome.evidence if one.used]
