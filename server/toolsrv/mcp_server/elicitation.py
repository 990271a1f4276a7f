"""Elicitation of consent to calls and of missing values, in both protocol eras.

Up to 2025-11-25 a question is a request of the server's own; since then the tool returns what it
needs and is called again with the answer, and ``request_state`` says which question an answer is
for. Only a client that declares elicitation is asked. Any answer but a yes declines the call. Model
output never counts as consent. A run waits for at most ``PATIENCE_S``. A call whose question
outlives its request is made once, after one yes; the same call repeated gets its result.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from mcp.server.mcpserver import Context
from mcp.shared.exceptions import MCPError
from mcp.types import (
    ClientCapabilities,
    CreateMessageRequest,
    ElicitationCapability,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    FormElicitationCapability,
    InputRequiredResult,
)
from pydantic import BaseModel, Field

from toolsrv.calls.consent import question
from toolsrv.plain import one_line, plain
from toolsrv_runtime.calls.result import AskConsent, CallResult, Consent
from toolsrv_runtime.contract.hints import AskValue, Question
from toolsrv_runtime.stop import Stop

Ctx = Context[None, Any]

MODERN = "2026-07-28"
"""From this revision on a server asks by returning."""

MOST_ROUNDS = 8
"""Questions in one request; clients end at ten, and the run goes on with ``get_run``."""


class ClientQuestion(Protocol):
    """One question of one run. ``held`` says that some request puts it to its client right now."""

    key: str
    saying: str
    token: str
    held: bool

    @property
    def open(self) -> bool:
        """Whether it waits for an answer."""

    def request(self) -> CreateMessageRequest | ElicitRequest:
        """Return it as the protocol puts it."""

    async def put(self, ctx: Ctx) -> None:
        """Ask the client in a request of its own, and take the answer."""

    def answer(self, response: object) -> None:
        """Take the client's response."""


@dataclass(frozen=True, slots=True)
class Resumed:
    """What a repeated call goes on with: its run, the rounds so far, the question it answers."""

    run_id: str
    rounds: int
    token: str


def resumption(ctx: Ctx) -> Resumed:
    """Return what a call goes on with; "" for a first one."""
    run_id, rounds, token = (*(ctx.request_state or "").split(" "), "", "")[:3]
    return Resumed(run_id, int(rounds) if rounds.isdecimal() else 0, token)


def answers_by_repeat(ctx: Ctx) -> bool:
    """Whether the client is asked by returning from the request."""
    return (ctx.protocol_version or "") >= MODERN


def input_required(run_id: str, rounds: int, question: ClientQuestion) -> InputRequiredResult:
    """Return what makes the client answer a question and call again."""
    return InputRequiredResult(
        input_requests={question.key: question.request()},
        request_state=f"{run_id} {rounds + 1} {question.token}",
    )


def deliver_answer(ctx: Ctx, question: ClientQuestion | None) -> None:
    """Give the answer that a repeated call brings to the question it is for, and to no other."""
    if question is None or not question.open or resumption(ctx).token != question.token:
        return
    response = (ctx.input_responses or {}).get(question.key)
    if response is not None:
        question.answer(response)


OPEN_QUESTIONS = 100
_KEY = "consent"


class ConsentForm(BaseModel):
    """The form that a person fills in."""

    ok: bool = Field(description="Make this call.", strict=True)


class CallConsents:
    """The questions of one server that wait for their answer."""

    def __init__(self) -> None:
        self._open: OrderedDict[str, Consent] = OrderedDict()

    async def ask(self, ctx: Ctx, wanted: Consent) -> bool | InputRequiredResult | None:
        """Return the person's answer, or what makes the client ask and call again.

        None where nobody can be asked or nobody answered.
        """
        if not can_ask(ctx):
            return None
        if not answers_by_repeat(ctx):
            return await elicit(ctx, question(wanted))
        asked = self._open.pop(ctx.request_state or "", None)
        if asked is not None and asked.covers(wanted):
            return parse_answer((ctx.input_responses or {}).get(_KEY))
        token = secrets.token_urlsafe(16)
        self._open[token] = wanted
        while len(self._open) > OPEN_QUESTIONS:
            self._open.popitem(last=False)
        return InputRequiredResult(
            input_requests={_KEY: ElicitRequest(params=consent_request(question(wanted)))},
            request_state=token,
        )


def consent_request(message: str) -> ElicitRequestFormParams:
    """Return the form as the protocol has it."""
    return ElicitRequestFormParams(
        message=message, requested_schema=ConsentForm.model_json_schema()
    )


async def elicit(ctx: Ctx, text: str) -> bool | None:
    """Put the form to the client in a request; None where the client answers with an error."""
    try:
        given = await ctx.elicit(text, ConsentForm)
    except MCPError:
        return None
    except ValueError:  # the form came back without a usable ``ok``
        return False
    return given.action == "accept" and given.data.ok


def parse_answer(response: object) -> bool | None:
    """Return what a form that came back says, None for what is no such form."""
    if not isinstance(response, ElicitResult):
        return None
    return response.action == "accept" and (response.content or {}).get("ok") is True


def can_ask(ctx: Ctx) -> bool:
    """Whether the client declares that it puts forms to a person."""
    form = ElicitationCapability(form=FormElicitationCapability())
    return bool(ctx.session.check_client_capability(ClientCapabilities(elicitation=form)))


PATIENCE_S = 600.0


@dataclass(eq=False, slots=True)
class ConsentQuestion:
    """One call that a run asks about; see ``ClientQuestion``."""

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
        return ElicitRequest(params=consent_request(self.text))

    async def put(self, ctx: Ctx) -> None:
        """Show the form and take the answer."""
        self._settle(await elicit(ctx, self.text))

    def answer(self, response: object) -> None:
        """Take the form as the client brings it back."""
        self._settle(parse_answer(response))

    def _settle(self, said: bool | None) -> None:
        if self.open:
            self.said.set_result(said)


@dataclass(eq=False, slots=True)
class ValueQuestion:
    """One value that a run asks for; see ``ClientQuestion``."""

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


class RunQuestions:
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
        self._desks: WeakKeyDictionary[Stop, RunQuestions] = WeakKeyDictionary()

    def open(self, stop: Stop, task: str) -> None:
        """Let a run ask."""
        self._desks[stop] = RunQuestions(task)

    def ask(self, stop: Stop) -> AskConsent | None:
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


KEPT = 100
KEEP_S = 600.0
"""So long a question stays open, and what came of its call is kept for a repeat."""

CallOutcome = CallResult | InputRequiredResult


class PendingCall:
    """One call on its way; ``asked`` is what it came to without a person's consent."""

    def __init__(self, make: Callable[[PendingCall], Awaitable[CallOutcome]]) -> None:
        self.asked: CallResult | None = None
        self.until = 0.0
        self.task: asyncio.Future[CallOutcome] = asyncio.ensure_future(make(self))


class PendingCalls:
    """Calls whose request has ended, by what was to be called, for whoever repeats the call."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kept: OrderedDict[str, PendingCall] = OrderedDict()

    def pop(self, key: str) -> PendingCall | None:
        """Return a call that was kept, once; None where there is none."""
        self._drop_old()
        return self._kept.pop(key, None)

    def keep(self, key: str, call: PendingCall) -> None:
        """Keep a call whose request has ended; it is withdrawn after ``KEEP_S`` seconds."""
        call.until = self._clock() + KEEP_S
        call.task.add_done_callback(_retrieve_exception)
        if (other := self._kept.pop(key, None)) is not None:
            other.task.cancel()
        self._kept[key] = call
        asyncio.get_running_loop().call_later(KEEP_S, self._drop_old)
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)[1].task.cancel()

    def _drop_old(self) -> None:
        now = self._clock()
        for key in [key for key, call in self._kept.items() if call.until <= now]:
            self._kept.pop(key).task.cancel()


def _retrieve_exception(task: asyncio.Future[CallOutcome]) -> None:
    """Take the exception of a call that nobody repeats; whoever does gets it raised."""
    if not task.cancelled():
        task.exception()
