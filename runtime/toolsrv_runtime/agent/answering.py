"""Writing the answer, with all results in view, checked for each of them.

Small models that go on in the conversation of their calls write further calls, or tell the last
result alone. Asked in a conversation of its own as a question about data, with two examples before
it, they tell what was asked for. One that was trained on whole conversations answers in place. An
answer that states what no result says is written again with numbers and names that can only be
copied; a result of which it tells nothing new (``news``) is asked for by itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from toolsrv_catalogs.text import clean
from toolsrv_runtime.agent import prompts
from toolsrv_runtime.agent.conversation import Turn
from toolsrv_runtime.agent.coverage import Need, serves, unserved
from toolsrv_runtime.agent.news import news, tells
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
from toolsrv_runtime.formats.base import FINISH, Interrupted, Step, View
from toolsrv_runtime.formats.fit import Shape
from toolsrv_runtime.formats.goes_on import MOST_CALLS
from toolsrv_runtime.templates.dialects import read_dialects

ANSWER_TOKENS = 320
"""Room for an answer; people read no longer one from a small model."""

SENTENCE_TOKENS = 120

LOOP_WORDS, LOOP_TIMES = 12, 5
"""A run of up to so many words that is said so many times more is no sentence any longer."""

_ANYTHING = Expected()
_WORD = re.compile(r"[^\W\d_]+")
_SENTENCE = re.compile(r"(?<=[.!?])\s+")


@dataclass(frozen=True, slots=True)
class DataQuestion:
    """A question about data, each piece of which may be condensed until the request fits."""

    text: str
    data: tuple[str, ...]
    now: datetime
    max_tokens: int
    held: Expected = _ANYTHING

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
        return ChatRequest(tuple(messages), (), self.held, max_tokens=self.max_tokens, now=self.now)


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
        if not results and not view.continues:
            return ""
        draft = draft if self._in_place else ""
        whole = draft or self._told(view, needs, results)
        if not self._check:
            return whole
        try:
            return self._checked(view, needs, results, whole)
        except Interrupted:  # the budget is over: better than nothing
            return _joined([whole])

    def _told(
        self,
        view: View,
        needs: Sequence[Need],
        results: Sequence[Result],
        held: Expected = _ANYTHING,
    ) -> str:
        """Return what the model says of the whole task; of each result where a part is not served."""
        if not results or not unserved(needs, [one.step for one in results]):
            return self._question(view, view.task, results, ANSWER_TOKENS, held)
        parts = (self._question(view, one.text, [one], SENTENCE_TOKENS, held) for one in results)
        return _joined(list(parts))

    def _checked(
        self, view: View, needs: Sequence[Need], results: Sequence[Result], whole: str
    ) -> str:
        """Return an answer with what is wrong with it written again."""
        if wrong := self.untraced(view, whole):
            known = (view.task, *_data_before(view), *(one.data for one in results))
            held = Expected(copied=known)
            copied = self._told(view, needs, results, held)
            if says_something(copied) and len(self.untraced(view, copied)) < len(wrong):
                whole = copied
        return self._with_all_told(view, results, _joined([whole]))

    def _with_all_told(self, view: View, results: Sequence[Result], answer: str) -> str:
        """Return an answer that states something new of each result."""
        steps = [one.step for one in results]
        fresh = [
            news(one, view.task, [*steps[:at], *steps[at + 1 :]]) for at, one in enumerate(steps)
        ]

        def told(text: str, at: int) -> bool:
            return tells(text, steps[at], fresh[at], view.task)

        left_out = [at for at in range(len(results)) if not told(answer, at)]
        if not left_out:
            return answer
        kept = [
            one
            for one in _SENTENCE.split(answer)
            if any(told(one, at) for at in range(len(results)))
        ]
        added = []
        for at in left_out:
            held = Expected(one_of=fresh[at])
            added.append(
                self._question(view, results[at].text, [results[at]], SENTENCE_TOKENS, held)
            )
        return _joined([*kept, *added]) or answer

    def untraced(
        self, view: View, answer: str, *, names: bool = True, also: Sequence[str] = ()
    ) -> list[str]:
        """Return what an answer states and neither the task, nor a result, nor today's date does.

        ``also`` are further texts that are known. ``names`` False leaves out names, which are told
        by English capitals.
        """
        steps = (*view.earlier, *view.path) if view.continues else view.path
        found = [(at + 1, step.response) for at, step in enumerate(steps) if step.ok]
        before = (text for pair in view.before for text in pair)
        said = "\n".join((*(answer for _, answer in view.answers), *before, *also))
        known = f"{view.task}\n{said}\n{prompts.today(self._now)}"
        claims = trace(answer, known, found).unsupported
        return list(dict.fromkeys(one.text for one in claims if names or one.kind != "name"))

    def _question(
        self,
        view: View,
        text: str,
        results: Sequence[Result],
        tokens: int,
        held: Expected = _ANYTHING,
    ) -> str:
        """Return what the model says, "" where it is a call: the calls are over."""
        try:
            reply = self._ask(self._asked(view, text, results, tokens, held))
        except GrammarError:  # more values than a grammar holds
            if held is _ANYTHING:
                raise
            reply = self._ask(self._asked(view, text, results, tokens, _ANYTHING))
        said = _whole_sentences(reply)
        return "" if _is_call(said, view) else said

    def _asked(
        self, view: View, text: str, results: Sequence[Result], tokens: int, held: Expected
    ) -> DataQuestion | Turn:
        """Return the request for an answer to ``text``: the whole task or a part of it."""
        if not self._in_place:
            data = (*_data_before(view), *(one.data for one in results))
            return DataQuestion(text, data, self._now, tokens, held)
        path = view.path if text == view.task else tuple(one.step for one in results)
        part = replace(view, task=text, path=path)
        return Turn(part, held, self._now, max_tokens=tokens)


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


def _data_before(view: View) -> tuple[str, ...]:
    """Return what the runs that a task goes on from found and answered, as data."""
    if not view.continues:
        return ()
    said = (
        json.dumps({"asked": task, "answered": answer}, ensure_ascii=False)
        for task, answer in view.before
    )
    found = (Result(view.task, step).data for step in view.earlier[-MOST_CALLS:])
    return (*said, *found)


def _loop_in(text: str) -> int | None:
    """Return where a run of words begins that is said over and over, None for nowhere."""
    found = [(one[0].casefold(), one.start()) for one in _WORD.finditer(text)]
    words = [word for word, _ in found]
    for length in range(1, LOOP_WORDS + 1):
        same = 0
        for at in range(length, len(words)):
            same = same + 1 if words[at] == words[at - length] else 0
            if same >= length * LOOP_TIMES:
                return found[at - same - length + 1][1]
    return None


def _is_call(text: str, view: View) -> bool:
    """Whether a text is a call of a function in view, in any syntax."""
    tools = tuple(forms(one)[-1] for one in view.functions)
    request = ChatRequest((), tools, Expected(tuple(one.name for one in tools)))
    found = read_dialects(text, request)
    return found is not None and bool(found.calls or found.problem)


def _joined(texts: Sequence[str]) -> str:
    """Return texts as one, each of their sentences once."""
    sentences = (sentence for one in texts for sentence in _SENTENCE.split(one))
    return " ".join(dict.fromkeys(filter(None, sentences)))


def _whole_sentences(reply: ChatReply) -> str:
    """Return what a reply says, without the last sentence where that was cut and others stand before.

    A model that can write only what the results hold, and wants to say something else, repeats one
    word until its room is over: there the text ends with the last sentence before, if any.
    """
    said = clean(reply.text, 20_000).strip()
    if (end := _loop_in(said)) is not None:
        return " ".join(_SENTENCE.split(f"{said[:end]}\0")[:-1])
    if reply.finish != "length":
        return said
    return " ".join(_SENTENCE.split(said)[:-1]) or said
