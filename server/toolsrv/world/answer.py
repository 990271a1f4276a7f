"""From a request of ToolBench's wire to a call of ours, and back to ``{"error", "response"}``.

The error is the reference's label of what the call came to; the response is the ``str()`` of the
value, cut as the reference cuts it. Knows nothing of HTTP.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolsrv.world.request import WorldRequest
from toolsrv_registry.api import Api
from toolsrv_registry.errors import BusyError, NotFoundError
from toolsrv_registry.nearby import short
from toolsrv_runtime.calls import arguments as args
from toolsrv_runtime.calls.by_schema import by_schema
from toolsrv_runtime.calls.caller import Caller, CallResult
from toolsrv_runtime.calls.recordings.stabletoolbench import CUT
from toolsrv_runtime.calls.toolbench_codes import LABELS, TIMEOUT, label
from toolsrv_runtime.errors import ArgumentError
from toolsrv_runtime.formats.base import Interrupted
from toolsrv_runtime.stop import Stop
from toolsrv_runtime.waiting import until_stopped

PARSE_ERROR = "Tool input parse error...\n"

Find = Callable[[Sequence[str]], Mapping[str, Api]]


@dataclass(frozen=True, slots=True)
class Reply:
    """What a client gets. ``source`` and ``kind`` are the call's, "" where none was made.

    ``response`` is text, of a simulation any JSON value.
    """

    error: str
    response: Any
    source: str = ""
    kind: str = ""


class World:
    """Answers requests from one catalog store and one caller until ``stop`` is set."""

    def __init__(self, find: Find, caller: Caller, stop: Stop, *, changes: bool = False) -> None:
        """Take ``find``, which returns the APIs that exist among some ids, by id.

        ``changes`` says that a person lets their rules allow what may change something.
        """
        self._find = find
        self._caller = caller
        self._stop = stop
        self._changes = changes

    async def answer(self, request: WorldRequest, seconds: float | None) -> Reply:
        """Answer within ``seconds``, without them within the caller's own limit.

        Raises:
            NotFoundError: no API has these names.
            BusyError: the server stops before the call is done.
        """
        api = self._api(request)
        try:
            given = request.tool_input
            arguments = args.parse(given) if isinstance(given, str) else given
        except ArgumentError:
            return Reply(PARSE_ERROR, "")
        # Behind a request stands a program that has read responses: to a policy, a tainted run,
        # unless the person who started the server has answered for it.
        schema = self._caller.schema(api) if request.filters() else None
        call = self._caller.call(api, arguments, tainted=not self._changes)
        try:
            async with asyncio.timeout(seconds):
                return reply(await until_stopped(call, self._stop), schema)
        except TimeoutError:
            return Reply(TIMEOUT, "", kind="timed_out")
        except Interrupted:
            raise BusyError("the server is stopping", hint="start it again") from None

    def _api(self, request: WorldRequest) -> Api:
        ids = request.api_ids()
        found = self._find(ids)
        for api_id in ids:
            if api_id in found:
                return found[api_id]
        raise NotFoundError(
            f"no API has the id {short(ids[0])!r}",
            hint="import its catalog, or look it up: toolsrv search",
        )


def reply(result: CallResult, schema: Any = None) -> Reply:
    """Return what the reference would say of a call; a ``schema`` says what of it is kept.

    Where no response came, the response is our reason, unless it is the error already. What
    somebody else's service or a simulation has said stays as it was said.
    """
    error = _error(result)
    response = result.response
    if response is None:
        response = "" if error.startswith(result.error) else result.error
    elif result.source != "simulated":
        if schema and isinstance(response, dict):
            response = by_schema(response, schema)
        response = str(response)[:CUT]
    return Reply(error, response, result.source, result.kind)


def _error(result: CallResult) -> str:
    if result.source == "simulated" or result.error in LABELS:
        return result.error
    if result.kind == "bad_arguments" and result.status == 0:
        return f"{result.error} ({result.hint})"
    return label(result)
