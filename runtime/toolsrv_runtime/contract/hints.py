"""The TaskHints port: what a path that knows tasks better than the retriever may add.

A solve asks for hints when it searches for APIs, and at its end for the parts of the task that are
open. The default adds nothing: the task itself is searched for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

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
        """Return further queries of the first search: the best hit of each is offered first."""

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
