"""The agent's tests: a fake matcher, a chat model with a script for each kind of request, paths."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from toolsrv_registry.api import Api
from toolsrv_registry.functions import FunctionList
from toolsrv_registry.matcher import Match, MatchRequest, Slot, Span
from toolsrv_runtime.agent.candidates import ApiRetriever, RetrievedApis
from toolsrv_runtime.calls.caller import default_caller
from toolsrv_runtime.contract.format import Action, History, Step
from toolsrv_runtime.contract.models import ChatRequest, SystemMessage, ToolCall
from toolsrv_runtime.models.scripted import ScriptedChat, ScriptedReply
from toolsrv_runtime.outcome import Outcome
from toolsrv_runtime.profiles import Profile
from toolsrv_runtime.solve import SolveOptions, Solver
from toolsrv_runtime.stop import Stop

CHAT = Profile(name="chat", format="chat", context=8192)
TASK = "the capital of Peru and the currency of Chile"
CAPITAL_API, CURRENCY_API = (
    f"Data/country_facts/{name}" for name in ("capital_city", "national_currency")
)
CAPITAL, CURRENCY = "capital_city_for_country_facts", "national_currency_for_country_facts"
TALK = "greet"
"""The API of ``agent.itself`` that stands for small talk."""

Calls = list[tuple[str, dict[str, Any]]]
"""Calls by the end of an API's id, with their arguments."""
Solved = Callable[[str], Outcome]
"""What a task comes to with the model that ships."""


class Words(Slot):
    """A slot whose likeliest span is fixed; None: the words stand nowhere."""

    __slots__ = ("_span",)
    _span: tuple[int, int] | None

    def __init__(self, span: tuple[int, int] | None) -> None:
        object.__setattr__(self, "none", 0.0 if span is None else -math.inf)
        object.__setattr__(self, "_span", span)

    def best(self, limit: int = 6) -> list[Span]:
        """Return the one span."""
        return [] if self._span is None or limit < 1 else [Span(0, *self._span, 0.0)]


@dataclass(frozen=True)
class Judge:
    """A matcher that takes the end of an API's id -> the words of a task that ask for it; all others serve none.

    ``silent``: its files cannot be used.
    """

    serves: Mapping[str, str] = field(default_factory=dict)
    silent: bool = False

    def match(self, asked: MatchRequest, apis: Sequence[Api]) -> list[Match]:
        """Return +5 for the APIs whose words the text has, -5 for the others."""
        if self.silent:
            return []
        return [self._match(asked.text, self.serves.get(api.id.split("/")[-1])) for api in apis]

    def scores(self, text: str, apis: Sequence[Api]) -> list[float]:
        """Know nothing."""
        del text
        return [0.0] * len(apis)

    similarities = scores

    def _match(self, text: str, words: str | None) -> Match:
        at = -1 if words is None else text.find(words)
        if words is None or at < 0:
            return Match(-5.0, Words(None), {})
        return Match(5.0, Words((at, at + len(words))), {})


@dataclass
class Hit:
    """An API that was found."""

    api: Api
    clause: str = ""
    score: float = 0.5


@dataclass
class Hits:
    """What a search found."""

    hits: list[Hit]
    nothing_fits: bool = False
    nearest_categories: tuple[str, ...] = ()
    dead_left_out: int = 0
    need_consent: tuple[str, ...] = ()
    language: str = ""


class Unmatched:
    """A retriever without a matcher that finds every API alike."""

    def match(self, asked: MatchRequest, apis: Sequence[Api]) -> list[Match]:
        """Match nothing."""
        del asked, apis
        return []

    def scores(self, text: str, apis: Sequence[Api]) -> list[float]:
        """Return the same for all."""
        del text
        return [0.5] * len(apis)

    similarities = scores


BOTH = Judge({"capital_city": "the capital of Peru", "national_currency": "the currency of Chile"})


@dataclass(frozen=True)
class Searched:
    """A real retriever whose matcher is ``judge``."""

    finder: ApiRetriever
    judge: Judge

    def search(self, text: str, limit: int = 5, *, category: str | None = None) -> RetrievedApis:
        """Search the real catalog."""
        return self.finder.search(text, limit, category=category)

    def match(self, asked: MatchRequest, apis: Sequence[Api]) -> Sequence[Match]:
        """Ask the fake."""
        return self.judge.match(asked, apis)

    def scores(self, text: str, apis: Sequence[Api]) -> Sequence[float]:
        """Ask the real one."""
        return self.finder.scores(text, apis)

    def similarities(self, text: str, apis: Sequence[Api]) -> Sequence[float]:
        """Ask the real one."""
        return self.finder.similarities(text, apis)


def kind(request: ChatRequest) -> str:
    """Return what a request is for: call, more (a call or text), answer, letter or judgement."""
    if request.expected.schema is not None:
        return "judgement" if "accept" in json.dumps(request.expected.schema) else "letter"
    if not request.tools:
        return "answer"
    return "more" if request.expected.text else "call"


class Script:
    """Replies of a model by ``kind`` of request: the next of its list, its last for ever.

    ``more`` is text by default: no further call is wanted.
    """

    def __init__(self, **said: Sequence[ScriptedReply]) -> None:
        self._said: dict[str, list[ScriptedReply]] = {"more": ["done"]}
        self._said |= {name: list(replies) for name, replies in said.items()}

    def __call__(self, request: ChatRequest) -> ScriptedReply:
        left = self._said[kind(request)]
        return left.pop(0) if len(left) > 1 else left[0]


def model(*, context: int | None = None, **said: Sequence[ScriptedReply]) -> ScriptedChat:
    """Return a scripted model with a ``Script``."""
    return ScriptedChat(Script(**said), context=context)


def capital(country: str = "Peru") -> ToolCall:
    """Return a call."""
    return ToolCall(CAPITAL, {"country": country})


def currency(country: str = "Chile") -> ToolCall:
    """Return a call."""
    return ToolCall(CURRENCY, {"country": country})


def view(
    apis: Mapping[str, Api], *path: Step, task: str = TASK, ids: Sequence[str] = ()
) -> History:
    """Return a view of capital, currency and flag, or of ``ids``."""
    ids = ids or (CAPITAL_API, CURRENCY_API, "Data/country_facts/country_flag")
    return History(task, tuple(FunctionList([apis[one] for one in ids])), path)


def step(call: ToolCall, response: Any, *, ok: bool = True) -> Step:
    """Return a call and its response, or its error."""
    move = Action(None, call.name, json.dumps(call.arguments))
    seen = response if ok else {"error": response}
    return Step(move, json.dumps(seen), ok=ok, response=response if ok else None)


def prompts_of(chat: ScriptedChat, wanted: str) -> list[ChatRequest]:
    """Return the requests of a kind that a model was given."""
    return [one for one in chat.requests if kind(one) == wanted]


def system_of(request: ChatRequest) -> str:
    """Return the text of the system turn."""
    first = request.messages[0]
    assert isinstance(first, SystemMessage)
    return first.text


def calls_made(outcome: Outcome) -> Calls:
    """Return the functions and arguments of the calls that succeeded, in their order."""
    return [(one.api_id.rpartition("/")[2], one.arguments) for one in outcome.evidence if one.ok]


def solve(
    finder: ApiRetriever,
    chat: ScriptedChat,
    task: str = TASK,
    *,
    profile: Profile = CHAT,
    stop: Stop | None = None,
    **options: Any,
) -> Outcome:
    """Solve a task on the offline catalog."""

    async def main() -> Outcome:
        async with default_caller() as caller:
            solver = Solver(retriever=finder, engine=chat, profile=profile, caller=caller)
            return await solver.solve(task, SolveOptions(**options), stop=stop)

    return asyncio.run(main())
