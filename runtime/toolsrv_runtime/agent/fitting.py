"""A request made to fit a model: measured where the model can count, else learnt from refusals."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass

from toolsrv_runtime.contract.chat import (
    AssistantMessage,
    ChatModel,
    ChatReply,
    ChatRequest,
    ToolMessage,
)
from toolsrv_runtime.errors import ContextError, RefusedLengthError, TaskTooLongError
from toolsrv_runtime.formats.base import Interrupted, Meter
from toolsrv_runtime.formats.fit import Shape, fit, shortest
from toolsrv_runtime.stop import Stop

_PER_TOKEN = 4
"""Characters of a token at most, about: what this lets through too long is refused once more."""

_LEAST_REPLY = 128
"""Tokens below which a reply is no use."""


@dataclass(frozen=True, slots=True)
class Lengths:
    """What is tried next: at most so many ``characters`` and tokens of ``reply``; None: any."""

    characters: int | None = None
    reply: int | None = None

    def after(self, request: ChatRequest, least: int, context: int) -> Lengths | None:
        """Return what to try once ``request`` was refused; None where nothing is left to try.

        ``least`` is how many characters it has at its shortest, ``context`` for how many tokens
        the server has room (0: not told).
        """
        size, reply = characters(request), request.max_tokens
        if context and reply > context // 2:
            reply = max(1, context // 2)
        elif size <= least and reply > _LEAST_REPLY:
            reply = max(_LEAST_REPLY, reply // 2)
        elif size <= least:
            return None
        room = size * 3 // 4
        if context:
            room = min(room, (context - reply) * _PER_TOKEN)
        return Lengths(max(room, least), reply)


class Fitting:
    """Requests of one model, shortened until they fit; what a task taught is kept for its next one."""

    def __init__(self, model: ChatModel) -> None:
        self._model = model
        self._learnt = ("", Lengths())  # of one task: another's text has other tokens

    def reply(
        self,
        task: str,
        documents: list[list[str]],
        observations: list[str],
        write: Callable[[Shape, int | None], ChatRequest],
        stop: Stop,
        meter: Meter,
    ) -> tuple[ChatRequest, ChatReply]:
        """Return a reply and what it replies to; ``write`` makes a request of a shape.

        Raises:
            ContextError: not even the shortest request is taken.
            Interrupted: ``stop`` was set.
        """
        meter.replies += 1
        if self._measures(write(shortest(documents, observations), None)):
            request = self._measured(task, documents, observations, write, meter)
            return request, self._ask(request, stop, meter)
        known, lengths = self._learnt
        lengths = lengths if known == task else Lengths()
        least = characters(write(shortest(documents, observations), None))
        while True:
            limit = sys.maxsize if lengths.characters is None else max(lengths.characters, least)
            reply = lengths.reply
            fitted = fit(
                documents,
                observations,
                lambda shape: characters(write(shape, reply)),  # noqa: B023 - called at once
                limit,
                task_tokens=0,
            )
            request = write(fitted.shape, lengths.reply)
            try:
                answer = self._ask(request, stop, meter)
            except RefusedLengthError as error:
                shorter = lengths.after(request, least, error.context)
                if shorter is None:
                    raise _too_long(error, request, called=bool(observations)) from error
                lengths = shorter
                continue
            self._learnt = task, lengths
            meter.note(fitted.notes)
            return request, answer

    def _measures(self, request: ChatRequest) -> bool:
        """Whether the model can measure a request; servers that tell their context cannot count."""
        return self._model.context is not None and self._model.count(request) is not None

    def _measured(
        self,
        task: str,
        documents: list[list[str]],
        observations: list[str],
        write: Callable[[Shape, int | None], ChatRequest],
        meter: Meter,
    ) -> ChatRequest:
        context = self._model.context or sys.maxsize
        room = write(shortest(documents, observations), None).max_tokens
        fitted = fit(
            documents,
            observations,
            lambda shape: self._model.count(write(shape, None)) or 0,
            context - min(room, context // 2),
            task_tokens=len(task) // _PER_TOKEN,
        )
        meter.note(fitted.notes)
        return write(fitted.shape, None)

    def _ask(self, request: ChatRequest, stop: Stop, meter: Meter) -> ChatReply:
        answer = self._model.reply(request, stop=stop)
        if answer is None:
            raise Interrupted
        meter.prompt_tokens += answer.prompt_tokens
        meter.evaluated += answer.prompt_tokens - answer.cached
        meter.generated += answer.generated
        meter.forced += answer.forced
        return answer


def characters(request: ChatRequest) -> int:
    """Return how many characters a request says to the model, without what a server adds."""
    total = sum(
        len(one.name) + len(one.description) + len(json.dumps(one.parameters, ensure_ascii=False))
        for one in request.tools
    )
    for message in request.messages:
        total += len(message.text)
        if isinstance(message, AssistantMessage):
            total += sum(
                len(call.name) + len(json.dumps(call.arguments, ensure_ascii=False))
                for call in message.calls
            )
        elif isinstance(message, ToolMessage):
            total += len(message.call.name)
    return total


def _too_long(error: RefusedLengthError, request: ChatRequest, *, called: bool) -> ContextError:
    """Return the error that names what is left; ``error`` names how much has room, where told."""
    size, why = characters(request), error.message
    if called:
        return ContextError(
            f"the conversation has {size} characters at its shortest, and {why}", hint=error.hint
        )
    task = next((one.text for one in request.messages[1:2]), "")
    return TaskTooLongError(
        f"the task has {len(task)} characters; with the instructions and one function the "
        f"request has {size}, and {why}",
        hint="shorten the task, split it, or start the server with a larger context",
    )
