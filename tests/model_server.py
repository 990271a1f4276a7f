"""A real HTTP server on loopback that speaks OpenAI's protocol, well or badly, by a script.

Each entry of ``script`` is one reply to ``chat/completions``, the last for ever: a ``Call`` (told
as the request wants it: tool call or JSON text), a text that is said as it is, a ``Reply`` with all
its parts, or one of ``KINDS`` of misbehaviour, which begin with an exclamation mark. A request with
one of the fields ``refuses`` is refused by its name, also where it is a probe. A body of more than ``most`` bytes is refused
in the words ``refusal`` and counted in ``refused``. Probes are answered from ``offers`` and not
counted; ``requests`` keeps bodies and headers of all others. A ``silent`` server lists its models
and answers nothing else.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

KINDS = (
    "!cut", "!cut-at-once", "!html", "!not-json", "!wrong-shape", "!event-not-json", "!429",
    "!429-long", "!500", "!503", "!401", "!400", "!404", "!redirect", "!too-long", "!never",
    "!stall", "!endless", "!comments", "!huge", "!huge-line", "!empty", "!error-event", "!reset",
    "!deep", "!too-long-event", "!huge-events",
)  # fmt: skip

TOO_LONG = "This model's maximum context length is 2048 tokens, and your messages have more."


@dataclass(frozen=True)
class Call:
    """A well-behaved reply."""

    function: str
    arguments: dict[str, Any] = field(default_factory=dict)
    thought: str = "go on"


@dataclass(frozen=True)
class Reply:
    """A reply in all its parts: of tool calls only where the request has tools.

    ``deltas`` are streamed as they are, instead of the message's own.
    """

    content: str = ""
    calls: tuple[Call, ...] = ()
    finish: str = "stop"
    reasoning: str = ""
    deltas: tuple[dict[str, Any], ...] = ()


GIVE_UP = Call("no_function_fits", {"reason": "nothing here helps"})


class ModelServer:
    """The server. Use as a context."""

    def __init__(
        self,
        script: Sequence[Call | Reply | str],
        *,
        offers: Sequence[str] = ("tools",),
        whole: bool = False,
        usage: bool = True,
        models: Sequence[str] | None = ("tiny",),
        failing_probes: int = 0,
        most: int = 0,
        refusal: str = TOO_LONG,
        refusal_status: int = 400,
        max_model_len: int = 0,
        models_after_s: float = 0.0,
        silent: bool = False,
        refuses: Sequence[str] = (),
    ) -> None:
        self.script = list(script)
        self.offers = tuple(offers)
        self.whole = whole
        self.usage = usage
        self.models = models
        self.failing_probes = failing_probes
        self.most = most
        self.refusal = refusal
        self.refusal_status = refusal_status
        self.max_model_len = max_model_len
        self.models_after_s = models_after_s
        self.silent = silent
        self.refuses = tuple(refuses)
        self.refused: list[dict[str, Any]] = []
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.probes = 0
        self.begun = threading.Event()
        self.client_left = threading.Event()
        self.closing = threading.Event()
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def next(self, body: dict[str, Any], headers: dict[str, str]) -> Call | Reply | str:
        with self._lock:
            self.requests.append(body)
            self.headers.append(headers)
            return self.script[min(len(self.requests), len(self.script)) - 1]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = False
    block_on_close = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is no news."""


def _handler(state: ModelServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.closing.wait(state.models_after_s)
            if self.path == "/v1/models" and state.models is not None:
                told = {"max_model_len": state.max_model_len} if state.max_model_len else {}
                data = [{"id": one, **told} for one in state.models]
                self._say(200, json.dumps({"object": "list", "data": data}))
            else:
                self._say(404, '{"error": {"message": "no such path"}}')

        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            body = json.loads(self.rfile.read(length))
            if state.silent:
                state.closing.wait(20)
                return
            if refused := [one for one in state.refuses if one in body]:
                state.refused.append(body)
                words = f"Unsupported parameter: '{refused[0]}' is not supported with this model."
                self._say(400, json.dumps({"error": {"message": words}}))
                return
            if "report" in json.dumps(body) and "Say hello" in json.dumps(body["messages"]):
                state.probes += 1
                self._probe(body)
                return
            if state.most and length > state.most:
                state.refused.append(body)
                error = {"error": {"message": state.refusal}}
                self._say(state.refusal_status, json.dumps(error))
                return
            said = state.next(body, {k.lower(): v for k, v in self.headers.items()})
            if isinstance(said, Call):
                self._reply(_call(said, body))
            elif isinstance(said, Reply):
                self._reply(_message(said), finish=said.finish, deltas=said.deltas)
            elif said.startswith("!"):
                self._misbehave(said)
            else:
                self._reply({"content": said})

        def _probe(self, body: dict[str, Any]) -> None:
            ready = Call("report", {"status": "ready"})
            asked = {"tools": "tools", "response_format": "json_schema", "grammar": "grammar"}
            mode = next(mode for key, mode in asked.items() if key in body)
            if state.probes <= state.failing_probes:
                self._say(500, '{"error": {"message": "out of order"}}')
            elif mode in state.offers:
                self._reply(_call(ready, body))
            elif mode == "tools":
                self._say(400, '{"error": {"message": "tools are not supported"}}')
            else:
                self._reply({"content": "Hello!"})

        def _reply(
            self,
            message: dict[str, Any],
            *,
            finish: str = "stop",
            deltas: Sequence[dict[str, Any]] = (),
        ) -> None:
            usage = {"prompt_tokens": 100, "completion_tokens": 7,
                     "prompt_tokens_details": {"cached_tokens": 60}}  # fmt: skip
            if state.whole:
                choice = {"message": {"role": "assistant", **message}, "finish_reason": finish}
                self._say(200, json.dumps({"choices": [choice], "usage": usage}))
                return
            self._stream()
            for delta in deltas or _deltas(message):
                self._event({"choices": [{"index": 0, "delta": delta}]})
            self._event({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
            if state.usage:
                self._event({"choices": [], "usage": usage})
            self.wfile.write(b"data: [DONE]\n\n")

        def _misbehave(self, kind: str) -> None:
            piece = {"choices": [{"index": 0, "delta": {"content": "word "}}]}
            match kind:
                case "!cut":
                    self._stream()
                    self._event(piece)
                case "!cut-at-once":
                    self._stream()
                case "!html":
                    self._say(200, "<!DOCTYPE html><p>Sign in</p>", "text/html")
                case "!not-json":
                    self._say(200, "{broken")
                case "!deep":
                    self._say(200, "[" * 200_000)
                case "!wrong-shape":
                    self._say(200, '{"choices": [3], "usage": "none"}')
                case "!event-not-json":
                    self._stream()
                    self.wfile.write(b"data: {broken\n\n")
                case "!429":
                    self._say(429, '{"error": {"message": "slow down"}}', **{"Retry-After": "0"})
                case "!429-long":
                    self._say(429, '{"error": "quota"}', **{"Retry-After": "86400"})
                case "!redirect":
                    self._say(307, "", Location="http://127.0.0.1:9/v1")
                case "!too-long":
                    error = {"message": "too many", "code": "context_length_exceeded"}
                    self._say(400, json.dumps({"error": error}))
                case "!never":
                    state.begun.set()
                    state.closing.wait(20)
                case "!stall":
                    self._stream()
                    self._event(piece)
                    state.begun.set()
                    self._until_gone(b"")
                case "!endless":
                    self._stream()
                    state.begun.set()
                    self._until_gone(b"data: " + json.dumps(piece).encode() + b"\n\n")
                case "!comments":
                    self._stream()
                    state.begun.set()
                    self._until_gone(b": still here\n\n")
                case "!huge":
                    self._say(200, '{"choices": "' + "x" * 9_000_000 + '"}')
                case "!huge-events":
                    self._stream()
                    for _ in range(132):
                        delta = {"content": "x" * 70_000}
                        self._event({"choices": [{"index": 0, "delta": delta}]})
                case "!huge-line":
                    self._stream()
                    self.wfile.write(b"data: " + b"x" * 9_000_000)
                case "!empty":
                    self._say(200, "")
                case "!error-event":
                    self._stream()
                    self._event({"error": {"message": "out of memory"}})
                case "!too-long-event":
                    self._stream()
                    self._event({"error": {"message": f"too many: {TOO_LONG}"}})
                case "!reset":
                    self.connection.close()
                case _:
                    key = self.headers.get("Authorization", "")
                    self._say(int(kind[1:]), json.dumps({"error": {"message": f"no, {key}"}}))

        def _until_gone(self, line: bytes) -> None:
            """Write until the client leaves; with nothing to write look whether it left."""
            self.connection.settimeout(0.02)
            while not state.closing.is_set():
                try:
                    if line:
                        self.wfile.write(line)
                        time.sleep(0.0002)
                        continue
                    if self.connection.recv(1) == b"":
                        break
                except TimeoutError:
                    continue
                except OSError:
                    break
            state.client_left.set()

        def _stream(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream; charset=utf-8")
            self.end_headers()
            self.wfile.flush()

        def _event(self, value: dict[str, Any]) -> None:
            self.wfile.write(b"data: " + json.dumps(value).encode() + b"\r\n\r\n")

        def _say(
            self, status: int, body: str, kind: str = "application/json", **headers: str
        ) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body.encode())))
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - inherited
            """Say nothing."""

    return Handler


def _call(call: Call, body: dict[str, Any]) -> dict[str, Any]:
    """Return a call as the request wants it."""
    if "tools" in body:
        function = {"name": call.function, "arguments": json.dumps(call.arguments)}
        one = {"index": 0, "id": "x", "type": "function", "function": function}
        return {"content": call.thought, "tool_calls": [one]}
    said = {"name": call.function, "arguments": call.arguments}
    return {"content": json.dumps({"thought": call.thought, "call": said})}


def _message(reply: Reply) -> dict[str, Any]:
    """Return a reply as a message."""
    message: dict[str, Any] = {"content": reply.content}
    if reply.reasoning:
        message["reasoning_content"] = reply.reasoning
    if reply.calls:
        message["tool_calls"] = [
            {
                "index": index,
                "id": f"call_{index:024d}",
                "type": "function",
                "function": {"name": one.function, "arguments": json.dumps(one.arguments)},
            }
            for index, one in enumerate(reply.calls)
        ]
    return message


def _deltas(message: dict[str, Any]) -> list[dict[str, Any]]:
    """Cut a message as servers do: text by words, arguments by characters."""
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    reasoning = message.get("reasoning_content", "")
    deltas += [{"reasoning_content": reasoning[at : at + 5]} for at in range(0, len(reasoning), 5)]
    deltas += [{"content": f"{word} "} for word in str(message.get("content", "")).split(" ")]
    for call in message.get("tool_calls", []):
        function = call["function"]
        deltas.append({"tool_calls": [{**call, "function": {**function, "arguments": ""}}]})
        text = function["arguments"]
        for at in range(0, len(text), 3):
            part = {"index": call["index"], "function": {"arguments": text[at : at + 3]}}
            deltas.append({"tool_calls": [part]})
    return deltas
