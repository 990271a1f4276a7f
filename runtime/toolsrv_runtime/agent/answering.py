"""Write the final answer from all results, and check it against each of them.

The answer is a question about data in a conversation of its own, with two examples before it: small
models that continue the conversation of their calls write further calls, or report the last result
alone. A model that was trained on whole conversations answers in place. An answer that states what
no result says is rewritten with numbers and names that can only be copied. A result whose new
values the answer does not state is asked about on its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from toolsrv_catalogs.text import clean
from toolsrv_runtime.agent import prompts
from toolsrv_runtime.agent.conversation import StepRequest
from toolsrv_runtime.agent.coverage import Subtask, serves_subtask, uncovered_texts
from toolsrv_runtime.agent.fitting import PromptShape
from toolsrv_runtime.agent.prompts import MOST_EARLIER_CALLS, has_content, tool_forms
from toolsrv_runtime.contract.format import FINISH, History, Interrupted, Step
from toolsrv_runtime.contract.models import (
    AssistantMessage,
    ChatReply,
    ChatRequest,
    Message,
    ReplyConstraints,
    SystemMessage,
    UserMessage,
)
from toolsrv_runtime.errors import GrammarError
from toolsrv_runtime.evidence import trace
from toolsrv_runtime.evidence.claims import fold
from toolsrv_runtime.templates.dialects import read_dialects
from toolsrv_runtime.values.facts import response_text

MOST_VALUES = 64
"""Values of a result that are looked at, the first ones."""
VALUE_LIMIT = 200
"""Characters of one."""
_TEXT_LIMIT = 20_000
_FEW = 3
"""Items of a list up to which a text may state their number by chance."""
_DEPTH = 12
_ITEMS = 200
_WORD = re.compile(r"\w+")


def new_values(step: Step, task: str, others: Sequence[Step]) -> tuple[str, ...]:
    """Return the values of a response that neither the task nor its call nor another response says.

    Truth values are none: there are many ways to say them.
    """
    call = step.move.parsed
    also = (
        {_plain(leaf) for leaf in _leaves(one.response)}
        - {_plain(leaf) for leaf in _leaves(one.move.parsed)}
        for one in others
    )
    held = {_plain(one) for one in _leaves(call)}.union(*also)
    said = fold(task)
    found = dict.fromkeys(
        str(one)
        for one in _leaves(step.response)
        if one is not None and not isinstance(one, bool) and _plain(one) not in held
    )
    fresh = (
        one for one in list(found)[:MOST_VALUES] if _WORD.search(one) and len(one) <= VALUE_LIMIT
    )
    return tuple(one for one in fresh if not _occurs(one, said) and not _follows(one, task, call))


def _follows(value: str, task: str, call: Any) -> bool:
    """Whether a value is a date, time or number of the task or of its call in other letters."""
    traced = trace(value, task, [(1, call)])
    known = traced.supported
    return bool(known) and not traced.unsupported and all(one.kind != "name" for one in known)


def states_any(answer: str, step: Step, fresh: Sequence[str], task: str) -> bool:
    """Whether an answer states one of the values ``fresh`` that a call has brought.

    A response without such values is taken to be told; one that says yes or no beside them, if the
    answer names what was asked about.
    """
    if not fresh:
        return True
    said = fold(answer)
    if any(_occurs(one, said) for one in fresh):
        return True
    given = [str(one) for one in _leaves(step.move.parsed)]
    judged = any(isinstance(one, bool) for one in _leaves(step.response))
    if judged and any(_occurs(one, said) for one in given):
        return True
    if any(
        _occurs(str(size), said)
        for size in response_text(step.response, _TEXT_LIMIT)[1]
        if size > _FEW
    ):
        return True
    known = f"{task}\n{json.dumps(step.move.parsed)}"
    traced = trace(answer, known, [(1, "\n".join(fresh))])
    return any(one.nodes and not one.in_task for one in traced.supported)


def _leaves(value: Any, depth: int = 0) -> Iterator[Any]:
    if isinstance(value, dict) and depth < _DEPTH:
        for one in value.values():
            yield from _leaves(one, depth + 1)
    elif isinstance(value, list) and depth < _DEPTH:
        for one in value[:_ITEMS]:
            yield from _leaves(one, depth + 1)
    else:
        yield value


def _plain(value: Any) -> str:
    return str(value).casefold().strip()


def _occurs(value: str, folded: str) -> bool:
    """Whether a value stands in a folded text, whole."""
    found = fold(value).strip()
    return bool(found) and re.search(rf"(?<!\w){re.escape(found)}(?!\w)", folded) is not None


ANSWER_TOKENS = 320
"""Room for an answer; people read no longer one from a small model."""

SENTENCE_TOKENS = 120

LOOP_WORDS, LOOP_TIMES = 12, 5
"""A run of up to so many words that is said so many times more is no sentence any longer."""

_NO_CONSTRAINTS = ReplyConstraints()
_LETTERS = re.compile(r"[^\W\d_]+")
_SENTENCE = re.compile(r"(?<=[.!?])\s+")


@dataclass(frozen=True, slots=True)
class DataQuestion:
    """A question about data, each piece of which may be condensed until the request fits."""

    text: str
    data: tuple[str, ...]
    now: datetime
    max_tokens: int
    held: ReplyConstraints = _NO_CONSTRAINTS

    def documents(self) -> list[list[str]]:
        """Return nothing: no function is shown."""
        return []

    def observations(self) -> list[str]:
        """Return the data."""
        return list(self.data)

    def request(self, shape: PromptShape) -> ChatRequest:
        """Return the conversation with what ``shape`` leaves of the data."""
        messages: list[Message] = [
            SystemMessage(prompts.ANSWER_SYSTEM.format(today=prompts.format_date(self.now)))
        ]
        for question, answer in prompts.ANSWER_EXAMPLES:
            messages += [UserMessage(question), AssistantMessage(answer)]
        data = "".join(f"\nData: {one}" for one in shape.observations)
        messages.append(UserMessage(f"Question: {self.text}{data}"))
        return ChatRequest(tuple(messages), (), self.held, max_tokens=self.max_tokens, now=self.now)


Ask = Callable[[DataQuestion | StepRequest], ChatReply]


@dataclass(frozen=True, slots=True)
class CallFinding:
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

    def write(self, view: History, needs: Sequence[Subtask], draft: str = "") -> str:
        """Return the answer to a task from the successful calls of a path, "" where none says it.

        ``draft`` is what the model said in place already.
        """
        results = list(call_findings(view, needs))
        if not results and not view.continues:
            return ""
        draft = draft if self._in_place else ""
        whole = draft or self._draft(view, needs, results)
        if not self._check:
            return whole
        try:
            return self._rewrite_untraced(view, needs, results, whole)
        except Interrupted:  # the budget is over: better than nothing
            return _join_sentences([whole])

    def _draft(
        self,
        view: History,
        needs: Sequence[Subtask],
        results: Sequence[CallFinding],
        held: ReplyConstraints = _NO_CONSTRAINTS,
    ) -> str:
        """Return what the model says of the whole task; of each result where a part is not served."""
        if not results or not uncovered_texts(needs, [one.step for one in results]):
            return self._ask_model(view, view.task, results, ANSWER_TOKENS, held)
        parts = (self._ask_model(view, one.text, [one], SENTENCE_TOKENS, held) for one in results)
        return _join_sentences(list(parts))

    def _rewrite_untraced(
        self, view: History, needs: Sequence[Subtask], results: Sequence[CallFinding], whole: str
    ) -> str:
        """Return an answer with what is wrong with it written again."""
        if wrong := self.untraced(view, whole):
            known = (view.task, *_data_before(view), *(one.data for one in results))
            held = ReplyConstraints(copied=known)
            copied = self._draft(view, needs, results, held)
            if has_content(copied) and len(self.untraced(view, copied)) < len(wrong):
                whole = copied
        return self._add_unstated_results(view, results, _join_sentences([whole]))

    def _add_unstated_results(
        self, view: History, results: Sequence[CallFinding], answer: str
    ) -> str:
        """Return an answer that states something new of each result."""
        steps = [one.step for one in results]
        fresh = [
            new_values(one, view.task, [*steps[:at], *steps[at + 1 :]])
            for at, one in enumerate(steps)
        ]

        def states(text: str, at: int) -> bool:
            return states_any(text, steps[at], fresh[at], view.task)

        left_out = [at for at in range(len(results)) if not states(answer, at)]
        if not left_out:
            return answer
        kept = [
            one
            for one in _SENTENCE.split(answer)
            if any(states(one, at) for at in range(len(results)))
        ]
        added = []
        for at in left_out:
            held = ReplyConstraints(one_of=fresh[at])
            added.append(
                self._ask_model(view, results[at].text, [results[at]], SENTENCE_TOKENS, held)
            )
        return _join_sentences([*kept, *added]) or answer

    def untraced(
        self, view: History, answer: str, *, names: bool = True, also: Sequence[str] = ()
    ) -> list[str]:
        """Return what an answer states and neither the task, nor a result, nor today's date does.

        ``also`` are further texts that are known. ``names`` False leaves out names, which are told
        by English capitals.
        """
        steps = (*view.earlier, *view.path) if view.continues else view.path
        found = [(at + 1, step.response) for at, step in enumerate(steps) if step.ok]
        before = (text for pair in view.before for text in pair)
        said = "\n".join((*(answer for _, answer in view.answers), *before, *also))
        known = f"{view.task}\n{said}\n{prompts.format_date(self._now)}"
        claims = trace(answer, known, found).unsupported
        return list(dict.fromkeys(one.text for one in claims if names or one.kind != "name"))

    def _ask_model(
        self,
        view: History,
        text: str,
        results: Sequence[CallFinding],
        tokens: int,
        held: ReplyConstraints = _NO_CONSTRAINTS,
    ) -> str:
        """Return what the model says, "" where it is a call: the calls are over."""
        try:
            reply = self._ask(self._data_question(view, text, results, tokens, held))
        except GrammarError:  # more values than a grammar holds
            if held is _NO_CONSTRAINTS:
                raise
            reply = self._ask(self._data_question(view, text, results, tokens, _NO_CONSTRAINTS))
        said = _whole_sentences(reply)
        return "" if _is_call(said, view) else said

    def _data_question(
        self,
        view: History,
        text: str,
        results: Sequence[CallFinding],
        tokens: int,
        held: ReplyConstraints,
    ) -> DataQuestion | StepRequest:
        """Return the request for an answer to ``text``: the whole task or a part of it."""
        if not self._in_place:
            data = (*_data_before(view), *(one.data for one in results))
            return DataQuestion(text, data, self._now, tokens, held)
        path = view.path if text == view.task else tuple(one.step for one in results)
        part = replace(view, task=text, path=path)
        return StepRequest(part, held, self._now, max_tokens=tokens)


def call_findings(view: History, needs: Sequence[Subtask]) -> Iterator[CallFinding]:
    """Yield what the successful calls of a path found, each with the words that ask for it."""
    left = list(needs)
    for step in view.path:
        if not step.ok or step.move.function == FINISH or step.repeats:
            continue
        need = next((one for one in left if serves_subtask(step, one, needs)), None)
        if need is not None:
            left.remove(need)
        yield CallFinding(need.text if need is not None else view.task, step)


def _data_before(view: History) -> tuple[str, ...]:
    """Return what the runs that a task goes on from found and answered, as data."""
    if not view.continues:
        return ()
    said = (
        json.dumps({"asked": task, "answered": answer}, ensure_ascii=False)
        for task, answer in view.before
    )
    found = (CallFinding(view.task, step).data for step in view.earlier[-MOST_EARLIER_CALLS:])
    return (*said, *found)


def _loop_in(text: str) -> int | None:
    """Return where a run of words begins that is said over and over, None for nowhere."""
    found = [(one[0].casefold(), one.start()) for one in _LETTERS.finditer(text)]
    words = [word for word, _ in found]
    for length in range(1, LOOP_WORDS + 1):
        same = 0
        for at in range(length, len(words)):
            same = same + 1 if words[at] == words[at - length] else 0
            if same >= length * LOOP_TIMES:
                return found[at - same - length + 1][1]
    return None


def _is_call(text: str, view: History) -> bool:
    """Whether a text is a call of an available function, in any syntax."""
    tools = tuple(tool_forms(one)[-1] for one in view.functions)
    request = ChatRequest((), tools, ReplyConstraints(tuple(one.name for one in tools)))
    found = read_dialects(text, request)
    return found is not None and bool(found.calls or found.problem)


def _join_sentences(texts: Sequence[str]) -> str:
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
