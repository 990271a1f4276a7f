"""Writing the answer, with all results in view, checked for each of them.

Small models that go on in the conversation of their calls write further calls, or tell the last
result alone. Asked in a conversation of its own as a question about data, with two examples before
it, they tell what was asked for. One that was trained on whole conversations answers in place. An answer that states what no result says is written again with numbers and names that can only
be copied; a result that it leaves out is asked for by itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from toolsrv_catalogs.text import clean
from toolsrv_runtime.agent import prompts
from toolsrv_runtime.agent.conversation import Turn
from toolsrv_runtime.agent.coverage import Need, serves
from toolsrv_runtime.agent.tools import forms
from toolsrv_runtime.contract.chat import (
    AssistantMessage,
    ChatReply,
    ChatRequest,
    Expected,
    Message,
    SystemMessage,
    UserMessage,
)
from toolsrv_runtime.errors import GrammarError
from toolsrv_runtime.evidence import trace
from toolsrv_runtime.formats.asides import says_something
from toolsrv_runtime.formats.base import FINISH, Step, View
from toolsrv_runtime.formats.fit import Shape
from toolsrv_runtime.templates.dialects import read_dialects

ANSWER_TOKENS = 320
"""Room for an answer; people read no longer one from a small model."""

SENTENCE_TOKENS = 120


@dataclass(frozen=True, slots=True)
class DataQuestion:
    """A question about data, each piece of which may be condensed until the request fits."""

    text: str
    data: tuple[str, ...]
    now: datetime
    max_tokens: int
    copied: tuple[str, ...] = ()

    def documents(self) -> list[list[str]]:
        """Return nothing: no function is shown."""
        return []

    def observations(self) -> list[str]:
        """Return the data."""
        return list(self.data)

    def request(self, shape: Shape) -> ChatRequest:
        """Return the conversation with what ``shape`` leaves of the data."""
        messages: list[Message] = [
            SystemMessage(prompts.ANSWER_SYSTEM.format(today=prompts.today(self.now)))
        ]
        for question, answer in prompts.ANSWER_EXAMPLES:
            messages += [UserMessage(question), AssistantMessage(answer)]
        data = "".join(f"\nData: {one}" for one in shape.observations)
        messages.append(UserMessage(f"Question: {self.text}{data}"))
        expected = Expected(copied=self.copied)
        return ChatRequest(tuple(messages), (), expected, max_tokens=self.max_tokens, now=self.now)


Ask = Callable[[DataQuestion | Turn], ChatReply]


@dataclass(frozen=True, slots=True)
class Result:
    """What one successful call found, for the question ``text``."""

    text: str
    step: Step

    @property
    def data(self) -> str:
        """Arguments and response as one line of JSON."""
        arguments = self.step.move.parsed
        try:
            response = json.loads(self.step.observation)
        except (ValueError, RecursionError):
            response = self.step.observation
        if isinstance(response, dict):
            return json.dumps({**arguments, **response}, ensure_ascii=False)
        return json.dumps({**arguments, "result": response}, ensure_ascii=False)


class AnswerWriter:
    """Writes the answer of one path; ``ask`` puts a request to the model.

    ``check``: what is wrong with an answer is written again. ``in_place``: the model answers in the
    conversation of the calls, a part of the task in one with its call alone.
    """

    def __init__(
        self, ask: Ask, now: datetime, *, check: bool = True, in_place: bool = False
    ) -> None:
        self._ask = ask
        self._now = now
        self._check = check
        self._in_place = in_place

    def write(self, view: View, needs: Sequence[Need], draft: str = "") -> str:
        """Return the answer to a task from the successful calls of a path, "" where none says it.

        ``draft`` is what the model said in place already.
        """
        results = list(results_of(view, needs))
        if not results:
            return ""
        draft = draft if self._in_place else ""
        whole = draft or self._question(view, view.task, results, ANSWER_TOKENS)
        if not self._check:
            return whole
        known = (view.task, prompts.today(self._now), *(one.data for one in results))
        if wrong := self.untraced(view, whole):
            copied = self._question(view, view.task, results, ANSWER_TOKENS, known)
            if says_something(copied) and len(self.untraced(view, copied)) < len(wrong):
                whole = copied
        if len(results) == 1:
            return whole
        left_out = [one for one in results if not tells(whole, one.step)]
        more = [self._question(view, one.text, [one], SENTENCE_TOKENS, known) for one in left_out]
        return _joined([whole, *more])

    def untraced(
        self, view: View, answer: str, *, names: bool = True, also: Sequence[str] = ()
    ) -> list[str]:
        """Return what an answer states and neither the task, nor a result, nor today's date does.

        ``also`` are further texts that are known. ``names`` False leaves out names, which are told
        by English capitals.
        """
        found = [(at + 1, step.response) for at, step in enumerate(view.path) if step.ok]
        said = "\n".join((*(answer for _, answer in view.answers), *also))
        known = f"{view.task}\n{said}\n{prompts.today(self._now)}"
        claims = trace(answer, known, found).unsupported
        return list(dict.fromkeys(one.text for one in claims if names or one.kind != "name"))

    def _question(
        self,
        view: View,
        text: str,
        results: Sequence[Result],
        tokens: int,
        copied: tuple[str, ...] = (),
    ) -> str:
        """Return what the model says, "" where it is a call: the calls are over."""
        question = self._asked(view, text, results, tokens, copied)
        try:
            reply = self._ask(question)
        except GrammarError:  # more values to copy than a grammar holds
            if not copied:
                raise
            reply = self._ask(self._asked(view, text, results, tokens, ()))
        said = clean(reply.text, 20_000).strip()
        return "" if _is_call(said, view) else said

    def _asked(
        self,
        view: View,
        text: str,
        results: Sequence[Result],
        tokens: int,
        copied: tuple[str, ...],
    ) -> DataQuestion | Turn:
        """Return the request for an answer to ``text``: the whole task or a part of it."""
        if not self._in_place:
            data = tuple(one.data for one in results)
            return DataQuestion(text, data, self._now, tokens, copied)
        path = view.path if text == view.task else tuple(one.step for one in results)
        part = replace(view, task=text, path=path)
        return Turn(part, Expected(copied=copied), self._now, max_tokens=tokens)


def tells(answer: str, step: Step) -> bool:
    """Whether an answer states a value of a response that was not among its call's arguments.

    A response that only says yes or no, or repeats its arguments, is taken to be told; one that says
    yes or no beside other values, if the answer names what was asked about.
    """
    given = {_plain(one) for one in _leaves(step.move.parsed)}
    fresh = [one for one in _leaves(step.response) if _plain(one) not in given]
    values = [one for one in fresh if not isinstance(one, bool) and one is not None]
    if not values:
        return True
    said = _plain(answer)
    if any(_plain(one) in said for one in values):
        return True
    judged = any(isinstance(one, bool) for one in fresh)
    if judged and any(one and one in said for one in given):
        return True
    traced = trace(answer, "", [(1, values)])
    return bool(traced.supported)


def results_of(view: View, needs: Sequence[Need]) -> Iterator[Result]:
    """Yield what the successful calls of a path found, each with the words that ask for it."""
    left = list(needs)
    for step in view.path:
        if not step.ok or step.move.function == FINISH or step.repeats:
            continue
        need = next((one for one in left if serves(step, one, needs)), None)
        if need is not None:
            left.remove(need)
        yield Result(need.text if need is not None else view.task, step)


def _is_call(text: str, view: View) -> bool:
    """Whether a text is a call of a function in view, in any syntax."""
    tools = tuple(forms(one)[-1] for one in view.functions)
    request = ChatRequest((), tools, Expected(tuple(one.name for one in tools)))
    found = read_dialects(text, request)
    return found is not None and bool(found.calls or found.problem)


def _joined(sentences: Sequence[str]) -> str:
    return " ".join(dict.fromkeys(one for one in sentences if one))


def _leaves(value: Any, depth: int = 0) -> Iterator[Any]:
    if isinstance(value, dict) and depth < 12:
        for one in value.values():
            yield from _leaves(one, depth + 1)
    elif isinstance(value, list) and depth < 12:
        for one in value[:200]:
            yield from _leaves(one, depth + 1)
    else:
        yield value


def _plain(value: Any) -> str:
    return str(value).casefold().strip()
