"""Elicit from a person the argument values that a call requires and that nobody has given.

Each parameter of an API is asked for once in a solve. A call whose value another function may
return is postponed first. How the person is asked is not known here.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from toolsrv_registry.api import Api, Parameter
from toolsrv_registry.functions import parameter_keys
from toolsrv_runtime import outcome
from toolsrv_runtime.agent.concurrency import run_in_thread, run_until_stopped
from toolsrv_runtime.agent.state import RunState
from toolsrv_runtime.calls import arguments as args
from toolsrv_runtime.calls.result import ResultKind
from toolsrv_runtime.contract.format import Action, History, Inquirer
from toolsrv_runtime.contract.hints import AskValue, GivenValue, Question
from toolsrv_runtime.errors import ArgumentError
from toolsrv_runtime.evidence.claims import typed_spans
from toolsrv_runtime.search.tree import Node

_DIGITS = re.compile(r"[-+]?[\d.]+")
"""A number, or a code of digits that stays as it is written."""

MOST_TRIES = 2
"""Times that one question is put: once more where the answer is no value of the parameter."""


MOST_POSTPONED = 2
"""Times that a call of one API is refused because another one may tell what it lacks."""

_EARLY = (
    "the request does not give {!r}: call another function that tells it first, then this one with "
    "what that says"
)
_DOUBTED = (
    "the call was not made: a value of it stands nowhere, and the request says {}; none may be made "
    "up"
)
_UNANSWERED = (
    "the request gives no value for {!r}, nobody could be asked for it, and none may be made up: the "
    "call was not made (serve the other parts of the request)"
)


class NotGivenError(Exception):
    """A call lacks a value; ``why``: a person would have to give it, or another call, or it is there."""

    def __init__(self, message: str, why: Literal["unanswered", "early", "doubted"]) -> None:
        super().__init__(message)
        self.why = why
        self.kind: ResultKind = "bad_arguments" if why == "doubted" else "needs_input"


class Elicitation:
    """The questions of one solve: each parameter of an API is asked for once.

    ``ask`` is how a person is asked, None where nobody can be.
    """

    def __init__(
        self, state: RunState, form: Inquirer, view: Callable[[Node], History], ask: AskValue | None
    ) -> None:
        self._state = state
        self._format = form
        self._view = view
        self._ask = ask
        self._postponed: Counter[str] = Counter()
        self._asked: dict[tuple[str, str], GivenValue | None] = {}

    async def values(self, node: Node, api: Api, move: Action) -> dict[str, Any]:
        """Return values for the arguments of a call that nobody gave, empty where all were given.

        Raises:
            NotGivenError: one is missing still, and the call must not be made.
            Interrupted: the user wants to stop.
        """
        found = dict[str, Any]()
        await self._refuse_contradicted(node, move)
        questions = await self._questions(node, api, move)
        if any((api.id, one.parameter) not in self._asked for one in questions):
            await self._postpone(api, move, self._view(node), questions[0])
        for question in questions:
            key = (question.api_id, question.parameter)
            if key not in self._asked:
                parameter = parameter_keys(api)[question.parameter]
                given = await self._answer(node, question, parameter, api)
                self._asked[key] = given
                if given is None:
                    self._state.unanswered.append(question)
                else:
                    self._state.given.append(given)
            answer = self._asked[key]
            if answer is None:
                raise NotGivenError(_UNANSWERED.format(question.parameter), "unanswered")
            found[question.parameter] = answer.value
        return found

    async def lacks_value(self, node: Node, api: Api, move: Action) -> bool:
        """Whether a call that is still to come lacks a value, or is doubted, as it is seen at ``node``.

        Raises:
            Interrupted: the user wants to stop.
        """
        return bool(
            await self._doubtful_arguments(node, move) or await self._questions(node, api, move)
        )

    async def _questions(self, node: Node, api: Api, move: Action) -> Sequence[Question]:
        view = self._view(node)
        asked = {parameter for one, parameter in self._asked if one == api.id}
        return await run_in_thread(
            lambda: self._format.missing(view, move, asked), self._state.stop
        )

    async def _refuse_contradicted(self, node: Node, move: Action) -> None:
        """Refuse a call with a value that stands nowhere, where the task says another, or nothing like it.

        Raises:
            NotGivenError: names what the task says.
        """
        if said := await self._doubtful_arguments(node, move):
            instead = ", ".join(
                f"{words!r} for {name!r}" if words else f"nothing for {name!r}"
                for name, words in said.items()
            )
            raise NotGivenError(_DOUBTED.format(instead), "doubted")

    async def _doubtful_arguments(self, node: Node, move: Action) -> Mapping[str, str]:
        view = self._view(node)
        return await run_in_thread(lambda: self._format.doubts(view, move), self._state.stop)

    async def _postpone(self, api: Api, move: Action, view: History, question: Question) -> None:
        """Refuse a call whose value another function may tell, a few times, before a person is asked.

        Raises:
            NotGivenError: another function is to be called first.
        """
        if self._postponed[api.id] >= MOST_POSTPONED:
            return
        names = await run_in_thread(lambda: self._format.suppliers(view, move), self._state.stop)
        if names:
            self._postponed[api.id] += 1
            self._state.postponed.setdefault(api.id, question)
            raise NotGivenError(_EARLY.format(question.parameter), "early")

    async def _answer(
        self, node: Node, question: Question, parameter: Parameter, api: Api
    ) -> GivenValue | None:
        """Ask, once more where the answer cannot be used; None where nobody gives a value."""
        if self._ask is None:
            return None
        put = question
        for _ in range(MOST_TRIES):
            self._report(node, put, None)
            with self._state.waiting():
                said = await run_until_stopped(self._ask(put), self._state.outer)
            if said is None or said == "":
                break
            try:
                value = _read(api, parameter, question, said)
            except ArgumentError as error:
                text = f"{question.text} (Not usable: {error.message}.)"
                put = question.model_copy(update={"text": text})
                continue
            self._report(node, question, True)
            return GivenValue(question=question, value=value)
        self._report(node, question, False)
        return None

    def _report(self, node: Node, question: Question, answered: bool | None) -> None:
        state = self._state
        state.report(
            outcome.QuestionEvent(
                seconds=state.seconds(),
                node=node.id,
                depth=len(node.calls()),
                parameter=question.parameter,
                text=question.text,
                answered=answered,
            )
        )


def _read(api: Api, parameter: Parameter, question: Question, said: Any) -> Any:
    """Return what a person said as a value: "5,000 euros" is 5000 where a number is wanted.

    Raises:
        ArgumentError: it is no value of the parameter.
    """
    if isinstance(said, str) and not _DIGITS.fullmatch(said := said.strip()):
        named = question.json_schema.get("type", ())
        kinds = {named} if isinstance(named, str) else set(named)
        stated = [one for one in typed_spans(said) if one.kind == "number"]
        if {"number", "integer"} & kinds and len(stated) == 1:
            number = float(stated[0].numbers[0][0])
            said = int(number) if number.is_integer() else number
        elif "number" in kinds and not re.search(r"\d", said):
            raise ArgumentError(f"must be a number, not {said[:60]!r}", hint="give a number")
    return args.convert(api, parameter, said)
