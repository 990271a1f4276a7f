"""Asking a person for the values that a call requires and that nobody has given."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from toolsrv_registry.api import Api, Parameter
from toolsrv_registry.functions import parameter_keys
from toolsrv_runtime import events
from toolsrv_runtime.calls import arguments as args
from toolsrv_runtime.contract.questions import AskValue, Given, Question
from toolsrv_runtime.errors import ArgumentError
from toolsrv_runtime.evidence.claims import typed
from toolsrv_runtime.formats.base import Inquirer, Move, View
from toolsrv_runtime.search.tree import Node
from toolsrv_runtime.state import State
from toolsrv_runtime.waiting import off_loop, until_stopped

_DIGITS = re.compile(r"[-+]?[\d.]+")
"""A number, or a code of digits that stays as it is written."""

MOST_TRIES = 2
"""Times that one question is put: once more where the answer is no value of the parameter."""


class Elicitation:
    """The questions of one solve: each parameter of an API is asked for once.

    ``ask`` is how a person is asked, None where nobody can be.
    """

    def __init__(
        self, state: State, form: Inquirer, view: Callable[[Node], View], ask: AskValue | None
    ) -> None:
        self._state = state
        self._format = form
        self._view = view
        self._ask = ask
        self._asked: dict[tuple[str, str], Given | None] = {}

    async def values(self, node: Node, api: Api, move: Move) -> dict[str, Any] | None:
        """Return values for the arguments of a call that nobody gave, empty where all were given.

        None where one is missing still: then the call must not be made.

        Raises:
            Interrupted: the user wants to stop.
        """
        view = self._view(node)
        asked = {parameter for one, parameter in self._asked if one == api.id}
        questions = await off_loop(
            lambda: self._format.missing(view, move, asked), self._state.stop
        )
        found: dict[str, Any] = {}
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
                return None
            found[question.parameter] = answer.value
        return found

    async def _answer(
        self, node: Node, question: Question, parameter: Parameter, api: Api
    ) -> Given | None:
        """Ask, once more where the answer cannot be used; None where nobody gives a value."""
        if self._ask is None:
            return None
        put = question
        for _ in range(MOST_TRIES):
            self._tell(node, put, None)
            with self._state.waiting():
                said = await until_stopped(self._ask(put), self._state.outer)
            if said is None or said == "":
                break
            try:
                value = _read(api, parameter, question, said)
            except ArgumentError as error:
                text = f"{question.text} (Not usable: {error.message}.)"
                put = question.model_copy(update={"text": text})
                continue
            self._tell(node, question, True)
            return Given(question=question, value=value)
        self._tell(node, question, False)
        return None

    def _tell(self, node: Node, question: Question, answered: bool | None) -> None:
        state = self._state
        state.tell(
            events.QuestionEvent(
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
        stated = [one for one in typed(said) if one.kind == "number"]
        if {"number", "integer"} & kinds and len(stated) == 1:
            number = float(stated[0].numbers[0][0])
            said = int(number) if number.is_integer() else number
        elif "number" in kinds and not re.search(r"\d", said):
            raise ArgumentError(f"must be a number, not {said[:60]!r}", hint="give a number")
    return args.convert(api, parameter, said)
