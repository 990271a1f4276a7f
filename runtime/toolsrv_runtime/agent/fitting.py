"""Fit a request into a model's context without shortening the task.

Shrinks in this order: responses are condensed, the oldest first and the latest last; function
documents are shortened, from the least relevant up; then they are left out, all but the first. Each
reduction is noted. A local model measures the prompt; the limit of a remote model is learnt from
its refusals and kept for the next task. Writes no messages.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from toolsrv_runtime.calls.compress import count_text
from toolsrv_runtime.contract.format import Interrupted, UsageMeter
from toolsrv_runtime.contract.models import (
    AssistantMessage,
    ChatModel,
    ChatReply,
    ChatRequest,
    ToolMessage,
)
from toolsrv_runtime.errors import ContextError, RefusedLengthError, TaskTooLongError
from toolsrv_runtime.stop import Stop

CONDENSED_SIZES = (400, 120, 40)
"""Characters of a condensed response, in the order in which they are tried."""

_ITEMS = 2
_TEXT = 60
_DEPTH = 4


@dataclass(frozen=True, slots=True)
class PromptShape:
    """The parts of a prompt that may shrink.

    ``documents`` stand in the order of relevance, best first, None where one is left out;
    ``observations`` from the oldest to the latest.
    """

    documents: tuple[str | None, ...]
    observations: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FittedPrompt:
    """A shape that fits, how many tokens its prompt has, and what was done to the parts."""

    shape: PromptShape
    tokens: int
    notes: tuple[str, ...] = ()


def fit_prompt(
    documents: Sequence[Sequence[str]],
    observations: Sequence[str],
    measure: Callable[[PromptShape], int],
    limit: int,
    *,
    task_tokens: int,
) -> FittedPrompt:
    """Return the least shortened shape whose prompt has at most ``limit`` tokens.

    ``documents`` are the forms of each function's document, from the whole to the shortest;
    ``measure`` counts the tokens of the whole prompt, O(documents + observations) times.

    Raises:
        TaskTooLongError: not even the shortest prompt fits, and nothing was called yet.
        ContextError: the same, with calls and replies that take the room.
    """
    whole = PromptShape(tuple(forms[0] for forms in documents), tuple(observations))
    tokens = measure(whole)
    if tokens <= limit:
        return FittedPrompt(whole, tokens)
    for shape in _smaller(whole, documents):
        tokens = measure(shape)
        if tokens <= limit:
            return FittedPrompt(shape, tokens, tuple(_notes(whole, shape)))
    if observations:
        raise ContextError(
            f"the conversation has {count_text(tokens, 'token')} at its shortest, and {limit} fit the model",
            hint="choose a smaller depth, or a model with a longer context",
        )
    raise TaskTooLongError(
        f"the task has {count_text(task_tokens, 'token')}; with the instructions and one function the "
        f"prompt has {tokens}, and {limit} fit the model",
        hint="shorten the task, split it, or choose a model with a longer context",
    )


def shortest_shape(documents: Sequence[Sequence[str]], observations: Sequence[str]) -> PromptShape:
    """Return the last shape that ``fit_prompt`` tries."""
    shape = PromptShape(tuple(forms[0] for forms in documents), tuple(observations))
    for smaller in _smaller(shape, documents):
        shape = smaller
    return shape


def condense(observation: str, size: int) -> str:
    """Return a response in at most about ``size`` characters.

    As paper A.2 has it, first by structure, then by a cut: of a list its first items stay, texts
    are shortened, what lies deep goes; what is still too long, or no JSON, is cut.
    """
    if len(observation) <= size:
        return observation
    try:
        short = json.dumps(_pruned(json.loads(observation), 0), ensure_ascii=False)
    except (ValueError, RecursionError):
        short = observation
    return short if len(short) <= size else f"{short[:size]}..."


def _smaller(whole: PromptShape, documents: Sequence[Sequence[str]]) -> Iterator[PromptShape]:
    """Yield ever smaller shapes."""
    shape = whole
    for size in CONDENSED_SIZES[:-1]:
        for at in range(len(shape.observations) - 1):
            shape = _condense(shape, at, size)
            yield shape
    for form in range(1, max(map(len, documents), default=0)):
        for at in reversed(range(len(documents))):
            if form < len(documents[at]):
                shape = _set(shape, at, documents[at][form])
                yield shape
    for size in CONDENSED_SIZES:
        for at in range(len(shape.observations)):
            shape = _condense(shape, at, size)
            yield shape
    for at in range(len(documents) - 1, 0, -1):
        shape = _set(shape, at, None)
        yield shape


def _condense(shape: PromptShape, at: int, size: int) -> PromptShape:
    seen = shape.observations
    return replace(shape, observations=(*seen[:at], condense(seen[at], size), *seen[at + 1 :]))


def _set(shape: PromptShape, at: int, document: str | None) -> PromptShape:
    kept = shape.documents
    return replace(shape, documents=(*kept[:at], document, *kept[at + 1 :]))


def _notes(whole: PromptShape, shape: PromptShape) -> Iterator[str]:
    pairs = list(zip(whole.documents, shape.documents, strict=True))
    shortened = sum(new is not None and new != old for old, new in pairs)
    dropped = sum(new is None for _, new in pairs)
    condensed_ = sum(
        new != old for old, new in zip(whole.observations, shape.observations, strict=True)
    )
    for count, what, done in (
        (condensed_, "response", "condensed"),
        (shortened, "function document", "shortened"),
        (dropped, "function", "left out, the least relevant"),
    ):
        if count:
            were = "was" if count == 1 else "were"
            yield f"for lack of room {count_text(count, what)} {were} {done}"


def _pruned(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= _TEXT else f"{value[:_TEXT]}..."
    if not isinstance(value, dict | list):
        return value
    if depth >= _DEPTH:
        return "..."
    if isinstance(value, list):
        return [_pruned(item, depth + 1) for item in value[:_ITEMS]]
    return {key: _pruned(item, depth + 1) for key, item in value.items()}


_PER_TOKEN = 4
"""Characters of a token at most, about: what this lets through too long is refused once more."""

_LEAST_REPLY = 128
"""Tokens below which a reply is no use."""


@dataclass(frozen=True, slots=True)
class LengthLimits:
    """What is tried next: at most so many ``characters`` and tokens of ``reply``; None: any."""

    characters: int | None = None
    reply: int | None = None

    def after(self, request: ChatRequest, least: int, context: int) -> LengthLimits | None:
        """Return what to try once ``request`` was refused; None where nothing is left to try.

        ``least`` is how many characters it has at its shortest, ``context`` for how many tokens
        the server has room (0: not told).
        """
        size, reply = request_characters(request), request.max_tokens
        if context and reply > context // 2:
            reply = max(1, context // 2)
        elif size <= least and reply > _LEAST_REPLY:
            reply = max(_LEAST_REPLY, reply // 2)
        elif size <= least:
            return None
        room = size * 3 // 4
        if context:
            room = min(room, (context - reply) * _PER_TOKEN)
        return LengthLimits(max(room, least), reply)


class RequestFitter:
    """Requests of one model, shortened until they fit; what a task taught is kept for its next one."""

    def __init__(self, model: ChatModel) -> None:
        self._model = model
        self._learnt = ("", LengthLimits())  # of one task: another's text has other tokens

    def reply(
        self,
        task: str,
        documents: list[list[str]],
        observations: list[str],
        write: Callable[[PromptShape, int | None], ChatRequest],
        stop: Stop,
        meter: UsageMeter,
    ) -> tuple[ChatRequest, ChatReply]:
        """Return a reply and what it replies to; ``write`` makes a request of a shape.

        Raises:
            ContextError: not even the shortest request is taken.
            Interrupted: ``stop`` was set.
        """
        meter.replies += 1
        if self._measures(write(shortest_shape(documents, observations), None)):
            request = self._measured(task, documents, observations, write, meter)
            return request, self._ask(request, stop, meter)
        known, lengths = self._learnt
        lengths = lengths if known == task else LengthLimits()
        least = request_characters(write(shortest_shape(documents, observations), None))
        while True:
            limit = sys.maxsize if lengths.characters is None else max(lengths.characters, least)
            reply = lengths.reply
            fitted = fit_prompt(
                documents,
                observations,
                lambda shape: request_characters(write(shape, reply)),  # noqa: B023 - called at once
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
        write: Callable[[PromptShape, int | None], ChatRequest],
        meter: UsageMeter,
    ) -> ChatRequest:
        context = self._model.context or sys.maxsize
        room = write(shortest_shape(documents, observations), None).max_tokens
        fitted = fit_prompt(
            documents,
            observations,
            lambda shape: self._model.count(write(shape, None)) or 0,
            context - min(room, context // 2),
            task_tokens=len(task) // _PER_TOKEN,
        )
        meter.note(fitted.notes)
        return write(fitted.shape, None)

    def _ask(self, request: ChatRequest, stop: Stop, meter: UsageMeter) -> ChatReply:
        answer = self._model.reply(request, stop=stop)
        if answer is None:
            raise Interrupted
        meter.prompt_tokens += answer.prompt_tokens
        meter.evaluated += answer.prompt_tokens - answer.cached
        meter.generated += answer.generated
        meter.forced += answer.forced
        return answer


def request_characters(request: ChatRequest) -> int:
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
    size, why = request_characters(request), error.message
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
