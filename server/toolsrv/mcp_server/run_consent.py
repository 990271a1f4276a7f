"""Consent to a call in the middle of a solve: asked of the person whose client follows the run.

Only runs that a client with elicitation began may ask. A run waits with its question until a
request that follows it puts it to such a client, and no longer than ``PATIENCE_S``; a question that
nobody answers leaves its call as one that needs consent. All belongs to one event loop.
"""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from mcp.server.mcpserver import Context
from mcp.types import ElicitRequest

from toolsrv.consent import question
from toolsrv.mcp_server.consent import answered, elicited, form
from toolsrv_runtime.calls.result import Ask, Consent
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


class Desk:
    """Where one run puts its questions, one at a time."""

    def __init__(self, task: str) -> None:
        self._task = task
        self.question: ConsentQuestion | None = None

    async def ask(self, wanted: Consent) -> bool | None:
        """Wait for the answer of a person; None where nobody answers in time."""
        said: asyncio.Future[bool | None] = asyncio.get_running_loop().create_future()
        self.question = ConsentQuestion(question(wanted, self._task), said)
        try:
            async with asyncio.timeout(PATIENCE_S):
                return await said
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

    def question(self, stop: Stop) -> ConsentQuestion | None:
        """Return what a run waits to be answered."""
        desk = self._desks.get(stop)
        return None if desk is None else desk.question
