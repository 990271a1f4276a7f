"""Ports around a task: ``TaskHints`` for searches and coverage, ``AskValue`` for elicitation.

``TaskHints`` adds queries to the search for APIs and names the uncovered parts of a task; the
default adds nothing. A ``Question`` asks for one argument that nobody has given. Its texts come
from a catalog and are cleaned and capped where it is built. Who asks the person is not known here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict

from toolsrv_registry.functions import Function


class MadeCall(Protocol):
    """A call that was made: which API with which arguments, and whether it succeeded."""

    @property
    def api_id(self) -> str:
        """The called API's id."""

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The arguments by name."""

    @property
    def ok(self) -> bool:
        """Whether the call succeeded."""


class TaskHints(Protocol):
    """Additions to the searches and to the outcome of a solve. May block; never raises."""

    def query(self, task: str) -> str:
        """Return the text that is searched for, for a task or a part of one."""

    def expansion(self, task: str) -> Sequence[str]:
        """Return sentences that are appended to the text of the first search."""

    def extra_queries(self, task: str) -> Sequence[str]:
        """Return further queries of the first search: the best hit of each comes first."""

    def uncovered(
        self, task: str, functions: Sequence[Function], results: Iterable[MadeCall]
    ) -> tuple[str, ...]:
        """Return the parts of a task that no successful call of ``results`` served, in its words.

        ``functions`` are all that were ever available in the solve.
        """


class NoHints:
    """The default: search for the task as it is written, name no open part."""

    def query(self, task: str) -> str:
        """Return the task."""
        return task

    def expansion(self, task: str) -> Sequence[str]:  # noqa: ARG002 - the port
        """Return nothing."""
        return ()

    def extra_queries(self, task: str) -> Sequence[str]:  # noqa: ARG002 - the port
        """Return nothing."""
        return ()

    def uncovered(
        self,
        task: str,  # noqa: ARG002 - the port
        functions: Sequence[Function],  # noqa: ARG002 - the port
        results: Iterable[MadeCall],  # noqa: ARG002 - the port
    ) -> tuple[str, ...]:
        """Return nothing."""
        return ()


NO_HINTS = NoHints()


class Question(BaseModel):
    """One argument that a call requires and that neither the task nor a result holds.

    ``text`` is the question in one sentence; ``function`` and ``parameter`` are the names that the
    model uses, ``description`` the parameter's own. ``json_schema`` is what the value must fulfil.
    """

    model_config = ConfigDict(frozen=True)

    text: str
    api_id: str
    function: str
    parameter: str
    description: str = ""
    json_schema: dict[str, Any] = {}


class GivenValue(BaseModel):
    """A value that a person gave in answer to a question."""

    model_config = ConfigDict(frozen=True)

    question: Question
    value: Any

    @property
    def spelled(self) -> str:
        """The value as text."""
        if isinstance(self.value, str):
            return self.value
        return json.dumps(self.value, ensure_ascii=False)


AskValue = Callable[[Question], Coroutine[Any, Any, Any]]
"""Ask a person for a value: what they gave, text where it was typed, or None where nobody did.

Cancelled when nobody waits for the answer any more.
"""
