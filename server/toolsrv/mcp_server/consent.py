"""Asking the person behind the client for consent to one call (elicitation, in both eras).

Only a client that declares elicitation is asked; for every other the call stays one that needs
consent. Whatever a person answers that is not a yes (decline, cancel, ``ok`` left false) declines
the call. What a model says is never taken for consent: the answer comes from the client, for
exactly the call that was shown, and counts once.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from typing import Any

from mcp.server.mcpserver import Context
from mcp.shared.exceptions import MCPError
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

    ok: bool = Field(description="Make this call.", strict=True)


class Consents:
    """The questions of one server that wait for their answer."""

    def __init__(self) -> None:
        self._open: OrderedDict[str, Consent] = OrderedDict()

    async def ask(self, ctx: Ctx, wanted: Consent) -> bool | InputRequiredResult | None:
        """Return the person's answer, or what makes the client ask and call again.

        None where nobody can be asked or nobody answered.
        """
        if not can_ask(ctx):
            return None
        if not by_returning(ctx):
            return await elicited(ctx, question(wanted))
        asked = self._open.pop(ctx.request_state or "", None)
        if asked is not None and asked.covers(wanted):
            return answered((ctx.input_responses or {}).get(_KEY))
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


async def elicited(ctx: Ctx, text: str) -> bool | None:
    """Put the form to the client in a request; None where the client answers with an error."""
    try:
        given = await ctx.elicit(text, Confirm)
    except MCPError:
        return None
    except ValueError:  # the form came back without a usable ``ok``
        return False
    return given.action == "accept" and given.data.ok


def answered(response: object) -> bool | None:
    """Return what a form that came back says, None for what is no such form."""
    if not isinstance(response, ElicitResult):
        return None
    return response.action == "accept" and (response.content or {}).get("ok") is True


def can_ask(ctx: Ctx) -> bool:
    """Whether the client declares that it puts forms to a person."""
    form = ElicitationCapability(form=FormElicitationCapability())
    return bool(ctx.session.check_client_capability(ClientCapabilities(elicitation=form)))
