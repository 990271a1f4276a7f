"""A page of a call's whole response: one shape for the command line and for MCP.

Knows nothing of where responses are kept.
"""

from __future__ import annotations

from pydantic import BaseModel

from toolsrv.run_record import RunRecord
from toolsrv_registry.errors import NotFoundError
from toolsrv_runtime.outcome import Evidence


class ResponsePage(BaseModel):
    """A page of one call's response, in characters. ``next_offset`` is None on the last page.

    ``kept_whole`` is False where the response was longer than what is kept.
    """

    run_id: str
    node: int
    api_id: str
    status: int
    source: str
    text: str
    offset: int
    total_characters: int
    next_offset: int | None
    kept_whole: bool


def response_page(
    run_id: str, node: int, found: Evidence, text: str, offset: int, kept: int, characters: int
) -> ResponsePage:
    """Return a page: ``text`` from ``offset`` on, of ``kept`` of all ``characters``."""
    end = offset + len(text)
    return ResponsePage(
        run_id=run_id,
        node=node,
        api_id=found.api_id,
        status=found.status,
        source=found.source,
        text=text,
        offset=offset,
        total_characters=characters,
        next_offset=end if end < kept else None,
        kept_whole=kept == characters,
    )


def no_response(record: RunRecord, node: int) -> NotFoundError:
    """Return the error that a node of a run made no call, with the nodes that did."""
    calls = [one.node for one in record.outcome.evidence] if record.outcome else []
    made = ", ".join(map(str, calls[:20])) or "none"
    return NotFoundError(
        f"node {node} of {record.id} has no response", hint=f"nodes with a response: {made}"
    )
