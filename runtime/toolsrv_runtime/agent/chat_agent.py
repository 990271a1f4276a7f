"""The agent of every chat model: what the model is asked at a node, and what its reply comes to.

Until a call has succeeded a reply is a call, or ``no_function_fits``: small models, left free,
write their calls as prose. The matcher says which words of the task no call has served yet
(``coverage``): while there are any, a reply is a call for them. Only then may the model say that it
is done, and the answer is written in a conversation of its own (``answering``). Models differ by
their ``ChatModel``, never by their agent.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from toolsrv_catalogs.text import clean
from toolsrv_registry.errors import UsageError
from toolsrv_runtime.agent import coverage, itself, missing, plan, prompts, turns, values
from toolsrv_runtime.agent.answering import AnswerWriter, DataQuestion, results_of
from toolsrv_runtime.agent.conversation import Turn, call_of, call_of_move
from toolsrv_runtime.agent.fitting import Fitting
from toolsrv_runtime.agent.switches import Switches
from toolsrv_runtime.agent.tools import NO_FUNCTION_FITS
from toolsrv_runtime.calls.compress import Budget
from toolsrv_runtime.contract.chat import (
    ChatModel,
    ChatReply,
    ChatRequest,
    Expected,
    LocalModel,
    ToolCall,
)
from toolsrv_runtime.contract.questions import Question
from toolsrv_runtime.errors import GrammarError
from toolsrv_runtime.formats import told
from toolsrv_runtime.formats.asides import says_something
from toolsrv_runtime.formats.base import FINISH, Judgement, Meter, Move, Prior, Step, View
from toolsrv_runtime.formats.fit import Shape
from toolsrv_runtime.profile import Profile
from toolsrv_runtime.search.plan import PART_CALLS
from toolsrv_runtime.stop import Stop

AIDS = frozenset({"coverage", "match", "exclude", "check", "decline", "shortlist", "values", "ask"})
"""What helps a model, each of which can be left out.

``coverage``: needs that the matcher sees in the task are called for before an answer is taken;
``match``: for a need only functions are offered that the matcher finds to serve it; ``exclude``: an
identical call on a path is not made again; ``check``: an answer is checked against the results and
written again once; ``decline``: a task for which the matcher sees no function is given up without
asking the model; ``shortlist``: candidates that the matcher rules out are not shown;
``values``: the model is told which words of the task the matcher takes for which argument; ``ask``: a
person is asked for values that nobody gave, where without it the model makes them up.
"""

_STRIDE = 1_000_003  # replies of one solve never reach it, so seeds do not overlap
_GIVE_UP = "give_up_and_restart"
_GIVE_ANSWER = "give_answer"
_LETTERS = {"type": "string", "enum": ["A", "B"]}
_JUDGEMENT = {
    "type": "object",
    "properties": {
        "reason": {"type": "string", "minLength": 1, "maxLength": 200},
        "accept": {"type": "boolean"},
    },
    "required": ["reason", "accept"],
    "additionalProperties": False,
}
_JUDGEMENT_TOKENS = 256
_PROBE_TOKENS = 16
"""Tokens after which a reply shows whether it calls or speaks; what it says is not used."""


class ChatAgent:
    """See the module. ``prior`` is the matcher, None where there is none."""

    def __init__(
        self,
        model: ChatModel,
        profile: Profile,
        *,
        prior: Prior | None = None,
        aids: frozenset[str] = AIDS,
        switches: frozenset[str] = frozenset(),
    ) -> None:
        self._model = model
        self._profile = profile
        self._prior = prior
        self._aids = aids
        self._fitting = Fitting(model)
        self.switches = Switches(switches)

    def configured(
        self, aids: frozenset[str] | None, switches: frozenset[str], temperature: float
    ) -> ChatAgent:
        """Return the agent of one solve; see ``Configurable.configured``."""
        aids = AIDS if aids is None else aids
        if unknown := sorted(aids - AIDS):
            known = ", ".join(sorted(AIDS))
            raise UsageError(f"there is no aid {unknown[0]!r}", hint=f"there are {known}")
        profile = self._profile.model_copy(update={"temperature": temperature})
        return ChatAgent(self._model, profile, prior=self._prior, aids=aids, switches=switches)

    @property
    def name(self) -> str:
        """The format, and how the model's calls are written."""
        syntax = self._model.syntax
        return f"chat ({syntax})" if syntax else "chat"

    def observation(self, response: Any, error: str, schema: Any = None) -> str:
        """Return the response as JSON text, capped; an error as an ``error`` object."""
        limit, context = self._profile.observation_limit, self._model.context
        if isinstance(self._model, LocalModel) and context is not None:
            room = Budget(min(limit, context // 8), self._model.tokens, 8)
        else:
            room = Budget(limit)
        return told.observation(response, error, room, schema)

    def propose(self, view: View, *, max_tokens: int, stop: Stop, meter: Meter) -> Move | str:
        """Return the next move; see ``Format.propose``."""
        if (move := view.planned) is not None:
            return replace(move, about=view.task) if view.whole else move
        asking = _Asking(self, view, max_tokens, stop, meter)
        return asking.part_move() if view.whole else asking.move()

    def divide(self, view: View, *, max_tokens: int, stop: Stop, meter: Meter) -> tuple[str, ...]:
        """Return the subtasks of the task; see ``Configurable.divide``."""
        if self.asks_itself(view) or self.declines(view):
            return ()
        return _Asking(self, view, max_tokens, stop, meter).subtasks()

    def finish(self, view: View, *, max_tokens: int, stop: Stop, meter: Meter) -> Move | None:
        """Return an answer with what the path holds; see ``Format.finish``."""
        move = _Asking(self, view, max_tokens, stop, meter).answer()
        return None if isinstance(move, str) else move

    def prefers(self, view: View, first: Step, second: Step, *, stop: Stop, meter: Meter) -> bool:
        """Whether ``first`` is the better next step; see ``Format.prefers``."""
        note = prompts.COMPARE.format(first=_row(first), second=_row(second))
        asking = _Asking(self, view, 16, stop, meter)
        return bool(_json(asking.reply(Expected(schema=_LETTERS), note).text) != "B")

    def verify(
        self,
        view: View,
        answer: str,
        untraced: Sequence[str],
        *,
        max_tokens: int,
        stop: Stop,
        meter: Meter,
    ) -> Judgement | None:
        """Return what the model says of ``answer``; see ``Verifier.verify``."""
        words = prompts.UNTRACED.format(words=", ".join(untraced)) if untraced else ""
        note = prompts.JUDGE.format(answer=answer, untraced=words)
        asking = _Asking(self, view, min(max_tokens, _JUDGEMENT_TOKENS), stop, meter)
        said = _json(asking.reply(Expected(schema=_JUDGEMENT), note).text)
        if not isinstance(said, dict) or not isinstance(said.get("accept"), bool):
            return None
        return Judgement(said["accept"], clean(str(said.get("reason", "")), 400).strip())

    def needs(self, view: View) -> tuple[tuple[coverage.Need, ...], tuple[coverage.Need, ...]]:
        """Return what the matcher sees that the task asks for, and what may follow from it."""
        if self._prior is None or "coverage" not in self._aids:
            return (), ()
        return coverage.needs(view.task, view.functions, self._prior)

    def shown(self, view: View) -> View:
        """Return the view with the functions that the model is shown."""
        if self._prior is None or "shortlist" not in self._aids:
            return view
        called = {step.move.function for step in (*view.path, *view.tried)}
        kept = coverage.shortlist(view.task, view.functions, self._prior)
        also = (one for one in view.functions if one.name in called and one not in kept)
        return replace(view, functions=(*kept, *also))

    def declines(self, view: View) -> bool:
        """Whether the matcher sees nothing on offer that serves any of the task."""
        if self._prior is None or "decline" not in self._aids or view.path:
            return False
        return coverage.is_unserved(view.task, view.functions, self._prior, fits=view.fits)

    def reading(self, view: View) -> values.Reading | None:
        """Return the matcher's reading of the task behind the results so far."""
        return (
            values.Reading(view.task, (*view.earlier, *view.path), self._prior)
            if self._prior
            else None
        )

    def missing(self, view: View, move: Move, asked: Collection[str]) -> Sequence[Question]:
        """Return the questions that a call leaves open; see ``Inquirer.missing``."""
        if self._prior is None or "ask" not in self._aids:
            return ()
        held = missing.known(view, prompts.today(datetime.now().astimezone()))
        return missing.questions(view, move, held, self._prior, asked)

    def suppliers(self, view: View, move: Move) -> Sequence[str]:
        """Return functions whose answers may hold what a call lacks; see ``Inquirer.suppliers``."""
        return missing.suppliers(view, move, self._prior) if self._prior is not None else ()

    def asks_itself(self, view: View) -> bool:
        """Whether the task is talk with the assistant."""
        prior = None if view.whole else self._prior
        return prior is not None and itself.asks_itself(view.task, view.functions, prior)

    def helps(self, aid: str) -> bool:
        """Whether an aid is in use."""
        return aid in self._aids

    def calls_per_turn(self) -> int:
        """Return how many calls a reply may hold, 1 where the model's syntax holds no more."""
        one = isinstance(self._model, LocalModel) and not self._model.several
        return 1 if one else self._profile.calls_per_turn

    def sees_needs(self, view: View) -> bool:
        """Whether a matcher says what the task asks for."""
        prior = self._prior
        if prior is None or "coverage" not in self._aids:
            return False
        return coverage.has_matcher(view.task, view.functions, prior)

    @property
    def probe_tokens(self) -> int | None:
        """Room of a reply that only shows whether it calls; None where a cut call cannot be seen."""
        return _PROBE_TOKENS if isinstance(self._model, LocalModel) else None

    def begins_call(self, raw: str) -> bool:
        """Whether a reply that was cut begins like a call."""
        return isinstance(self._model, LocalModel) and self._model.begins_call(raw)

    def send(
        self,
        task: str,
        turn: Turn | DataQuestion | ChatRequest,
        seed: int,
        stop: Stop,
        meter: Meter,
    ) -> tuple[ChatRequest, ChatReply]:
        """Return a reply and the request that it replies to, shortened until it fits."""
        profile, seed = self._profile, seed * _STRIDE + meter.replies
        context = self._model.context

        def write(shape: Shape, most: int | None) -> ChatRequest:
            request = turn if isinstance(turn, ChatRequest) else turn.request(shape)
            limits = (request.max_tokens, profile.max_reply_tokens, most, context and context // 2)
            return replace(
                request,
                max_tokens=max(1, min(one for one in limits if one)),
                temperature=profile.temperature,
                top_p=profile.top_p,
                seed=seed,
            )

        documents = [] if isinstance(turn, ChatRequest) else turn.documents()
        results = [] if isinstance(turn, ChatRequest) else turn.observations()
        return self._fitting.reply(task, documents, results, write, stop, meter)


class _Asking:
    """What is asked at one node."""

    def __init__(
        self, agent: ChatAgent, view: View, max_tokens: int, stop: Stop, meter: Meter
    ) -> None:
        self._agent = agent
        self._view = view = agent.shown(view)
        self._max_tokens = max_tokens
        self._stop = stop
        self._meter = meter
        self._now = datetime.now().astimezone()
        self._needs, self._behind = agent.needs(view)
        self._most = agent.calls_per_turn()
        self._several = self._most > 1
        if view.whole:  # what a subtask has no room for would be started for nothing
            self._most = max(1, min(self._most, PART_CALLS - len(view.path)))

    def move(self) -> Move | str:
        """Return the next move."""
        view, agent = self._view, self._agent
        started = any(step.ok for step in view.path)
        left = coverage.open_needs(self._needs, view.path, view.failed)
        if not started and not view.path:
            if agent.asks_itself(view):
                return self._reply_itself()
            if agent.declines(view):
                return _give_up("the matcher sees no function that serves any part of the task")
        if not left and any(step.unanswered for step in (*view.path, *view.tried)):
            return self.answer() if started else _give_up("a value is missing that nobody gave")
        if started and not left:
            left = self._following()
        if started and not left:
            return self._call_or_answer()
        return self._call(left, started=started)

    def answer(self) -> Move | str:
        """Return an answer with what the path holds; in a subtask, its end."""
        if self._view.whole:
            return plan.done(self._view)
        writer = AnswerWriter(self._write, self._now, check=self._agent.helps("check"))
        text = writer.write(self._view, self._needs)
        data = [one.data for one in results_of(self._view, self._needs)]
        text, notes = self._agent.switches.after_draft(self._view, data, text, self._write, writer)
        self._meter.note(notes)
        if not says_something(text):
            return "the model's answer says nothing"
        path = self._view.path
        made = [one.step.move.function for one in results_of(self._view, self._needs)]
        left = coverage.unserved(self._needs, made)
        if not self._needs and any(step.unanswered for step in path):
            left = (self._view.task,)
        return replace(
            _answer(text), missing=left if self._needs else left or self._view.open_parts or ()
        )

    def reply(self, expected: Expected, note: str = "", *, rejected: str = "") -> ChatReply:
        """Return the model's reply to the conversation so far."""
        return self._send(expected, note, rejected)[1]

    def _call(self, left: Sequence[coverage.Need], *, started: bool) -> Move | str:
        """Return a call; before the first success ``no_function_fits`` is the other choice."""
        failed = Counter(step.move.function for step in self._view.failed)
        offered = [one for one in self._view.functions if failed[one.name] < coverage.MOST_FAILED]
        early = coverage.too_early(self._view.path)
        offered = [one for one in offered if one.name != early] or offered
        if not offered:
            return _give_up("every call that could serve the task failed")
        note, reading = "", self._agent.reading(self._view)
        most = 1 if self._most == 1 or self._agent.sees_needs(self._view) else self._most
        if left and reading is not None:
            known = {function.name: function for function in offered}
            need = self._next(left, reading)
            wanted = turns.together(need, left, lambda one: reading.ready(one, known), self._most)
            serving, most = {name for one in wanted for name in one.functions}, len(wanted)
            if self._agent.helps("match"):
                offered = [one for one in offered if one.name in serving] or offered
            if started:
                note = prompts.open_parts([one.text for one in wanted])
            again = any(
                not step.ok and step.move.function in serving
                for step in (*self._view.path, *self._view.tried)
            )
            helps = self._agent.helps("values") and not again  # the words as they stand may be why
            hints = (reading.hint(one, offered) for one in wanted) if helps else ()
            if hint := "\n".join(filter(None, hints)):
                note = f"{note}\n{prompts.VALUES.format(hint=hint)}".strip()
        names = [function.name for function in offered]
        if not started and not left:
            names.append(NO_FUNCTION_FITS)
        return self._called(Expected(tuple(names), most, text=False), note)

    def _next(self, left: Sequence[coverage.Need], reading: values.Reading) -> coverage.Need:
        """Return the need to serve next: one whose values are known, or what may tell a value."""
        known = {function.name: function for function in self._view.functions}
        called = {step.move.function for step in self._view.path}
        before = (one for one in self._behind if not called & set(one.functions))
        return next((one for one in (*left, *before) if reading.ready(one, known)), left[0])

    def _following(self) -> tuple[coverage.Need, ...]:
        """Return what follows from the results: a function whose argument one of them holds."""
        reading = self._agent.reading(self._view)
        if reading is None:
            return ()
        called = {step.move.function for step in self._view.path}
        known = {function.name: function for function in self._view.functions}
        return tuple(
            need
            for need in self._behind
            if not called & set(need.functions) and reading.follows(need, known)
        )

    def _call_or_answer(self) -> Move | str:
        """Return a further call where the model wants one, else the answer.

        A call that cannot be made is sent back once: it is a wish to go on, not an answer, unless
        the matcher sees that every need is served.
        """
        self._view = self._agent.switches.before_choice(self._view, self._write)
        if self._view.open_parts == () or not self._view.functions:
            return self.answer()
        names = tuple(function.name for function in self._view.functions)
        calls = 1 if self._most == 1 or self._agent.sees_needs(self._view) else self._most
        expected = Expected(names, calls)
        request, reply = self._send(expected, "", most=self._agent.probe_tokens)
        if reply.finish == "length" and self._agent.begins_call(reply.raw):
            return self._called(replace(expected, text=False), "")
        if reply.problem:
            _, reply = self._send(expected, _correction(request, reply.problem), reply.raw)
        if reply.problem and not self._agent.sees_needs(self._view):
            return _unusable(reply.problem)
        if reply.calls and not reply.problem:
            return self._read(reply, calls)
        return self.answer()

    def _called(self, expected: Expected, note: str) -> Move | str:
        """Return the call that is made, at the second try if need be, or what is wrong with it."""
        self._view, expected = self._agent.switches.before_call(self._view, expected, self._write)
        try:
            request, reply = self._send(expected, note)
        except GrammarError as error:
            if not (self._agent.helps("exclude") and _made(self._view)):
                raise  # else all calls that the grammar allows are excluded
            return f"no other call is left here: {error.message}"
        if problem := _fault(reply):
            note = _correction(request, problem)
            _, reply = self._send(expected, note, reply.raw or "(nothing)")
            problem = _fault(reply)
        if problem:
            return _unusable(problem)
        return self._read(reply, expected.calls)

    def part_move(self) -> Move | str:
        """Return the next move of a subtask."""
        return plan.next_move(self._view, self._needs, self.move, _give_up)

    def subtasks(self) -> tuple[str, ...]:
        """Return the subtasks that the model names."""
        view = self._view
        return plan.read(self._write(plan.request(view.task, self._now)).text, view.task)

    def _reply_itself(self) -> Move | str:
        """Return a reply without a call; a give-up where it says what only functions know."""
        request = itself.request(self._view.task, self._view.functions, self._now)
        text = clean(self._write(request).text, 4_000).strip()
        writer = AnswerWriter(self._write, self._now)
        named = itself.examples(self._view.functions)
        if not says_something(text) or writer.untraced(self._view, text, also=named):
            return _give_up("no function serves the task, and what the model said is not known")
        return replace(_answer(text), without_calls=True)

    def _send(
        self, expected: Expected, note: str, rejected: str = "", *, most: int | None = None
    ) -> tuple[ChatRequest, ChatReply]:
        view = self._view
        room = min(self._max_tokens, most or self._max_tokens)
        if view.tried and not rejected:
            note = f"{prompts.TRIED.format(calls=_rows(view.tried))}\n{note}".strip()
        if self._agent.helps("exclude") and expected.names:
            expected = replace(expected, excluded=_made(view))
        expected = replace(expected, required_only=tuple(_needlessly_failed(view)))
        turn = Turn(
            view, expected, self._now, note, rejected, max_tokens=room, several=self._several
        )
        return self._agent.send(view.task, turn, view.seed, self._stop, self._meter)

    def _write(self, request: DataQuestion | ChatRequest) -> ChatReply:
        request = replace(request, max_tokens=min(request.max_tokens, self._max_tokens))
        view = self._view
        return self._agent.send(view.task, request, view.seed, self._stop, self._meter)[1]

    def _read(self, reply: ChatReply, most: int) -> Move:
        move = turns.joined(reply.calls, reply.text, self._view.path, most)
        if move.function != NO_FUNCTION_FITS:
            return move
        return _give_up(clean(str(_json(move.arguments).get("reason", "")), 300).strip())


def _correction(request: ChatRequest, problem: str) -> str:
    names = ", ".join(request.expected.names)
    return prompts.CORRECTION.format(problem=problem, names=names)


def _unusable(problem: str) -> str:
    return f"the model's reply cannot be used, nor a second one: {problem}"


def _fault(reply: ChatReply) -> str:
    return reply.problem or ("" if reply.calls else "it calls no function")


def _answer(text: str) -> Move:
    arguments = {"return_type": _GIVE_ANSWER, "final_answer": text}
    return Move(None, FINISH, json.dumps(arguments, ensure_ascii=False))


def _give_up(reason: str) -> Move:
    arguments = {"return_type": _GIVE_UP, "reason": reason}
    return Move(None, FINISH, json.dumps(arguments, ensure_ascii=False))


def _made(view: View) -> tuple[ToolCall, ...]:
    """Return the calls of a path and those tried below its end, with all of their replies.

    A call that came too early was not made, and is to be made later.
    """
    steps = (*view.path, *view.tried)
    made = [
        call_of(step, at)
        for at, step in enumerate(steps)
        if step.move.function != FINISH and not step.early
    ]
    also = enumerate(turns.planned(view.tried), len(steps))
    return (*made, *(call_of_move(move, at) for at, move in also))


def _needlessly_failed(view: View) -> Iterator[str]:
    """Yield the functions of which a call failed whose error names an optional argument of it."""
    optional = {
        function.name: {
            key for key, one in function.parameters.items() if one in function.api.optional
        }
        for function in view.functions
    }
    for step in (*view.path, *view.tried):
        given = _json(step.move.arguments) if not step.ok else None
        if isinstance(given, dict):
            suspects = optional.get(step.move.function, set()) & given.keys()
            if any(key in step.observation for key in suspects):
                yield step.move.function


def _rows(steps: Sequence[Step]) -> str:
    return "\n".join(_row(step) for step in steps)


def _row(step: Step) -> str:
    row = {
        "name": step.move.function,
        "arguments": step.move.arguments,
        "result": clean(step.observation, 300),
    }
    return json.dumps(row, ensure_ascii=False)


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
