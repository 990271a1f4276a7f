"""Conversation format of chat models: the request at a node, and the action of its reply.

Until a call has succeeded a reply is a call, or ``no_function_fits``: small models, left free,
write their calls as prose. The matcher says which words of the task no call has served yet
(``coverage``): while there are any, a reply is a call for them. A model that chooses for itself
(without the aid ``match``) may begin with ``no_function_fits`` all the same. Only when no need is
open may the model say that it is done, and the answer is written (``answering``): in a conversation
of its own, or in place by a model that was trained to. Models differ by their ``ChatModel``, never
by their agent.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from toolsrv_catalogs.text import clean
from toolsrv_registry.errors import UsageError
from toolsrv_runtime.agent import conversation, coverage, guidance, prompts
from toolsrv_runtime.agent.answering import AnswerWriter, DataQuestion, call_findings
from toolsrv_runtime.agent.conversation import StepRequest
from toolsrv_runtime.agent.fitting import PromptShape, RequestFitter
from toolsrv_runtime.agent.guidance import AIDS, Guidance
from toolsrv_runtime.agent.prompts import NO_FUNCTION_FITS, has_content
from toolsrv_runtime.agent.switches import Switches
from toolsrv_runtime.calls.compress import TextBudget
from toolsrv_runtime.contract.format import (
    FINISH,
    Action,
    History,
    Interrupted,
    Judgement,
    Reranker,
    Step,
    UsageMeter,
)
from toolsrv_runtime.contract.hints import Question
from toolsrv_runtime.contract.models import (
    ChatModel,
    ChatReply,
    ChatRequest,
    LocalModel,
    ReplyConstraints,
)
from toolsrv_runtime.errors import GrammarError
from toolsrv_runtime.profiles import Profile
from toolsrv_runtime.search.dfsdt import SUBTASK_CALLS
from toolsrv_runtime.stop import Stop

_STRIDE = 1_000_003  # replies of one solve never reach it, so seeds do not overlap
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
_NOTHING_SERVES = "the matcher sees no function that serves any part of the task"
_ALL_FAILED = "every call that could serve the task failed"
_MOST_TRIED = 8
"""Calls below a node that it is told of, the last ones; an identical one is excluded anyway."""
_PROBE_TOKENS = 16
"""Tokens after which a reply shows whether it calls or speaks; what it says is not used."""


class ChatAgent:
    """See the module. ``prior`` is the matcher, None without one."""

    def __init__(
        self,
        model: ChatModel,
        profile: Profile,
        *,
        prior: Reranker | None = None,
        aids: frozenset[str] = AIDS,
        switches: frozenset[str] = frozenset(),
    ) -> None:
        self._model = model
        self._profile = profile
        self._fitting = RequestFitter(model)
        self.guidance = Guidance(prior, aids)
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
        return ChatAgent(
            self._model, profile, prior=self.guidance.prior, aids=aids, switches=switches
        )

    @property
    def answers_in_place(self) -> bool:
        """Whether the answer is written in the conversation of the calls."""
        return self._profile.answers_in_place

    @property
    def name(self) -> str:
        """The format, and how the model's calls are written."""
        syntax = self._model.syntax
        return f"chat ({syntax})" if syntax else "chat"

    def observation(self, response: Any, error: str, schema: Any = None) -> str:
        """Return the response as JSON text, capped; an error as an ``error`` object."""
        limit, context = self._profile.observation_limit, self._model.context
        if isinstance(self._model, LocalModel) and context is not None:
            room = TextBudget(min(limit, context // 8), self._model.tokens, 8)
        else:
            room = TextBudget(limit)
        return prompts.render_observation(response, error, room, schema)

    def propose(
        self, view: History, *, max_tokens: int, stop: Stop, meter: UsageMeter
    ) -> Action | str:
        """Return the next action; see ``Format.propose``."""
        if (move := view.planned) is not None:
            return replace(move, about=view.task) if view.whole else move
        asking = _Asking(self, view, max_tokens, stop, meter)
        return asking.part_move() if view.whole else asking.move()

    def divide(
        self, view: History, *, max_tokens: int, stop: Stop, meter: UsageMeter
    ) -> tuple[str, ...]:
        """Return the subtasks of the task; see ``Configurable.divide``."""
        if self.guidance.asks_itself(view) or self.guidance.declines(view):
            return ()
        return _Asking(self, view, max_tokens, stop, meter).subtasks()

    def finish(
        self, view: History, *, max_tokens: int, stop: Stop, meter: UsageMeter
    ) -> Action | None:
        """Return an answer with what the path holds; see ``Format.finish``."""
        move = _Asking(self, view, max_tokens, stop, meter).answer()
        return None if isinstance(move, str) else move

    def prefers(
        self, view: History, first: Step, second: Step, *, stop: Stop, meter: UsageMeter
    ) -> bool:
        """Whether ``first`` is the better next step; see ``Format.prefers``."""
        note = prompts.COMPARE.format(first=_row(first), second=_row(second))
        asking = _Asking(self, view, 16, stop, meter)
        return bool(asking.reply(ReplyConstraints(schema=_LETTERS), note).parsed != "B")

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
        """Return what the model says of ``answer``; see ``Verifier.verify``."""
        words = prompts.UNTRACED.format(words=", ".join(untraced)) if untraced else ""
        note = prompts.JUDGE.format(answer=answer, untraced=words)
        asking = _Asking(self, view, min(max_tokens, _JUDGEMENT_TOKENS), stop, meter)
        said = asking.reply(ReplyConstraints(schema=_JUDGEMENT), note).parsed_object
        if not isinstance(said.get("accept"), bool):
            return None
        return Judgement(said["accept"], clean(str(said.get("reason", "")), 400).strip())

    def missing(self, view: History, move: Action, asked: Collection[str]) -> Sequence[Question]:
        """Return the questions that a call leaves open; see ``Inquirer.missing``."""
        today = prompts.format_date(datetime.now().astimezone())
        return self.guidance.missing(view, move, today, asked)

    def doubts(self, view: History, move: Action) -> Mapping[str, str]:
        """Return what the task says instead of some arguments; see ``Inquirer.doubts``."""
        return self.guidance.doubts(view, move, prompts.format_date(datetime.now().astimezone()))

    def suppliers(self, view: History, move: Action) -> Sequence[str]:
        """Return functions whose answers may hold what a call lacks; see ``Inquirer.suppliers``."""
        return self.guidance.suppliers(view, move)

    def calls_per_turn(self) -> int:
        """Return how many calls a reply may hold, 1 where the model's syntax holds no more."""
        one = isinstance(self._model, LocalModel) and not self._model.several
        return 1 if one else self._profile.calls_per_turn

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
        turn: StepRequest | DataQuestion | ChatRequest,
        seed: int,
        stop: Stop,
        meter: UsageMeter,
    ) -> tuple[ChatRequest, ChatReply]:
        """Return a reply and the request that it replies to, shortened until it fits."""
        profile, seed = self._profile, seed * _STRIDE + meter.replies
        context = self._model.context

        def write(shape: PromptShape, most: int | None) -> ChatRequest:
            request = turn if isinstance(turn, ChatRequest) else turn.request(shape)
            known = (profile.max_reply_tokens, most, context and context // 2)
            limits = (request.max_tokens, *(one for one in known if one))
            return replace(
                request,
                max_tokens=max(1, min(limits)),
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
        self, agent: ChatAgent, view: History, max_tokens: int, stop: Stop, meter: UsageMeter
    ) -> None:
        self._agent = agent
        self._guidance = agent.guidance
        self._view = view = agent.guidance.shown(view)
        self._max_tokens = max_tokens
        self._stop = stop
        self._meter = meter
        self._now = datetime.now().astimezone()
        self._needs, self._behind = agent.guidance.needs(view)
        self._most = agent.calls_per_turn()
        self._several = self._most > 1
        if view.whole:  # what a subtask has no room for would be started for nothing
            self._most = max(1, min(self._most, SUBTASK_CALLS - len(view.path)))

    def move(self) -> Action | str:
        """Return the next action."""
        view, agent = self._view, self._agent
        started = any(step.ok for step in view.path)
        left = coverage.open_subtasks(self._needs, view.path, view.failed)
        if view.continues and not started and not left:  # what it goes on from may say all
            return self._call_or_answer()
        if not started and not view.path and agent.guidance.asks_itself(view):
            return self._reply_itself()
        if not started and sum(step.doubted for step in view.failed) >= coverage.MOST_DOUBTED:
            return conversation.give_up_action(_ALL_FAILED)
        if not started and agent.guidance.declines(view):
            return conversation.give_up_action(_ALL_FAILED if view.failed else _NOTHING_SERVES)
        if not left and any(step.unanswered for step in (*view.path, *view.tried)):
            return (
                self.answer()
                if started
                else conversation.give_up_action("a value is missing that nobody gave")
            )
        if started and not left:
            left = self._following()
        if started and not left:
            return self._call_or_answer()
        return self._call(left, started=started)

    def answer(self, draft: str = "") -> Action | str:
        """Return an answer with what the path holds; in a subtask, its end.

        ``draft`` is what the model said in place already.
        """
        if self._view.whole:
            return conversation.end_subtask(self._view)
        writer = AnswerWriter(
            self._write,
            self._now,
            check=self._guidance.helps("check"),
            in_place=self._agent.answers_in_place,
        )
        text = writer.write(self._view, self._needs, draft)
        results = list(call_findings(self._view, self._needs))
        data = [one.data for one in results]
        try:
            text, notes = self._agent.switches.after_draft(
                self._view, data, text, self._write, writer
            )
        except Interrupted:
            notes = ["the answer was not read again: the solve's time is over"]
        self._meter.note(notes)
        if not has_content(text):
            return "the model's answer says nothing"
        if self._needs:
            missing = coverage.uncovered_texts(self._needs, [one.step for one in results])
        elif any(step.unanswered for step in self._view.path):
            missing = (self._view.task,)
        else:
            missing = self._view.open_parts or ()
        return replace(conversation.answer_action(text), missing=missing)

    def reply(self, expected: ReplyConstraints, note: str = "", *, rejected: str = "") -> ChatReply:
        """Return the model's reply to the conversation so far."""
        return self._send(expected, note, rejected)[1]

    def _call(self, left: Sequence[coverage.Subtask], *, started: bool) -> Action | str:
        """Return a call; before the first success ``no_function_fits`` is the other choice."""
        failed = Counter(step.move.function for step in self._view.failed)
        offered = [one for one in self._view.functions if failed[one.name] < coverage.MOST_FAILED]
        early = coverage.last_postponed_function(self._view.path)
        offered = [one for one in offered if one.name != early] or offered
        if not offered:
            return conversation.give_up_action(_ALL_FAILED)
        note, asked, reading = "", "", self._guidance.reading(self._view)
        most = 1 if self._most == 1 or self._guidance.sees_needs(self._view) else self._most
        if left and reading is not None:
            known = {function.name: function for function in offered}
            need = self._next(left, reading)
            wanted = conversation.group_subtasks(
                need, left, lambda one: reading.ready(one, known), self._most
            )
            serving, most = {name for one in wanted for name in one.functions}, len(wanted)
            if self._guidance.helps("match"):
                offered = [one for one in offered if one.name in serving] or offered
            # Which of several needs the first call is for, a free choice of functions leaves open.
            several = len(left) > 1 and not self._guidance.helps("match")
            if started or several:
                note = prompts.open_parts_note([one.text for one in wanted])
            if not self._guidance.helps("match") and len(wanted) == 1 and need in left:
                asked = need.text
            again = any(
                not step.ok and step.move.function in serving
                for step in (*self._view.path, *self._view.tried)
            )
            helps = (
                self._guidance.helps("values") and not again
            )  # the words as they stand may be why
            hints = (reading.hint(one, offered) for one in wanted) if helps else ()
            if hint := "\n".join(filter(None, hints)):
                note = f"{note}\n{prompts.VALUES.format(hint=hint)}".strip()
        names = [function.name for function in offered]
        chooses = not self._view.path and not self._guidance.helps("match")
        if not started and (chooses or not left):
            names.append(NO_FUNCTION_FITS)
        move = self._called(ReplyConstraints(tuple(names), most, text=False), note)
        if isinstance(move, str) or move.function == FINISH or not asked:
            return move
        return replace(move, need=asked)

    def _next(
        self, left: Sequence[coverage.Subtask], reading: coverage.ArgumentReader
    ) -> coverage.Subtask:
        """Return the need to serve next: one whose values are known, or what may tell a value."""
        known = {function.name: function for function in self._view.functions}
        called = {step.move.function for step in self._view.path}
        before = (one for one in self._behind if not called & set(one.functions))
        return next((one for one in (*left, *before) if reading.ready(one, known)), left[0])

    def _following(self) -> tuple[coverage.Subtask, ...]:
        """Return what follows from the results: a function whose argument one of them holds."""
        reading = self._guidance.reading(self._view)
        if reading is None:
            return ()
        called = {step.move.function for step in self._view.path}
        known = {function.name: function for function in self._view.functions}
        return tuple(
            need
            for need in self._behind
            if not called & set(need.functions) and reading.follows(need, known)
        )

    def _call_or_answer(self) -> Action | str:
        """Return a further call where the model wants one, else the answer.

        A call that cannot be made is sent back once: it asks to continue and is no answer, unless
        the matcher sees that every need is served.
        """
        self._view = self._agent.switches.before_choice(self._view, self._write)
        if self._view.open_parts == () or not self._view.functions:
            return self.answer()
        names = tuple(function.name for function in self._view.functions)
        calls = 1 if self._most == 1 or self._guidance.sees_needs(self._view) else self._most
        expected = ReplyConstraints(names, calls)
        in_place = self._agent.answers_in_place
        probe = None if in_place else self._agent.probe_tokens
        request, reply = self._send(expected, "", most=probe)
        if probe and reply.finish == "length" and self._agent.begins_call(reply.raw):
            return self._called(replace(expected, text=False), "")
        if reply.problem:
            _, reply = self._send(expected, _correction(request, reply.problem), reply.raw)
        if reply.problem and not self._guidance.sees_needs(self._view):
            return _unusable(reply.problem, reply)
        if reply.calls and not reply.problem:
            return self._read(reply, calls)
        said = in_place and not reply.problem
        return self.answer(clean(reply.text, 20_000).strip() if said else "")

    def _called(self, expected: ReplyConstraints, note: str) -> Action | str:
        """Return the call that is made, at the second try if need be, or what is wrong with it."""
        self._view, expected = self._agent.switches.before_call(self._view, expected, self._write)
        try:
            request, reply = self._send(expected, note)
        except GrammarError as error:
            if not (self._guidance.helps("exclude") and conversation.made_calls(self._view)):
                raise  # else all calls that the grammar allows are excluded
            return f"no other call is left here: {error.message}"
        if problem := _fault(reply):
            note = _correction(request, problem)
            _, reply = self._send(expected, note, reply.raw or "(nothing)")
            problem = _fault(reply)
        if problem:
            return _unusable(problem, reply)
        return self._read(reply, expected.calls)

    def part_move(self) -> Action | str:
        """Return the next action of a subtask."""
        return conversation.next_subtask_action(
            self._view, self._needs, self.move, conversation.give_up_action
        )

    def subtasks(self) -> tuple[str, ...]:
        """Return the subtasks that the model names."""
        view = self._view
        return conversation.read_subtasks(
            self._write(conversation.subtasks_request(view.task, self._now)), view.task
        )

    def _reply_itself(self) -> Action | str:
        """Return a reply without a call; a give-up where it says what only functions know."""
        request = guidance.small_talk_request(self._view.task, self._view.functions, self._now)
        text = clean(self._write(request).text, 4_000).strip()
        writer = AnswerWriter(self._write, self._now)
        named = guidance.example_names(self._view.functions)
        if not has_content(text) or writer.untraced(self._view, text, also=named):
            return conversation.give_up_action(
                "no function serves the task, and what the model said is not known"
            )
        return replace(conversation.answer_action(text), without_calls=True)

    def _send(
        self, expected: ReplyConstraints, note: str, rejected: str = "", *, most: int | None = None
    ) -> tuple[ChatRequest, ChatReply]:
        view = self._view
        room = min(self._max_tokens, most or self._max_tokens)
        if view.tried and not rejected:
            note = f"{prompts.TRIED.format(calls=_rows(view.tried[-_MOST_TRIED:]))}\n{note}".strip()
        if self._guidance.helps("exclude") and expected.names:
            expected = replace(expected, excluded=conversation.made_calls(view))
        expected = replace(
            expected, required_only=tuple(conversation.functions_failed_by_option(view))
        )
        turn = StepRequest(
            view, expected, self._now, note, rejected, max_tokens=room, several=self._several
        )
        return self._agent.send(view.task, turn, view.seed, self._stop, self._meter)

    def _write(self, request: DataQuestion | StepRequest | ChatRequest) -> ChatReply:
        request = replace(request, max_tokens=min(request.max_tokens, self._max_tokens))
        view = self._view
        return self._agent.send(view.task, request, view.seed, self._stop, self._meter)[1]

    def _read(self, reply: ChatReply, most: int) -> Action:
        move = conversation.first_action(reply.calls, reply.text, self._view.path, most)
        if move.function != NO_FUNCTION_FITS:
            return move
        return conversation.give_up_action(clean(str(move.parsed.get("reason", "")), 300).strip())


def _correction(request: ChatRequest, problem: str) -> str:
    names = ", ".join(request.expected.names)
    return prompts.CORRECTION.format(problem=problem, names=names)


def _unusable(problem: str, reply: ChatReply) -> str:
    cut = f" (after {reply.generated} tokens)" if reply.finish == "length" else ""
    return f"the model's reply cannot be used, nor a second one: {problem}{cut}"


def _fault(reply: ChatReply) -> str:
    return reply.problem or ("" if reply.calls else "it calls no function")


def _rows(steps: Sequence[Step]) -> str:
    return "\n".join(_row(step) for step in steps)


def _row(step: Step) -> str:
    row = {
        "name": step.move.function,
        "arguments": clean(step.move.arguments, 300),
        "result": clean(step.observation, 300),
    }
    return json.dumps(row, ensure_ascii=False)
