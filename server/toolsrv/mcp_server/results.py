"""Tool results: one typed value, sent as ``structuredContent`` and rendered as text from it.

Clients pass on one half only: some drop the text of a success, some the data of an error. So
nothing is added to one half alone. A result stays within ``RESULT_BYTES`` in each half.
"""

from __future__ import annotations

from typing import Any, TypeVar

from mcp.types import CallToolResult, TextContent
from pydantic import BaseModel, Field

from toolsrv.mcp_server.brief import data, within
from toolsrv.mcp_server.hints import for_client
from toolsrv.mcp_server.show import TreePart
from toolsrv.mcp_server.texts import render
from toolsrv.plain import one_line
from toolsrv.run_views import RunView
from toolsrv_registry.errors import ToolsrvError

View = TypeVar("View", bound=BaseModel)

RESULT_BYTES = 6_000
"""About 2,000 tokens: three bytes of JSON or of other scripts than Latin make a token."""
MESSAGE_CHARACTERS = 1_500

_WORDS = frozenset({"hint", "next_step", "degraded", "notes", "lacks"})
"""Fields that say what to do next, in words of the command line where they come from."""


class ErrorView(BaseModel):
    """Why a tool could not answer."""

    error: str = Field(description="Set when the tool failed: what is wrong.")
    hint: str = Field(default="", description="What to do next.")


def success(view: BaseModel, limit: int = RESULT_BYTES) -> CallToolResult:
    """Return a value as data and as text, each of at most ``limit`` bytes where it can be cut."""
    return _result(view, limit, is_error=False)


def failure(view: BaseModel, limit: int = RESULT_BYTES) -> CallToolResult:
    """Return a tool error with what is known, as data and as text."""
    return _result(view, limit, is_error=True)


def refusal(message: str, hint: str = "") -> CallToolResult:
    """Return a tool error that says what is wrong and what to do next."""
    view = ErrorView(
        error=one_line(message, MESSAGE_CHARACTERS), hint=one_line(hint, MESSAGE_CHARACTERS)
    )
    return failure(view)


def refused(error: ToolsrvError) -> CallToolResult:
    """Return an error that a user or a model can act on."""
    return refusal(error.message, error.hint)


def noted(result: CallToolResult, ignored: list[str]) -> CallToolResult:
    """Return a result that also says which arguments were ignored."""
    if not ignored:
        return result
    line = f"Ignored arguments: {', '.join(ignored)}"
    told = [
        TextContent(type="text", text=f"{one.text}\n{line}")
        if isinstance(one, TextContent)
        else one
        for one in result.content
    ]
    return result.model_copy(
        update={
            "content": told,
            "structured_content": {
                **(result.structured_content or {}),
                "ignored_arguments": ignored,
            },
        }
    )


def _result(view: BaseModel, limit: int, *, is_error: bool) -> CallToolResult:
    shown = within(_for_client(view), limit)
    return CallToolResult(
        content=[TextContent(type="text", text=render(shown))],
        structured_content=data(shown),
        is_error=is_error,
    )


def _for_client(view: View) -> View:
    """Return a value whose hints name tools instead of commands."""
    update: dict[str, Any] = {}
    for name in type(view).model_fields:
        value = getattr(view, name)
        ours = name == "reason" and isinstance(view, RunView | TreePart)
        if name in _WORDS or ours:
            update[name] = (
                for_client(value) if isinstance(value, str) else tuple(map(for_client, value))
            )
        elif isinstance(value, tuple) and any(isinstance(one, BaseModel) for one in value):
            update[name] = tuple(
                _for_client(one) if isinstance(one, BaseModel) else one for one in value
            )
        elif isinstance(value, BaseModel):
            update[name] = _for_client(value)
    return view.model_copy(update=update)
