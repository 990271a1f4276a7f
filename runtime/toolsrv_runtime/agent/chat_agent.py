"""The agent of every chat model: what the model is asked at a node, and what its reply comes to.

Until a call has succeeded a reply is a call, or ``no_function_fits``: small models, left free,
write their calls as prose. The matcher says which words of the task no call has served yet
(``coverage``): while there are any, a reply is a call for them. Only then may it be text, which is
the answer; it is checked against the results and sent back once. Models differ by their
``ChatModel``, never by their agent.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from toolsrv_catalogs.text import clean
from toolsrv_runtime.agent import coverage, prompts
from toolsrv_runtime.agent.conversation import Turn, call_of
from toolsrv_runtime.agent.fitting import Fitting
from toolsrv_runtime.agent.answering import AnswerWriter
from toolsrv_runtime.agent.tools import NO_FUNCTION_FITS, no_function_fits
from toolsrv_runtime.calls.compress import Budget
from toolsrv_runtime.contract.chat import ChatModel, ChatReply, ChatRequest, Expected, ToolCall
from toolsrv_runtime.formats import told
from toolsrv_runtime.formats.asides import says_something
from toolsrv_runtime.formats.base import (
    FINISH,
    Interrupted,
    Judgement,
    Meter,
    Move,
    Prior,
    Step,
    View,
)
from toolsrv_runtime.profile import Profile
from toolsrv_runtime.stop import Stop

AIDS = ("coverage", "match", "exclude", "check")
"""What helps a small model, each of which may be switched off for a measurement."""

_STRIDE = 1_000_003  # replies of one solve never reach it, so seeds do not overlap
_GIVE_UP = "give_up_and_restart"
_GIVE_ANSWER = "give_answer"


class ChatAgent:
    """See the module. ``prior`` is the matcher, None where there is none."""

    name = "chat"

    def __init__(
        self,
        model: ChatModel,
        profile: Profile,
        *,
        prior: Prior | None = None,
        aids: frozenset[str] = frozenset(AIDS),
    ) -> None:
        self._model = model
        self._profile = profile
        self._prior = prior
        self._aids = aids
        self._fitting = Fitting(model)

    def observation(self, response: Any, error: str, schema: Any = None) -> str:
        """Return the response as JSON text, capped; an error as an ``error`` object."""
        limit = self._profile.observation_limit
        return told.observation(response, error, Budget(limit), schema)

    def propose(self, view: View, *, max_tokens: int, stop: Stop, meter: Meter) -> Move | str:
        """Return the next move; see ``Format.propose``."""
        made = [s for s in view.path if s.move.function != FINISH]
        wanted = self._needs(view)
        left = coverage.open_needs(wanted, view.path)
        if any(step.ok for step in made) and not left:
            return self._call_or_answer(view, wanted, max_tokens, stop, meter)
        return self._call(view, wanted, left, max_tokens, stop, meter)

    def _needs(self, view: View) -> tuple[coverage.Need, ...]:
        if self._prior is None or "coverage" not in self._aids:
            return ()
        return coverage.needs(view.task, view.functions, self._prior)

    def _call(
        self,
        view: View,
        wanted: Sequence[coverage.Need],
        left: Sequence[coverage.Need],
        max_tokens: int,
        stop: Stop,
        meter: Meter,
    ) -> Move | str:
        names = tuple(function.name for function in view.functions)
        if "match" in self._aids and left:
            serving = {name for need in left for name in need.functions}
            names = tuple(name for name in names if name in serving)
        started = any(step.ok for step in view.path)
        note = ""
        if started:
            note = prompts.OPEN_PART.format(parts="; ".join(f'"{one.text}"' for one in left))
        if view.tried:
            note = f"{_diversity(view.tried)}\n{note}".strip()
        escape = () if started else (no_function_fits(),)
        for extra in (escape, ()) if escape and left else (escape,):
            expected = Expected(
                (*names, *(one.name for one in extra)), text=False, excluded=self._excluded(view)
            )
            turn = Turn(view, expected, self._now(), note=note, max_tokens=self._room(max_tokens))
            reply = self._ask(turn, stop, meter)
            move = self._read(reply)
            if isinstance(move, str) or move.function != FINISH:
                return move
        return move

    def _call_or_answer(
        self,
        view: View,
        wanted: Sequence[coverage.Need],
        max_tokens: int,
        stop: Stop,
        meter: Meter,
    ) -> Move | str:
        """Return a further call where the model wants one, else the answer."""
        names = tuple(function.name for function in view.functions)
        note = _diversity(view.tried) if view.tried else ""
        expected = Expected(names, excluded=self._excluded(view))
        turn = Turn(view, expected, self._now(), note=note, max_tokens=self._room(max_tokens))
        reply = self._ask(turn, stop, meter)
        if reply.calls:
            return self._read(reply)
        return self._answer(view, wanted, stop, meter)

    def _answer(
        self, view: View, wanted: Sequence[coverage.Need], stop: Stop, meter: Meter
    ) -> Move | str:
        def ask(request: ChatRequest) -> ChatReply:
            return self._fitting.reply(
                view.task, [], [], lambda shape, most: request, stop, meter
            )[1]

        writer = AnswerWriter(ask, self._now(), check="check" in self._aids)
        text = writer.write(view, wanted)
        if not says_something(text):
            return "the model's answer says nothing"
        arguments = {"return_type": _GIVE_ANSWER, "final_answer": text}
        return Move(
            None,
            FINISH,
            json.dumps(arguments, ensure_ascii=False),
            missing=coverage.unserved(wanted, view.path),
        )

    def finish(self, view: View, *, max_tokens: int, stop: Stop, meter: Meter) -> Move | None:
        """Return an answer with what the path holds; see ``Format.finish``."""
        move = self._answer(view, self._needs(view), stop, meter)
        return None if isinstance(move, str) else move

    def prefers(self, view: View, first: Step, second: Step, *, stop: Stop, meter: Meter) -> bool:
        """Whether ``first`` is the better next step; see ``Format.prefers``."""
        note = prompts.COMPARE.format(first=_row(first), second=_row(second))
        schema = {"type": "string", "enum": ["A", "B"]}
        turn = Turn(view, Expected(schema=schema), self._now(), note=note, max_tokens=16)
        return _json(self._ask(turn, stop, meter).text) != "B"

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
        schema = {
            "type": "object",
            "properties": {
                "reason": {"type": "string", "minLength": 1, "maxLength": 200},
                "accept": {"type": "boolean"},
            },
            "required": ["reason", "accept"],
            "additionalProperties": False,
        }
        note = prompts.JUDGE.format(answer=answer, untraced=words)
        turn = Turn(
            view,
            Expected(schema=schema),
            self._now(),
            note=note,
            max_tokens=min(self._room(max_tokens), 256),
        )
        said = _json(self._ask(turn, stop, meter).text)
        if not isinstance(said, dict) or not isinstance(said.get("accept"), bool):
            return None
        return Judgement(said["accept"], clean(str(said.get("reason", "")), 400).strip())

    def _read(self, reply: ChatReply) -> Move | str:
        """Return the move that a reply comes to, or why it comes to none."""
        if not reply.calls:
            return f"the model's reply cannot be used: {reply.problem or 'it calls no function'}"
        call = reply.calls[0]
        if call.name == NO_FUNCTION_FITS:
            reason = clean(str(call.arguments.get("reason", "")), 300).strip()
            arguments = {"return_type": _GIVE_UP, "reason": reason}
            return Move(None, FINISH, json.dumps(arguments, ensure_ascii=False))
        thought = clean(reply.text, 2000).strip() or None
        return Move(thought, call.name, json.dumps(call.arguments, ensure_ascii=False))

    def _ask(self, turn: Turn, stop: Stop, meter: Meter) -> ChatReply:
        profile, seed = self._profile, turn.view.seed * _STRIDE + meter.replies

        def write(shape: Any, most: int | None) -> Any:
            request = turn.request(shape)
            return replace(
                request,
                max_tokens=max(1, min(request.max_tokens, most or request.max_tokens)),
                temperature=profile.temperature,
                top_p=profile.top_p,
                seed=seed,
            )

        _, reply = self._fitting.reply(
            turn.view.task, turn.documents(), turn.observations(), write, stop, meter
        )
        return reply

    def _excluded(self, view: View) -> tuple[ToolCall, ...]:
        if "exclude" not in self._aids:
            return ()
        steps = (*view.path, *view.tried)
        return tuple(
            call_of(step, at) for at, step in enumerate(steps) if step.move.function != FINISH
        )

    def _room(self, max_tokens: int) -> int:
        """Return how many tokens a reply may have: never more than half of the context."""
        most = min(max_tokens, self._profile.max_reply_tokens)
        context = self._model.context
        return max(1, most if context is None else min(most, context // 2))

    def _now(self) -> datetime:
        return datetime.now().astimezone()


def _diversity(steps: Sequence[Step]) -> str:
    return prompts.TRIED.format(calls="\n".join(_row(step) for step in steps))


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


__all__ = ["AIDS", "ChatAgent", "Interrupted"]
