"""Conversations with somebody else's chat model: an OpenAI-compatible server, an MCP client.

The functions go as tools (or in words, as the model offers), Finish among them, and a path as its
calls and responses. A reply that calls nothing, an unknown function or with no JSON object is sent
back once with what is wrong with it; the second such reply is a failed step. Asks a ``ChatModel``,
no engine, so nothing is measured before: what the model refuses for its length is asked again with
less.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from toolsrv_catalogs.text import clean
from toolsrv_registry.functions import finish_object
from toolsrv_runtime.calls.compress import Budget
from toolsrv_runtime.contract.chat import ChatModel, ChatReply, ChatRequest, UserMessage
from toolsrv_runtime.errors import (
    ContextError,
    RefusedLengthError,
    TaskTooLongError,
)
from toolsrv_runtime.formats import asides, told
from toolsrv_runtime.formats.asked import Asked
from toolsrv_runtime.formats.base import FINISH, Interrupted, Judgement, Meter, Move, Step, View
from toolsrv_runtime.formats.fit import Shape, fit, shortest
from toolsrv_runtime.formats.lengths import Lengths, characters
from toolsrv_runtime.formats.tools import tool
from toolsrv_runtime.profile import Profile
from toolsrv_runtime.stop import Stop

_CORRECTION = (
    "That reply cannot be used: {problem}. Call exactly one of the functions {names}, with its "
    "arguments as a JSON object. An answer is given by calling Finish."
)
_KINDS = ("give_answer", "give_up_and_restart")
_STRIDE = 1_000_003  # replies of one solve never reach it, so seeds do not overlap
_CHOOSE = "choose"
_JUDGE = "judge"


class RemoteFormat:
    """See the module."""

    def __init__(self, chat: ChatModel, profile: Profile) -> None:
        self._chat = chat
        self._profile = profile
        self._learnt = ("", Lengths())  # of one task: another's text has other tokens

    @property
    def name(self) -> str:
        """The format, and how the servers asked so far hold calls in shape."""
        return f"remote ({syntax})" if (syntax := self._chat.syntax) else "remote"

    def observation(self, response: Any, error: str, schema: Any = None) -> str:
        """Return the response as JSON text, capped; an error as an ``error`` object."""
        return told.observation(response, error, Budget(self._profile.observation_limit), schema)

    def propose(self, view: View, *, max_tokens: int, stop: Stop, meter: Meter) -> Move | str:
        """Return the next move; see ``Format.propose``."""
        return self._call(Asked(view, (finish_object(),), None, max_tokens), stop, meter)

    def finish(self, view: View, *, max_tokens: int, stop: Stop, meter: Meter) -> Move | None:
        """Return an answer with what the path holds; see ``Format.finish``."""
        asked = Asked(view, (_last_word(),), asides.FINISH_NOW, max_tokens)
        move = self._call(asked, stop, meter)
        if isinstance(move, str):
            return None
        said = json.loads(move.arguments)
        missing = said.pop("missing", [])
        return replace(
            move,
            arguments=json.dumps(said, ensure_ascii=False),
            missing=tuple(str(one) for one in missing) if isinstance(missing, list) else (),
        )

    def prefers(self, view: View, first: Step, second: Step, *, stop: Stop, meter: Meter) -> bool:
        """Whether ``first`` is the better next step; see ``Format.prefers``."""
        letter = {"type": "string", "enum": ["A", "B"]}
        choose = tool(_CHOOSE, "Says which step is better.", {"letter": letter}, ["letter"])
        move = self._call(Asked(view, (choose,), asides.which(first, second), 64), stop, meter)
        return isinstance(move, str) or json.loads(move.arguments).get("letter") != "B"

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
        said = {"reason": {"type": "string"}, "accept": {"type": "boolean"}}
        judge = tool(_JUDGE, "Says whether the answer is accepted, and why.", said, list(said))
        tokens = min(max_tokens, asides.JUDGEMENT_TOKENS)
        asked = Asked(view, (judge,), asides.judge(answer, untraced), tokens)
        move = self._call(asked, stop, meter)
        if isinstance(move, str):
            return None
        given = json.loads(move.arguments)
        return Judgement(given["accept"], clean(str(given.get("reason", "")), 400).strip())

    def _call(self, asked: Asked, stop: Stop, meter: Meter) -> Move | str:
        """Return the call that the model makes, at the second try if need be, or what is wrong."""
        request, reply = self._reply(asked, stop, meter)
        problem = fault(reply)
        if problem:
            names = ", ".join(request.expected.names)
            note = _CORRECTION.format(problem=problem, names=names)
            again = replace(asked, rejected=reply.raw or "(nothing)", correction=note)
            request, reply = self._reply(again, stop, meter)
            problem = fault(reply)
        if problem:
            return f"the model's reply cannot be used, nor a second one: {problem}"
        call = reply.calls[0]
        arguments = json.dumps(call.arguments, ensure_ascii=False)
        return Move(clean(reply.text, 2000).strip(), call.name, arguments)

    def _reply(self, asked: Asked, stop: Stop, meter: Meter) -> tuple[ChatRequest, ChatReply]:
        """Return a reply and what it replies to, asked for with less until the model takes it.

        Raises:
            ContextError: not even the shortest request is taken.
        """
        meter.replies += 1
        view = asked.view
        documents, observations = asked.documents(), [one.observation for one in asked.steps()]
        known, lengths = self._learnt
        lengths = lengths if known == view.task else Lengths()

        def write(shape: Shape) -> ChatRequest:
            most = min(self._profile.max_reply_tokens, lengths.reply or asked.max_tokens)
            return replace(
                asked.request(shape),
                max_tokens=max(1, min(asked.max_tokens, most)),
                temperature=self._profile.temperature,
                top_p=self._profile.top_p,
                seed=view.seed * _STRIDE + meter.replies,
            )

        def measure(shape: Shape) -> int:
            return characters(write(shape))

        least = measure(shortest(documents, observations))
        while True:
            limit = sys.maxsize if lengths.characters is None else max(lengths.characters, least)
            fitted = fit(documents, observations, measure, limit, task_tokens=0)
            request = write(fitted.shape)
            try:
                reply = self._chat.reply(request, stop=stop)
            except RefusedLengthError as error:
                shorter = lengths.after(request, least, error.context)
                if shorter is None:
                    raise _too_long(error, request, called=bool(observations)) from error
                lengths = shorter
                continue
            if reply is None:
                raise Interrupted
            self._learnt = view.task, lengths
            meter.note(fitted.notes)
            meter.prompt_tokens += reply.prompt_tokens
            meter.evaluated += reply.prompt_tokens - reply.cached
            meter.generated += reply.generated
            return request, reply


def _too_long(error: RefusedLengthError, request: ChatRequest, *, called: bool) -> ContextError:
    """Return the error that names what is left; ``error`` names how much has room, where told."""
    size, why = characters(request), error.message
    task = next(one.text for one in request.messages if isinstance(one, UserMessage))
    if called:
        return ContextError(
            f"the conversation has {size} characters at its shortest, and {why}", hint=error.hint
        )
    return TaskTooLongError(
        f"the task has {len(task)} characters; with the instructions and one function the "
        f"request has {size}, and {why}",
        hint="shorten the task, split it, or start the server with a larger context",
    )


def fault(reply: ChatReply) -> str:
    """Return what is wrong with a reply as a call, "" for nothing.

    The values of an API's arguments are judged where the call is made.
    """
    if reply.problem:
        return reply.problem
    function, arguments = reply.calls[0].name, reply.calls[0].arguments
    if function == _CHOOSE and arguments.get("letter") not in ("A", "B"):
        return "the letter is neither A nor B"
    if function == _JUDGE and not isinstance(arguments.get("accept"), bool):
        return "accept is neither true nor false"
    if function != FINISH:
        return ""
    if arguments.get("return_type") not in _KINDS:
        return f"the return_type of Finish is none of {', '.join(_KINDS)}"
    final = arguments.get("final_answer")
    if arguments["return_type"] == _KINDS[0] and not asides.says_something(final):
        return "Finish with give_answer has no final_answer"
    return ""


def _last_word() -> dict[str, Any]:
    """Return Finish as it stands at the end of a budget: an answer, and what it leaves open."""
    properties = {
        "return_type": {"type": "string", "enum": [_KINDS[0]]},
        "final_answer": {"type": "string", "description": "All that the responses say."},
        "missing": {"type": "array", "items": {"type": "string"}},
    }
    return tool(FINISH, "Ends the task.", properties, list(properties))
