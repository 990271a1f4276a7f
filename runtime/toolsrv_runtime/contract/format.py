"""Port of a conversation format: from the history of a path to the model's next action.

A format owns prompt text, grammar and the parsing of replies. It calls an engine or a chat model.
It knows no search trees, API hosts or budgets. All methods block; callers use a worker thread.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

from toolsrv_registry import wellformed
from toolsrv_registry.api import Api
from toolsrv_registry.functions import Function
from toolsrv_registry.matcher import Match, MatchRequest
from toolsrv_runtime.contract.hints import Question
from toolsrv_runtime.contract.models import Completion, OptionScores, Prompt
from toolsrv_runtime.stop import Stop

FINISH = "Finish"


class Reranker(Protocol):
    """Scores of APIs for a piece of text."""

    def scores(self, text: str, apis: Sequence[Api]) -> Sequence[float]:
        """Return how well each API fits ``text``, each in [0, 1]."""

    def similarities(self, text: str, apis: Sequence[Api]) -> Sequence[float]:
        """Return how near ``text`` is to a request that people make of each API (cosine)."""

    def match(self, asked: MatchRequest, apis: Sequence[Api]) -> Sequence[Match]:
        """Return whether each API serves a clause, and which words are its values.

        Empty where the matcher cannot be used.
        """


@dataclass(frozen=True, slots=True)
class StepResult:
    """What a reply comes to where no API is called: ToolBench's code, and what the model reads.

    ``answer`` is the inner text of an answer.
    """

    code: int
    text: str
    answer: str = ""


@dataclass(frozen=True, slots=True)
class Action:
    """A model's reply. ``arguments`` is the JSON text; ``pieces`` is how it stands in a prompt.

    ``about`` is the part of the task that the reply serves, where the format knows it; ``need`` the
    open part that a model was asked to serve, free to choose the function; ``missing`` the parts
    that an answer leaves open, ``wanted`` what would serve better than this reply and may be
    searched for before it counts. A format that reads calls its own way says so: ``target`` is the
    available function that is meant where ``function`` is not its name, ``verdict`` what the reply
    comes to. ``without_calls``: an answer that needs none, to talk with the assistant itself.
    ``also`` are the further calls of the same reply, in order.
    """

    thought: str | None
    function: str
    arguments: str
    pieces: Prompt = ()
    about: str = ""
    missing: tuple[str, ...] = ()
    wanted: tuple[str, ...] = ()
    target: str = ""
    verdict: StepResult | None = None
    without_calls: bool = False
    also: tuple[Action, ...] = ()
    need: str = ""

    def is_followed_by(self, move: Action) -> bool:
        """Whether ``move`` is the next call of the reply that holds this action."""
        return bool(self.also) and self.also[0].call == move.call

    @property
    def call(self) -> tuple[str, str]:
        """Function and arguments."""
        return self.function, self.arguments

    @property
    def parsed(self) -> dict[str, Any]:
        """The arguments as an object, empty where they are no JSON object."""
        try:
            value = json.loads(self.arguments or "{}")
        except (ValueError, RecursionError):
            return {}
        return value if isinstance(value, dict) else {}

    def __post_init__(self) -> None:
        """Make what the model wrote well-formed Unicode: it goes into requests and records."""
        for name, clean in (
            ("thought", wellformed.text(self.thought or "") if self.thought else self.thought),
            ("function", wellformed.text(self.function)),
            ("arguments", wellformed.json_text(self.arguments)),
        ):
            if clean is not getattr(self, name):
                object.__setattr__(self, name, clean)


@dataclass(frozen=True, slots=True)
class Step:
    """An action and its result; ``response`` is the API's own value, ``ok`` its success.

    ``repeats`` counts the same call above it on its path: the response is that one's, not a new
    one. ``down``: the API is out of service, or left alone, whatever it is called with.
    ``declined``: a person said no to the call, and what it was for is not to be done in another
    way. ``unanswered``: it lacks a value that nobody gave, and was not made; ``early``: one that
    another call may tell; ``doubted``: not made because the task says another value.
    """

    move: Action
    observation: str
    ok: bool
    response: Any = None
    repeats: int = 0
    down: bool = False
    declined: bool = False
    unanswered: bool = False
    early: bool = False
    doubted: bool = False


@dataclass(frozen=True, slots=True)
class History:
    """What a format may know: the task, the functions, the path, what was tried from here.

    ``failed`` are the steps that failed anywhere in the tree: the same calls fail again.
    ``answers`` are the questions that a person was asked, with what they said. ``seed`` is the
    solve's, for sampling. ``fits``: the retriever finds something near the task.

    A subtask's history has the subtask as its task, ``whole`` the task that it is of, and
    ``earlier`` the successful steps of other subtasks; its path begins with it. Of a task that goes
    on from other runs ``before`` has their tasks and answers, oldest first, and ``earlier`` begins
    with their successful steps. ``open_parts`` are the unsolved subtasks of a plan that was gone
    through: where there are none the answer is what is left; None without a plan. ``conditions``
    are those that the task sets, each a line that may say that the last result breaks it.
    """

    task: str
    functions: tuple[Function, ...]
    path: tuple[Step, ...] = ()
    tried: tuple[Step, ...] = ()
    failed: tuple[Step, ...] = ()
    answers: tuple[tuple[str, str], ...] = ()
    seed: int = 0
    fits: bool = True
    whole: str = ""
    earlier: tuple[Step, ...] = ()
    open_parts: tuple[str, ...] | None = None
    conditions: tuple[str, ...] = ()
    before: tuple[tuple[str, str], ...] = ()

    @property
    def continues(self) -> bool:
        """Whether this is a whole task that goes on from other runs."""
        return bool(self.before) and not self.whole

    @property
    def planned(self) -> Action | None:
        """The next call of the reply that the path ends in, with those after it; None for none.

        None too once it was tried here, and behind a call that a person declined: what else the
        reply wanted may have been for the same end.
        """
        last = self.path[-1] if self.path else None
        if last is None or self.tried or last.declined or not last.move.also:
            return None
        first, *rest = last.move.also
        return replace(first, also=tuple(rest))


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether a model, asked to read an answer again, accepts it, and why in a few words."""

    accepted: bool
    reason: str


@dataclass(slots=True)
class UsageMeter:
    """Adds up what engine calls cost, and collects ``notes`` on what prompts had to leave out."""

    replies: int = 0
    prompt_tokens: int = 0
    evaluated: int = 0
    generated: int = 0
    forced: int = 0
    notes: dict[str, None] = field(default_factory=dict)

    def note(self, notes: Iterable[str]) -> None:
        """Keep notes, each once, in order."""
        self.notes.update(dict.fromkeys(notes))

    def reply(self, reply: Completion) -> Completion:
        """Count a generation and hand it on."""
        self.prompt_tokens += reply.prompt_tokens
        self.evaluated += reply.evaluated
        self.generated += len(reply.tokens)
        self.forced += reply.forced
        return reply

    def scores(self, scores: OptionScores) -> OptionScores:
        """Count a scoring and hand it on."""
        self.prompt_tokens += scores.prompt_tokens
        self.evaluated += scores.evaluated
        return scores


class Interrupted(Exception):  # noqa: N818 - not an error: the caller cancelled
    """Stop was set in the middle of a reply."""


class Format(Protocol):
    """One conversation format bound to one engine."""

    @property
    def name(self) -> str:
        """The format's name, for records."""

    def observation(self, response: Any, error: str, schema: Any = None) -> str:
        """Return a response as the model reads it: cleaned, capped, marked as an error if so.

        ``schema`` is the API's response schema, which says what of a long one is worth keeping.
        """

    def propose(
        self, view: History, *, max_tokens: int, stop: Stop, meter: UsageMeter
    ) -> Action | str:
        """Return the next action, or the reason why the model gave none. Blocks.

        Raises:
            Interrupted: ``stop`` was set before the reply was complete.
            ContextError: the conversation does not fit the model any more.
        """

    def finish(
        self, view: History, *, max_tokens: int, stop: Stop, meter: UsageMeter
    ) -> Action | None:
        """Return an answer with what the path holds, and what it leaves open; None: none came.

        For a search that has to end: the model has no other choice than to answer. Blocks, and
        raises as ``propose`` does.
        """

    def prefers(
        self, view: History, first: Step, second: Step, *, stop: Stop, meter: UsageMeter
    ) -> bool:
        """Whether the model finds ``first`` the better next step from ``view``. Blocks.

        Raises as ``propose`` does.
        """


@runtime_checkable
class Verifier(Format, Protocol):
    """A format whose model can judge an answer; the shipped one was never trained to."""

    def verify(
        self,
        view: History,
        answer: str,
        untraced: Sequence[str],
        *,
        max_tokens: int,
        stop: Stop,
        meter: UsageMeter,
    ) -> Judgement | None:
        """Return what the model says of ``answer``, having read the path again; None: nothing usable.

        ``untraced`` are the words of the answer that neither the task nor a response has. Blocks,
        and raises as ``propose`` does.
        """


@runtime_checkable
class Configurable(Format, Protocol):
    """A format whose aids, switches and temperature a solve may choose: the agent of chat models."""

    def configured(
        self, aids: frozenset[str] | None, switches: frozenset[str], temperature: float
    ) -> Configurable:
        """Return the format of one solve, which is not shared with another; aids None: all.

        Raises:
            UsageError: there is no such aid.
        """

    def divide(
        self, view: History, *, max_tokens: int, stop: Stop, meter: UsageMeter
    ) -> tuple[str, ...]:
        """Return the subtasks in their order; none where the task is to be solved as one. Blocks.

        Raises as ``propose`` does.
        """


@runtime_checkable
class Inquirer(Format, Protocol):
    """A format that sees which arguments of a call nobody has given."""

    def missing(self, view: History, move: Action, asked: Collection[str]) -> Sequence[Question]:
        """Return a question for each argument of a call that the model made up. Blocks.

        ``asked`` are the arguments of the function that a person was asked for before.
        """

    def doubts(self, view: History, move: Action) -> Mapping[str, str]:
        """Return argument key -> what the task says instead of a made-up value, "" for nothing. Blocks."""

    def suppliers(self, view: History, move: Action) -> Sequence[str]:
        """Return the names of functions whose answers may hold what a call lacks. Blocks."""
