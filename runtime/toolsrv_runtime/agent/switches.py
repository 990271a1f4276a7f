"""The switches of a solve (``options.SWITCHES``) where the agent meets them.

Each switch is a module of its own; here they are put together: what is shown before a call, and who
reads a draft again. ``plan`` changes the search (``search.plan``) and is no hook of a reply.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from toolsrv_runtime.agent import progressive, prompts, self_check
from toolsrv_runtime.agent.answering import AnswerWriter
from toolsrv_runtime.agent.constraints import Conditions
from toolsrv_runtime.agent.tools import NO_FUNCTION_FITS
from toolsrv_runtime.contract.chat import ChatReply, ChatRequest, Expected
from toolsrv_runtime.errors import ContextError
from toolsrv_runtime.formats.asides import says_something
from toolsrv_runtime.formats.base import View

Ask = Callable[[ChatRequest], ChatReply]


class Switches:
    """What the switches of one solve add; keeps the conditions that the model has listed."""

    def __init__(self, on: frozenset[str]) -> None:
        self._on = on
        self._conditions = Conditions()

    def before_call(self, view: View, expected: Expected, ask: Ask) -> tuple[View, Expected]:
        """Return view and expectation of a call that is to be made."""
        view = self._with_conditions(view, ask)
        if "progressive" in self._on:
            offered = [one for one in view.functions if one.name in expected.names]
            shown = progressive.choose(view, offered, ask, needed=not expected.text)
            kept = {NO_FUNCTION_FITS, *(one.name for one in shown)}
            names = tuple(one for one in expected.names if one in kept)
            view, expected = replace(view, functions=shown), replace(expected, names=names)
        return view, expected

    def before_choice(self, view: View, ask: Ask) -> View:
        """Return the view of a choice between a call and the answer; no functions: the answer."""
        if view.open_parts == ():
            return view
        view = self._with_conditions(view, ask)
        if "progressive" not in self._on:
            return view
        return replace(view, functions=progressive.choose(view, view.functions, ask, needed=False))

    def _with_conditions(self, view: View, ask: Ask) -> View:
        """Return a view with the task's conditions, and which of them the last result breaks."""
        if "constraints" not in self._on:
            return view
        whole = view.whole or view.task
        listed, broken = self._conditions.of(whole, ask), frozenset[str]()
        if listed and view.path and view.path[-1].ok:
            broken = frozenset(self._conditions.broken_by_step(whole, view.path[-1], ask))
        rows = (f"{one}{prompts.BROKEN}" if one in broken else one for one in listed)
        return replace(view, conditions=tuple(rows))

    def after_draft(
        self, view: View, data: Sequence[str], draft: str, ask: Ask, writer: AnswerWriter
    ) -> tuple[str, list[str]]:
        """Return a draft as those that read it again leave it, and what is to be noted.

        ``data`` are the results that it is written from.
        """
        if not says_something(draft):
            return draft, []

        def untraced(text: str) -> list[str]:
            return writer.untraced(view, text)

        def untraced_values(text: str) -> list[str]:
            return writer.untraced(view, text, names=False)  # it may be in another language

        try:
            if "self-check" in self._on:
                draft = self_check.checked(view.task, data, draft, ask, untraced)
            if "constraints" not in self._on:
                return draft, []
            broken = self._conditions.broken_by_answer(view.task, draft, ask)
            if broken:
                draft = self_check.redone(view.task, data, draft, broken, ask, untraced_values)
                broken = self._conditions.broken_by_answer(view.task, draft, ask)
        except ContextError as error:
            return draft, [f"the answer was not read again: {error.message}"]
        return draft, [prompts.NOT_KEPT.format(condition=one) for one in broken]
