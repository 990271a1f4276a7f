"""Questions of a run to the client that follows it, in both eras.

Up to 2025-11-25 a question is a request of the server's own, within the one that follows the run;
since then the tool returns what it needs and is called again with the answer. ``request_state``
says which question an answer is for, so that those of two runs cannot be mixed up. Knows nothing
of what is asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from mcp.server.mcpserver import Context
from mcp.types import CreateMessageRequest, ElicitRequest, InputRequiredResult

Ctx = Context[None, Any]

MODERN = "2026-07-28"
"""From this revision on a server asks by returning."""

MOST_ROUNDS = 8
"""Questions in one request; clients end at ten, and the run goes on with ``get_run``."""


class Question(Protocol):
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


def resumed(ctx: Ctx) -> Resumed:
    """Return what a call goes on with; "" for a first one."""
    run_id, rounds, token = (*(ctx.request_state or "").split(" "), "", "")[:3]
    return Resumed(run_id, int(rounds) if rounds.isdecimal() else 0, token)


def by_returning(ctx: Ctx) -> bool:
    """Whether the client is asked by returning from the request."""
    return (ctx.protocol_version or "") >= MODERN


def returned(run_id: str, rounds: int, question: Question) -> InputRequiredResult:
    """Return what makes the client answer a question and call again."""
    return InputRequiredResult(
        input_requests={question.key: question.request()},
        request_state=f"{run_id} {rounds + 1} {question.token}",
    )


def hand_in(ctx: Ctx, question: Question | None) -> None:
    """Give the answer that a repeated call brings to the question it is for, and to no other."""
    if question is None or not question.open or resumed(ctx).token != question.token:
        return
    response = (ctx.input_responses or {}).get(question.key)
    if response is not None:
        question.answer(response)
