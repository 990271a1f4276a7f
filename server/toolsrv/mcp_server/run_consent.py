"""Consent to a call in the middle of a solve: asked of the person whose client follows the run.

Only runs that a client with elicitation began may ask. A run waits with its question until a
request that follows it puts it to such a client, and no longer than ``PATIENCE_S``; without a yes
its call stays refused. All belongs to one event loop.
"""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from mcp.server.mcpserver import Context
from mcp.shared.exceptions import MCPError
from mcp.types import ElicitRequest, ElicitResult

from toolsrv.consent import question
from toolsrv.mcp_server.consent import Confirm, accepted, form
from toolsrv_runtime.calls.result import Ask, Consent
from toolsrv_runtime.stop import Stop

Ctx = Context[None, Any]
PATIENCE_S = 600.0


@dataclass(eq=False, slots=True)
class ConsentQuestion:
    """One call that a run asks about; see ``Question``."""

    text: str
    said: asyncio.Future[bool]
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
        """Show the form; whatever is no answer is no yes."""
        try:
            given = await ctx.elicit(self.text, Confirm)
        except (MCPError, ValueError):
            self._settle(yes=False)
        else:
            self._settle(yes=given.action == "accept" and given.data.ok)

    def answer(self, response: object) -> None:
        """Take the form as the client brings it back."""
        self._settle(yes=isinstance(response, ElicitResult) and accepted(response))

    def _settle(self, *, yes: bool) -> None:
        if self.open:
            self.said.set_result(yes)


class Desk:
    """Where one run puts its questions, one at a time."""

    def __init__(self, task: str) -> None:
        self._task = task
        self.question: ConsentQuestion | None = None

    async def ask(self, wanted: Consent) -> bool:
        """Wait for the answer of a person; nobody's answer is a no."""
        said: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self.question = ConsentQuestion(question(wanted, self._task), said)
        try:
            async with asyncio.timeout(PATIENCE_S):
                return await said
        except TimeoutError:
            return False
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

    def question(self, stop: Stop) -> ConsentQuestion | None:
        """Return what a run waits to be answered."""
        desk = self._desks.get(stop)
        return None if desk is None else desk.question
