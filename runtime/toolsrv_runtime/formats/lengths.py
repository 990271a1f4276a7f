"""How long a request may be to a chat model that measures for itself: learnt from its refusals.

Counts characters: how many tokens they are, only the server knows. Knows no turns and no server.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from toolsrv_runtime.contract.chat import AssistantMessage, ChatRequest

_PER_TOKEN = 4
"""Characters of a token at most, about: what this lets through too long is refused once more."""

_LEAST_REPLY = 128
"""Tokens below which a reply is no use."""


@dataclass(frozen=True, slots=True)
class Lengths:
    """What is tried next: at most so many ``characters`` and tokens of ``reply``; None: any."""

    characters: int | None = None
    reply: int | None = None

    def after(self, request: ChatRequest, least: int, context: int) -> Lengths | None:
        """Return what to try once ``request`` was refused; None where nothing is left to try.

        ``least`` is how many characters it has at its shortest, ``context`` for how many tokens
        the server has room (0: not told).
        """
        size, reply = characters(request), request.max_tokens
        if context and reply > context // 2:
            reply = max(1, context // 2)
        elif size <= least and reply > _LEAST_REPLY:
            reply = max(_LEAST_REPLY, reply // 2)
        elif size <= least:
            return None
        room = size * 3 // 4
        if context:
            room = min(room, (context - reply) * _PER_TOKEN)
        return Lengths(max(room, least), reply)


def characters(request: ChatRequest) -> int:
    """Return how many characters a request says to the model, without what a server adds."""
    said = sum(len(one.text) for one in request.messages)
    calls = (
        len(call.name) + len(json.dumps(call.arguments, ensure_ascii=False))
        for one in request.messages
        if isinstance(one, AssistantMessage)
        for call in one.calls
    )
    tools = (
        len(json.dumps(one.to_json()["function"], ensure_ascii=False)) for one in request.tools
    )
    return said + sum(calls) + sum(tools)
