"""Completion of arguments: runs, their nodes, APIs and categories by what is typed of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mcp.server import MCPServer
from mcp.types import (
    Completion,
    CompletionArgument,
    CompletionContext,
    PromptReference,
    ResourceTemplateReference,
)

from toolsrv.background import in_thread
from toolsrv.mcp_server.kept import Kept
from toolsrv_registry.errors import ToolsrvError

if TYPE_CHECKING:
    from toolsrv.workbench import Workbench

MOST = 100
"""Values in one answer: the protocol's limit."""


def add_completions(server: MCPServer[Any], bench: Workbench, kept: Kept) -> None:
    """Register the completion of every argument that has known values."""

    async def complete(
        _: PromptReference | ResourceTemplateReference,
        argument: CompletionArgument,
        context: CompletionContext | None,
    ) -> Completion:
        """Return the values that fit what is typed; none where an argument may be anything."""
        typed = argument.value
        try:
            match argument.name:
                case "run_id":
                    lines = await kept.recent(MOST)
                    return _matching([one.run_id for one in lines if one.ended], typed)
                case "node":
                    given = (context.arguments if context else None) or {}
                    record = await kept.record(given.get("run_id", ""))
                    calls = record.outcome.evidence if record.outcome else ()
                    return _matching([str(one.node) for one in calls], typed)
                case "category":
                    return _matching(await in_thread(lambda: _categories(bench)), typed)
                case "id":
                    found, total = await in_thread(
                        lambda: bench.registry().store.ids_with(typed, MOST)
                    )
                    return Completion(values=found, total=total, has_more=total > len(found))
        except ToolsrvError:  # nothing is known to complete from
            pass
        return Completion(values=[], total=0, has_more=False)

    server.completion()(complete)  # type: ignore[no-untyped-call]


def _categories(bench: Workbench) -> list[str]:
    return list(bench.registry().store.categories())


def _matching(values: Sequence[str], typed: str) -> Completion:
    """Return the values that begin with what is typed, then those that have it elsewhere."""
    wanted = typed.casefold()
    held = [one for one in values if wanted in one.casefold()]
    found = sorted(held, key=lambda one: not one.casefold().startswith(wanted))
    return Completion(values=found[:MOST], total=len(found), has_more=len(found) > MOST)
