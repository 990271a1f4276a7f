"""The agent of every chat model: what the model is asked at a node, and what its reply comes to.

Until a call has succeeded a reply is a call, or ``no_function_fits``: small models, left free,
write their calls as prose. The matcher says which words of the task no call has served yet
(``coverage``): while there are any, a reply is a call for them. Only then may the model say that it
is done, and the answer is written in a conversation of its own (``answering``). Models differ by
their ``ChatModel``, never by their agent.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from toolsrv_catalogs.text import clean
from toolsrv_registry.errors import UsageError
from toolsrv_runtime.agent import coverage, itself, plan, prompts
from toolsrv_runtime.agent.answering import AnswerWriter, results_of
from toolsrv_runtime.agent.conversation import Turn, call_of
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
from toolsrv_runtime.formats import told
from toolsrv_runtime.formats.asides import says_something
from toolsrv_runtime.formats.base import FINISH, Judgement, Meter, Move, Prior, Step, View
from toolsrv_runtime.formats.fit import Shape
from toolsrv_runtime.profile import Profile
from toolsrv_runtime.stop import Stop

AIDS = frozenset({"coverage", "match", "exclude", "check", "decline"})
"""What helps a model, each of which can be left out.

``coverage``: needs that the matcher sees in the task are called for before an answer is taken;
``match``: for a need only functions are offered that the matcher finds to serve it; ``exclude``: an
identical call on a path is not made again; ``check``: an answer is checked against the results and
written again once; ``decline``: a task for which the matcher sees no function is given up without
asking the model.
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

    def needs(self, view: View) -> tuple[coverage.Need, ...]:
        """Return what the matcher sees that the task asks for."""
        if self._prior is None or "coverage" not in self._aids:
            return ()
        return coverage.needs(view.task, view.functions, self._prior)

    def declines(self, view: View) -> bool:
        """Whether the matcher sees nothing on offer that serves any of the task."""
        if self._prior is None or "decline" not in self._aids or view.path:
            return False
        return coverage.is_unserved(view.task, view.functions, self._prior)

    def asks_itself(self, view: View) -> bool:
        """Whether the task is talk with the assistant."""
        prior = None if view.whole else self._prior
        return prior is not None and itself.asks_itself(view.task, view.functions, prior)

    def helps(self, aid: str) -> bool:
        """Whether an aid is in use."""
        return aid in self._aids

    def send(
        self, task: str, turn: Turn | ChatRequest, seed: int, stop: Stop, meter: Meter
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
        self._view = view
        self._max_tokens = max_tokens
        self._stop = stop
        self._meter = meter
        self._now = datetime.now().astimezone()
        self._needs = agent.needs(view)

    def move(self) -> Move | str:
        """Return the next move."""
        view, agent = self._view, self._agent
        started = any(step.ok for step in view.path)
        left = coverage.open_needs(self._needs, view.path)
        if not started and not view.path:
            if agent.asks_itself(view):
                return self._reply_itself()
            if agent.declines(view):
                return _give_up("the matcher sees no function that serves any part of the task")
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
        missing = coverage.unserved(self._needs, self._view.path)
        return replace(
            _answer(text), missing=missing if self._needs else self._view.open_parts or ()
        )

    def reply(self, expected: Expected, note: str = "", *, rejected: str = "") -> ChatReply:
        """Return the model's reply to the conversation so far."""
        return self._send(expected, note, rejected)[1]

    def _call(self, left: Sequence[coverage.Need], *, started: bool) -> Move | str:
        """Return a call; before the first success ``no_function_fits`` is the other choice."""
        names = [function.name for function in self._view.functions]
        if left and self._agent.helps("match"):
            serving = {name for need in left for name in need.functions}
            names = [name for name in names if name in serving]
        parts = "; ".join(f'"{need.text}"' for need in left)
        note = prompts.OPEN_PART.format(parts=parts) if started else ""
        may_refuse = not started and not left
        if may_refuse:
            names.append(NO_FUNCTION_FITS)
        return self._called(Expected(tuple(names), text=False), note)

    def _call_or_answer(self) -> Move | str:
        """Return a further call where the model wants one, else the answer."""
        self._view = self._agent.switches.before_choice(self._view, self._write)
        if self._view.open_parts == () or not self._view.functions:
            return self.answer()
        names = tuple(function.name for function in self._view.functions)
        _, reply = self._send(Expected(names), "")
        if reply.calls and not reply.problem:
            return self._read(reply)
        return self.answer()

    def _called(self, expected: Expected, note: str) -> Move | str:
        """Return the call that is made, at the second try if need be, or what is wrong with it."""
        self._view, expected = self._agent.switches.before_call(self._view, expected, self._write)
        request, reply = self._send(expected, note)
        if problem := _fault(reply):
            names = ", ".join(request.expected.names)
            note = prompts.CORRECTION.format(problem=problem, names=names)
            _, reply = self._send(expected, note, reply.raw or "(nothing)")
            problem = _fault(reply)
        if problem:
            return f"the model's reply cannot be used, nor a second one: {problem}"
        return self._read(reply)

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
        if not says_something(text) or writer.untraced(self._view, text):
            return _give_up("no function serves the task, and what the model said is not known")
        return replace(_answer(text), without_calls=True)

    def _send(
        self, expected: Expected, note: str, rejected: str = ""
    ) -> tuple[ChatRequest, ChatReply]:
        view = self._view
        if view.tried and not rejected:
            note = f"{prompts.TRIED.format(calls=_rows(view.tried))}\n{note}".strip()
        if self._agent.helps("exclude") and expected.names:
            expected = replace(expected, excluded=_made(view))
        turn = Turn(view, expected, self._now, note, rejected, max_tokens=self._max_tokens)
        return self._agent.send(view.task, turn, view.seed, self._stop, self._meter)

    def _write(self, request: ChatRequest) -> ChatReply:
        request = replace(request, max_tokens=min(request.max_tokens, self._max_tokens))
        view = self._view
        return self._agent.send(view.task, request, view.seed, self._stop, self._meter)[1]

    def _read(self, reply: ChatReply) -> Move:
        call = reply.calls[0]
        if call.name == NO_FUNCTION_FITS:
            return _give_up(clean(str(call.arguments.get("reason", "")), 300).strip())
        thought = clean(reply.text, 2000).strip() or None
        about = next(
            (need.text for need in self._needs if call.name in need.functions), self._view.task
        )
        arguments = json.dumps(call.arguments, ensure_ascii=False)
        return Move(thought, call.name, arguments, about=about if self._needs else "")


def _fault(reply: ChatReply) -> str:
    return reply.problem or ("" if reply.calls else "it calls no function")


def _answer(text: str) -> Move:
    arguments = {"return_type": _GIVE_ANSWER, "final_answer": text}
    return Move(None, FINISH, json.dumps(arguments, ensure_ascii=False))


def _give_up(reason: str) -> Move:
    arguments = {"return_type": _GIVE_UP, "reason": reason}
    return Move(None, FINISH, json.dumps(arguments, ensure_ascii=False))


def _made(view: View) -> tuple[ToolCall, ...]:
    """Return the calls of a path and those tried below its end."""
    steps = (*view.path, *view.tried)
    return tuple(call_of(step, at) for at, step in enumerate(steps) if step.move.function != FINISH)


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
    except ValueError:
        return None
