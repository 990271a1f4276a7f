"""Asking the person behind the client for consent to one call (elicitation, in both eras).

Only a client that declares elicitation is asked; for every other the call stays refused. What a
model says is never taken for consent: the answer comes from the client, for exactly the call that
was shown, and counts once.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from typing import Any

from mcp.server.mcpserver import Context
from mcp.types import (
    ClientCapabilities,
    ElicitationCapability,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    FormElicitationCapability,
    InputRequiredResult,
)
from pydantic import BaseModel, Field

from toolsrv.consent import question
from toolsrv.mcp_server.questions import by_returning
from toolsrv_runtime.calls.result import Consent

Ctx = Context[None, Any]
OPEN_QUESTIONS = 100
_KEY = "consent"


class Confirm(BaseModel):
    """The form that a person fills in."""

    ok: bool = Field(description="Make this call.")


class Consents:
    """The questions of one server that wait for their answer."""

    def __init__(self) -> None:
        self._open: OrderedDict[str, Consent] = OrderedDict()

    async def ask(self, ctx: Ctx, wanted: Consent) -> bool | InputRequiredResult:
        """Return whether the person allows the call, or what makes the client ask and call again."""
        if not can_ask(ctx):
            return False
        if not by_returning(ctx):
            answer = await ctx.elicit(question(wanted), Confirm)
            return answer.action == "accept" and answer.data.ok
        asked = self._open.pop(ctx.request_state or "", None)
        if asked is not None and asked.covers(wanted):
            given = (ctx.input_responses or {}).get(_KEY)
            return isinstance(given, ElicitResult) and accepted(given)
        token = secrets.token_urlsafe(16)
        self._open[token] = wanted
        while len(self._open) > OPEN_QUESTIONS:
            self._open.popitem(last=False)
        return InputRequiredResult(
            input_requests={_KEY: ElicitRequest(params=form(question(wanted)))},
            request_state=token,
        )


def form(message: str) -> ElicitRequestFormParams:
    """Return the form as the protocol has it."""
    return ElicitRequestFormParams(message=message, requested_schema=Confirm.model_json_schema())


def accepted(given: ElicitResult) -> bool:
    """Whether a form that came back says yes."""
    return given.action == "accept" and (given.content or {}).get("ok") is True


def can_ask(ctx: Ctx) -> bool:
    """Whether the client declares that it puts forms to a person."""
    form = ElicitationCapability(form=FormElicitationCapability())
    return bool(ctx.session.check_client_capability(ClientCapabilities(elicitation=form)))
