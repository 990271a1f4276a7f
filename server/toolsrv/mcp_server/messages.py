"""JSON-RPC messages at the wire: requests that cannot be read, results that cannot be written.

``read`` validates what a client sends, the same on stdio and over HTTP. ``WellFormedResults`` is
the exit: whatever a handler returns can be serialised as UTF-8. Knows no transport.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.types import INTERNAL_ERROR, INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError
from pydantic_core import from_json, to_json

from toolsrv_registry import wellformed

log = logging.getLogger(__name__)

Id = int | str | None

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|["{}\[\],]', re.DOTALL)
_ID_VALUE = re.compile(r'\s*:\s*("(?:[^"\\]|\\.)*"|-?\d{1,20})\s*(?=[,}])', re.DOTALL)
_BATCH = "batches are not supported: send one message at a time"


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Why a message is refused: its JSON-RPC error ``code``, and the ``ids`` of its requests.

    ``ids`` is ``(None,)`` where no id can be read, and empty for a notification: nobody waits.
    """

    code: int
    message: str
    ids: tuple[Id, ...] = (None,)

    def answers(self) -> list[JSONRPCError]:
        """Return an error response for each id."""
        error = ErrorData(code=self.code, message=self.message)
        return [JSONRPCError(jsonrpc="2.0", id=one, error=error) for one in self.ids]


def read(text: str) -> dict[str, Any] | Unreadable:
    """Decode one message: a request, a notification, or a response of the client.

    Lone surrogates become U+FFFD. Only requests and notifications are checked further; of a
    response no more is known than that it is an object with ``result`` or ``error``.
    """
    try:
        value = from_json(text)
    except ValueError:
        text = wellformed.json_text(text)  # the parser accepts no lone surrogate
        try:
            value = from_json(text)
        except ValueError as error:
            return Unreadable(PARSE_ERROR, f"parse error: {error}", (_id_in(text),))
    if isinstance(value, list):
        ids = (_id(one) for one in value if isinstance(one, dict) and "method" in one)
        known = tuple(one for one in ids if one is not None)
        return Unreadable(INVALID_REQUEST, _BATCH, known or (None,))
    if not isinstance(value, dict):
        return Unreadable(INVALID_REQUEST, "a message must be a JSON object")
    if "method" not in value and ("result" in value or "error" in value):
        return value
    if fault := _fault(value):
        notification = isinstance(value.get("method"), str) and "id" not in value
        return Unreadable(INVALID_REQUEST, fault, () if notification else (_id(value),))
    return value


def _fault(value: Mapping[str, Any]) -> str:
    """Return what keeps an object from being a request or a notification, ``""`` for nothing."""
    if value.get("jsonrpc") != "2.0":
        return 'the member "jsonrpc" must be "2.0"'
    if not isinstance(value.get("method"), str):
        return 'the member "method" must be a string'
    if "id" in value and _id(value) is None:
        return 'the member "id" must be a string or an integer'
    if not isinstance(value.get("params"), dict | None):
        return 'the member "params" must be an object'
    return ""


def _id(value: Mapping[str, Any]) -> Id:
    found = value.get("id")
    return found if isinstance(found, int | str) and not isinstance(found, bool) else None


def _id_in(text: str) -> Id:
    """Return the id of an object that does not parse, as far as its text goes. Linear."""
    depth, before = 0, ""
    for token in _TOKEN.finditer(text):
        sign = token[0]
        if sign == '"':  # the text breaks off in a string
            return None
        if sign == '"id"' and depth == 1 and before in ("{", ","):
            found = _ID_VALUE.match(text, token.end())
            return None if found is None else _id({"id": json.loads(found[1], strict=False)})
        if sign in "{[":
            if not depth and sign == "[":
                return None
            depth += 1
        elif sign in "}]":
            depth -= 1
        before = sign
    return None


class WellFormedResults:
    """Server middleware: results and errors that a transport can write.

    A lone surrogate that got as far as here becomes U+FFFD; what cannot be written at all becomes
    an internal error of the one request.
    """

    async def __call__(
        self, ctx: ServerRequestContext[Any, Any], call_next: CallNext
    ) -> HandlerResult:
        """Handle a message."""
        try:
            result = await call_next(ctx)
        except MCPError as error:
            given = error.error.model_dump()
            clean = _writable(given)
            if clean is given:
                raise
            raise MCPError.from_error_data(ErrorData.model_validate(clean)) from error
        except Exception as error:
            if (said := wellformed.text(str(error))) == str(error):
                raise
            raise MCPError(INTERNAL_ERROR, said) from error
        return _writable(result) if isinstance(result, dict) else result


def _writable(value: dict[str, Any]) -> dict[str, Any]:
    """Return a JSON object that can be written.

    Raises:
        MCPError: it is no JSON.
    """
    try:
        to_json(value)
    except (ValueError, TypeError, RecursionError):
        pass
    else:
        return value
    try:
        clean: dict[str, Any] = wellformed.value(value)
        to_json(clean)
    except (ValueError, TypeError, RecursionError) as error:
        log.exception("a result cannot be written")
        raise MCPError(INTERNAL_ERROR, "the result cannot be written as JSON") from error
    return clean
