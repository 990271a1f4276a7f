"""Odd but harmless things that model servers send: half characters, null errors, endless waits."""

from __future__ import annotations

import asyncio
import json
import runpy
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from toolsrv_runtime.contract.models import (
    AssistantMessage,
    ChatRequest,
    ReplyConstraints,
    SystemMessage,
    Tool,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from toolsrv_runtime.errors import ServerError
from toolsrv_runtime.models import textual
from toolsrv_runtime.models.openai import parse_endpoints
from toolsrv_runtime.models.openai.http import MOST_REST_S, OversizeError, iter_lines
from toolsrv_runtime.models.openai.messages import CallMode, StreamedReply
from toolsrv_runtime.models.openai.server import OpenAIServer
from toolsrv_runtime.stop import Stop

_FAKE = runpy.run_path(str(Path(__file__).parents[1] / "model_server.py"))
ModelServer, Call = _FAKE["ModelServer"], _FAKE["Call"]
HALF = "\ud83d"
REQUEST = ChatRequest(
    (SystemMessage("Use functions."), UserMessage("What is the capital of Peru?"))
)
TOOLS = (Tool("f", "Does it.", {"type": "object", "properties": {"a": {"type": "string"}}}),)
CALLING = ChatRequest(REQUEST.messages, TOOLS, ReplyConstraints(names=("f",), text=False))


def gathered(*events: object) -> StreamedReply:
    """Return what is read of some events."""
    found = StreamedReply()
    for one in events:
        assert found.event(json.dumps(one))
    return found


def said(text: str) -> object:
    """Return an event with a piece of a reply."""
    return {"choices": [{"delta": {"content": text}}]}


class Pieces(httpx.AsyncByteStream):
    """A body that comes in pieces of so many bytes."""

    def __init__(self, body: bytes, size: int) -> None:
        self._body = body
        self._size = size

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for at in range(0, len(self._body), self._size):
            yield self._body[at : at + self._size]


@pytest.mark.parametrize("mode", ["tools", "none"])
def test_a_character_that_comes_in_two_pieces_is_one(mode: CallMode) -> None:
    reply = gathered(said("Hi " + HALF), said("\ude00 there")).reply(REQUEST, mode)
    assert reply.text == "Hi \U0001f600 there"


def test_half_a_character_of_a_reply_is_replaced() -> None:
    call = '{"thought": "\\ud83d", "name": "f", "arguments": {"a": "x\\udc00"}}'
    reply = gathered(said(call)).reply(CALLING, "none")
    assert (reply.text, reply.problem) == ("�", "")
    assert [(one.name, one.arguments) for one in reply.calls] == [("f", {"a": "x�"})]


def test_half_a_character_of_a_conversation_is_sent_as_it_is() -> None:
    call = ToolCall("f", {})
    request = ChatRequest(
        (
            SystemMessage("Use functions."),
            UserMessage(f"task {HALF}"),
            AssistantMessage(f"thought {HALF}", (call,)),
            ToolMessage(call, f"response {HALF}"),
            AssistantMessage(HALF),
            UserMessage("once more"),
        )
    )
    with ModelServer([Call("f", {}, "")], offers=()) as server:
        one = OpenAIServer(parse_endpoints(server.url)[0], model="tiny", key="", silence_s=5.0)
        assert one.reply(request, stop=Stop()) is not None
        turns = server.requests[0]["messages"]
    assert [turn["content"].count(HALF) for turn in turns] == [0, 1, 1, 1, 1, 0]


@pytest.mark.parametrize("error", [None, "", {}])
def test_an_error_that_says_nothing_is_none(error: object) -> None:
    assert gathered({"error": error, "choices": []}).error == ""
    assert gathered({"error": {"message": "too busy"}}).error == "too busy"


def test_stop_ends_the_wait_for_another_call_that_asks_what_the_server_offers() -> None:
    with ModelServer([Call("f", {}, "")]) as server:
        one = OpenAIServer(parse_endpoints(server.url)[0], model="tiny", key="", silence_s=5.0)
        stop = Stop()
        with one._detecting, ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(one.detect, stop=stop)
            stop.set()
            assert waiting.result(timeout=60) is None
        assert server.probes == 0
        assert one.detect(stop=Stop()) == "tools"


@pytest.mark.parametrize(
    ("header", "wait_s"),
    [
        ("inf", MOST_REST_S),
        ("1e300", MOST_REST_S),
        ("Fri, 01 Jan 2100 00:00:00 GMT", MOST_REST_S),
        ("7", 7.0),
        ("nan", 0.0),
        ("-1", 0.0),
        ("Mon, 1 Jan 99999999999999999999", 0.0),
    ],
)
def test_no_server_is_left_out_for_good(header: str, wait_s: float) -> None:
    async def busy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 429 Busy\r\nRetry-After: {header}\r\nContent-Length: 0\r\n\r\n"
        writer.write(head.encode())
        await writer.drain()
        writer.close()

    async def ask() -> ServerError:
        async with await asyncio.start_server(busy, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            place = parse_endpoints(f"http://127.0.0.1:{port}/v1")[0]
            one = OpenAIServer(place, model="tiny", key="", silence_s=5.0)
            with pytest.raises(ServerError) as caught:
                await asyncio.to_thread(one.models, stop=Stop())
            return caught.value

    assert asyncio.run(ask()).wait_s == wait_s


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_lines_are_the_same_however_they_come(size: int) -> None:
    body = b"data: one\r\n\r\n: stay\ndata: two\n\nrest"

    async def read() -> list[bytes]:
        return [line async for line in iter_lines(httpx.Response(200, stream=Pieces(body, size)))]

    assert asyncio.run(read()) == [b"data: one", b"", b": stay", b"data: two", b"", b"rest"]


def test_a_line_without_an_end_is_not_waited_for() -> None:
    body = b"data: one\n" + b"x" * 3_000_000
    found: list[bytes] = []

    async def read() -> None:
        async for line in iter_lines(httpx.Response(200, stream=Pieces(body, 8))):
            found.append(line)  # noqa: PERF401 - what came before the error counts too

    with pytest.raises(OversizeError, match="a line of more than 1 MB"):
        asyncio.run(read())
    assert found == [b"data: one"]


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("!huge", "sent more than 8 MB and was not read further"),
        ("!huge-events", "sent more than 8 MB and was not read further"),
        ("!huge-line", "sent a line of more than 1 MB and was not read further"),
    ],
)
def test_a_reply_of_which_we_read_no_more_is_not_called_cut(kind: str, told: str) -> None:
    with ModelServer([kind]) as server:
        one = OpenAIServer(parse_endpoints(server.url)[0], model="tiny", key="", silence_s=5.0)
        with pytest.raises(ServerError, match=told):
            one.reply(REQUEST, stop=Stop())


def test_a_list_of_models_of_which_we_read_no_more_is_told_as_that() -> None:
    with ModelServer([], models=("x" * 9_000_000,)) as server:
        one = OpenAIServer(parse_endpoints(server.url)[0], model="", key="", silence_s=5.0)
        with pytest.raises(ServerError, match="sent more than 8 MB and was not read further"):
            one.models(stop=Stop())


@pytest.mark.parametrize(
    "before", ["I use {city}. ", "{", "{} ", "{{}} so ", "{a: 1} or ", "[1, {] "]
)
def test_braces_before_the_object_are_words(before: str) -> None:
    text = before + '{"thought": "t", "call": {"name": "f", "arguments": {}}}'
    reply = textual.parse_reply(CALLING, text)
    assert ([one.name for one in reply.calls], reply.problem) == (["f"], "")


def test_a_reply_of_braces_ends() -> None:
    assert (
        textual.parse_reply(CALLING, "{" * 4_000_000).problem == "The reply is not one JSON object"
    )
    assert (
        textual.parse_reply(CALLING, '{"a":' * 1_000_000).problem
        == "The reply is not one JSON object"
    )
