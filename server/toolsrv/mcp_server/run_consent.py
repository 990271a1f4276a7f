"""Questions in the middle of a solve: consent to a call, and values that a call requires.

They are asked of the person whose client follows the run. Only runs that a client with elicitation began may ask. A run waits with its question until a
request that follows it puts it to such a client, and no longer than ``PATIENCE_S``; a question that
nobody answers leaves its call as one that needs consent, or the run as one that needs input. All
belongs to one event loop.
"""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from mcp.server.mcpserver import Context
from mcp.shared.exceptions import MCPError
from mcp.types import ElicitRequest, ElicitRequestFormParams, ElicitResult

from toolsrv.consent import question
from toolsrv.mcp_server.consent import answered, elicited, form
from toolsrv.plain import one_line, plain
from toolsrv_runtime.calls.result import Ask, Consent
from toolsrv_runtime.contract.questions import AskValue, Question
from toolsrv_runtime.stop import Stop

Ctx = Context[None, Any]
PATIENCE_S = 600.0


@dataclass(eq=False, slots=True)
class ConsentQuestion:
    """One call that a run asks about; see ``Question``."""

    text: str
    said: asyncio.Future[bool | None]
    token: str = field(default_factory=lambda: secrets.token_urlsafe(16))
    held: bool = False
    key: str = "consent"
    saying: str = "waiting for your consent"

    @property
    def open(self) -> bool:
        """Whether nobody has answered yet."""
        return not self.said.done()

    def request(self) -> ElicitRequest:
        """Return the form for the client."""
        return ElicitRequest(params=form(self.text))

    async def put(self, ctx: Ctx) -> None:
        """Show the form and take the answer."""
        self._settle(await elicited(ctx, self.text))

    def answer(self, response: object) -> None:
        """Take the form as the client brings it back."""
        self._settle(answered(response))

    def _settle(self, said: bool | None) -> None:
        if self.open:
            self.said.set_result(said)


@dataclass(eq=False, slots=True)
class ValueQuestion:
    """One value that a run asks for; see ``Question``."""

    wanted: Question
    text: str
    said: asyncio.Future[Any]
    token: str = field(default_factory=lambda: secrets.token_urlsafe(16))
    held: bool = False
    key: str = "value"
    saying: str = "waiting for your answer"

    @property
    def open(self) -> bool:
        """Whether nobody has answered yet."""
        return not self.said.done()

    def request(self) -> ElicitRequest:
        """Return the form for the client."""
        return ElicitRequest(params=self._form())

    async def put(self, ctx: Ctx) -> None:
        """Show the form and take the answer; an error of the client is none."""
        form = self._form()
        try:
            given = await ctx.session.elicit_form(
                form.message, form.requested_schema, ctx.request_id
            )
        except (MCPError, ValueError):
            self._settle(None)
        else:
            self.answer(given)

    def answer(self, response: object) -> None:
        """Take the form as the client brings it back."""
        accepted = isinstance(response, ElicitResult) and response.action == "accept"
        content = response.content if accepted and isinstance(response, ElicitResult) else None
        self._settle((content or {}).get(self.wanted.parameter))

    def _form(self) -> ElicitRequestFormParams:
        return ElicitRequestFormParams(message=self.text, requested_schema=value_form(self.wanted))

    def _settle(self, said: Any) -> None:
        if self.open:
            self.said.set_result(said)


def value_form(wanted: Question) -> dict[str, Any]:
    """Return the form's schema: elicitation takes flat objects of primitive values."""
    declared = wanted.json_schema
    kind = declared.get("type")
    shown: dict[str, Any] = {"type": kind if kind in _PRIMITIVE else "string"}
    shown |= {"title": one_line(wanted.parameter, 80)}
    if wanted.description:
        shown["description"] = one_line(wanted.description, 300)
    values = declared.get("enum")
    if values and all(isinstance(one, str) for one in values):
        shown["enum"] = list(values)
    return {
        "type": "object",
        "properties": {wanted.parameter: shown},
        "required": [wanted.parameter],
    }


_PRIMITIVE = ("string", "number", "integer", "boolean")


class Desk:
    """Where one run puts its questions, one at a time."""

    def __init__(self, task: str) -> None:
        self._task = task
        self.question: ConsentQuestion | ValueQuestion | None = None

    async def ask_value(self, wanted: Question) -> Any:
        """Wait for the value that a person gives; None where nobody gives one in time."""
        said: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        text = plain(f"{wanted.text}\n{wanted.api_id}, for the task: {one_line(self._task, 200)}")
        return await self._answered(ValueQuestion(wanted, text, said))

    async def ask(self, wanted: Consent) -> bool | None:
        """Wait for the answer of a person; None where nobody answers in time."""
        said: asyncio.Future[bool | None] = asyncio.get_running_loop().create_future()
        found: bool | None = await self._answered(
            ConsentQuestion(question(wanted, self._task), said)
        )
        return found

    async def _answered(self, asked: ConsentQuestion | ValueQuestion) -> Any:
        self.question = asked
        try:
            async with asyncio.timeout(PATIENCE_S):
                return await asked.said
        except TimeoutError:
            return None
        finally:
            self.question = None


class RunConsents:
    """The desks of the runs that may ask, found by the run's ``Stop``."""

    def __init__(self) -> None:
        self._desks: WeakKeyDictionary[Stop, Desk] = WeakKeyDictionary()

    def open(self, stop: Stop, task: str) -> None:
        """Let a run ask."""
        self._desks[stop] = Desk(task)

    def ask(self, stop: Stop) -> Ask | None:
        """Return how a run asks, None where it may not."""
        desk = self._desks.get(stop)
        return None if desk is None else desk.ask

    def ask_value(self, stop: Stop) -> AskValue | None:
        """Return how a run asks for a value, None where it may not."""
        desk = self._desks.get(stop)
        return None if desk is None else desk.ask_value

    def question(self, stop: Stop) -> ConsentQuestion | ValueQuestion | None:
        """Return what a run waits to be answered."""
        desk = self._desks.get(stop)
        return None if desk is None else desk.question
