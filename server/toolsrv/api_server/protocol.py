"""ToolBench's wire protocol: a request becomes a call, its result ``{"error", "response"}``.

The error is the reference's label of the call's outcome. The response is the ``str()`` of the
value, cut as the reference cuts it. Knows nothing of HTTP servers.
"""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from toolsrv_catalogs.layout import api_place
from toolsrv_registry import names, wellformed
from toolsrv_registry.api import Api
from toolsrv_registry.errors import BusyError, NotFoundError, UsageError, shorten
from toolsrv_runtime.agent.concurrency import run_until_stopped
from toolsrv_runtime.calls import arguments as args
from toolsrv_runtime.calls.caller import Caller, CallResult
from toolsrv_runtime.calls.compress import filter_by_schema
from toolsrv_runtime.contract.format import Interrupted
from toolsrv_runtime.errors import ArgumentError
from toolsrv_runtime.stop import Stop
from toolsrv_runtime.toolbench.cache import REPLY_LIMIT
from toolsrv_runtime.toolbench.environment import LABELS, TIMED_OUT, error_label

NAMES = ("category", "tool_name", "api_name")
VIRTUAL_FIELDS = (*NAMES, "tool_input", "strip", "toolbench_key")
"""What StableToolBench's server demands; ToolBench's clients may leave out the last two."""
RAPIDAPI_FIELDS = (*NAMES, "tool_input")
KEY_FIELD = "toolbench_key"


@dataclass(frozen=True, slots=True)
class WorldRequest:
    """One call as its client names it: names in any spelling, arguments as text or object."""

    category: str
    tool_name: str
    api_name: str
    tool_input: str | dict[str, Any]
    strip: str = ""

    def filters(self) -> bool:
        """Whether only what a schema names is wanted of the response.

        ``random`` means of every other one; here it is the same one whenever it is asked again.
        """
        if self.strip == "random":
            return zlib.crc32(json.dumps([self.api_name, self.tool_input]).encode()) % 2 == 1
        return self.strip == "filter"

    def api_ids(self) -> tuple[str, ...]:
        """Return the ids that may be meant, the likeliest first.

        A tool's name may end in ``_for_<category>`` and an API's in ``_for_<tool>``, as
        StableToolBench's directories and functions do; a name that really ends so comes first.
        """
        category = names.standardize_category(self.category)
        tool = names.standardize(self.tool_name)
        api = names.standardize(self.api_name)
        tools = (tool, tool.removesuffix(f"_for_{names.standardize(category)}"))
        apis = (
            api,
            self.api_name.partition(f"_for_{self.tool_name}")[0],
            api.removesuffix(f"_for_{tools[1]}"),
        )
        return tuple(dict.fromkeys(api_place(category, *one) for one in product(tools, apis)))


def read_object(data: bytes) -> dict[str, Any]:
    """Return the JSON object that a body is.

    Raises:
        UsageError: it is none.
    """
    try:
        found = wellformed.loads(data)
    except (ValueError, RecursionError):  # ValueError also for bytes that are no text
        found = None
    if not isinstance(found, dict):
        raise UsageError(
            "the body is not a JSON object", hint=f"send one with the fields {', '.join(NAMES)}"
        )
    return found


def read_request(body: Mapping[str, Any], fields: tuple[str, ...]) -> WorldRequest:
    """Return the request that has at least ``fields``; other fields are passed over.

    Raises:
        UsageError: fields are missing or of another type; names them, never their values.
    """
    wrong = [
        name
        for name in fields
        if not isinstance(body.get(name), (str, dict) if name == "tool_input" else str)
    ]
    if wrong:
        raise UsageError(
            f"missing, or of a wrong type: {', '.join(wrong)}",
            hint="all are text; tool_input may be an object too",
        )
    strip = body.get("strip", "")
    return WorldRequest(
        category=body["category"],
        tool_name=body["tool_name"],
        api_name=body["api_name"],
        tool_input=body["tool_input"],
        strip=strip if isinstance(strip, str) else "",
    )


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
                return reply(await run_until_stopped(call, self._stop), schema)
        except TimeoutError:
            return Reply(TIMED_OUT, "", kind="timed_out")
        except Interrupted:
            raise BusyError("the server is stopping", hint="start it again") from None

    def _api(self, request: WorldRequest) -> Api:
        ids = request.api_ids()
        found = self._find(ids)
        for api_id in ids:
            if api_id in found:
                return found[api_id]
        raise NotFoundError(
            f"no API has the id {shorten(ids[0])!r}",
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
            response = filter_by_schema(response, schema)
        response = str(response)[:REPLY_LIMIT]
    return Reply(error, response, result.source, result.kind)


def _error(result: CallResult) -> str:
    if result.source == "simulated" or result.error in LABELS:
        return result.error
    if result.kind == "bad_arguments" and result.status == 0:
        return f"{result.error} ({result.hint})"
    return error_label(result)
