"""Replies in the syntaxes of other model families."""

from __future__ import annotations

from toolsrv_runtime.contract.chat import ChatReply, ChatRequest


def read_dialects(raw: str, request: ChatRequest) -> ChatReply | None:
    """Return the reply where it holds calls in a known syntax, else None."""
    del raw, request
    return None
