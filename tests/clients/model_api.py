"""A scripted model behind the APIs of four vendors, on loopback, for clients that need a model.

It speaks OpenAI's chat completions and responses, Anthropic's messages and Gemini's
``generateContent``, streamed or whole. The script is a sequence of tool calls; the next one is
chosen by the results that the request holds, so requests beside the conversation (titles, warm-up)
do not disturb it. Every request is kept as the model received it.
"""

from __future__ import annotations

import gzip
import json
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from tests.clients import model_protocols as wire

FINAL = "That is all I wanted to know."
"""The reply after the last call of the script."""
FOLLOW = "get_run"
"""The tool that waits for a run which ``solve_task`` hands back on a slow machine."""
_UNENDED = re.compile(
    r"""Run (run_[\w-]+) is (?:queued|working)
    |\\?"run_id\\?":\s*\\?"(run_[\w-]+)\\?",\s*\\?"status\\?":\s*\\?"(?:queued|working)""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class Step:
    """One tool call of the script, by the tool's name on the server."""

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


class ModelApi:
    """The server. Use as a context; ``url`` has no path.

    ``schemas`` are the input schemas of the server under test by tool, ``prefix`` is what the
    client puts before their names. Arguments that a client has added to a schema are filled in, as
    a model would. ``unknown`` are paths that no protocol has.
    """

    def __init__(
        self, script: Sequence[Step], schemas: Mapping[str, Mapping[str, Any]], prefix: str
    ) -> None:
        self.script = tuple(script)
        self.schemas = schemas
        self.prefix = prefix
        self.requests: list[wire.Request] = []
        self.unknown: list[str] = []
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        """The address, without a path."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)

    @property
    def tools(self) -> dict[str, wire.Tool]:
        """The tools under test that any request offered, by their names on the server."""
        return {
            own: tool
            for request in self.requests
            for name, tool in request.tools.items()
            if (own := self._own_name(name))
        }

    @property
    def results(self) -> list[wire.Result]:
        """The results of tools under test in the request that holds most of them."""
        return max(map(self._own_results, self.requests), key=len, default=[])

    def _own_name(self, name: str) -> str:
        own = name.removeprefix(self.prefix)
        return own if name.startswith(self.prefix) and own in self.schemas else ""

    def _own_results(self, request: wire.Request) -> list[wire.Result]:
        found = [(self._own_name(one.tool), one.text) for one in request.results]
        return [wire.Result(tool, text) for tool, text in found if tool]

    def reply(self, request: wire.Request) -> wire.Reply:
        """Return the next call of the script, or the final text."""
        with self._lock:
            self.requests.append(request)
        results = self._own_results(request)
        if results and (run := _UNENDED.search(results[-1].text)):
            return self._call(request, Step(FOLLOW, {"run_id": run[1] or run[2]}))
        done = sum(one.tool != FOLLOW for one in results)
        return self._call(request, self.script[done]) if done < len(self.script) else _final()

    def _call(self, request: wire.Request, step: Step) -> wire.Reply:
        if tool := request.tools.get(self.prefix + step.tool):
            arguments = {**_added(tool, self.schemas[step.tool]), **step.arguments}
            return wire.Reply(tool=tool, arguments=arguments)
        if search := next((one for one in wire.SEARCHES if one in request.tools), ""):
            names = ",".join(self.prefix + one for one in self.schemas)
            query = {"query": f"select:{names}", "max_results": len(self.schemas)}
            return wire.Reply(tool=request.tools[search], arguments=query)
        return _final()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        api = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                """Stay silent."""

            def do_GET(self) -> None:
                self._whole(wire.MODELS)

            def do_HEAD(self) -> None:
                self._whole({})

            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers.get("content-length") or 0))
                if self.headers.get("content-encoding") == "gzip":
                    raw = gzip.decompress(raw)
                path = self.path.partition("?")[0]
                if path.endswith(("count_tokens", ":countTokens")):
                    self._whole({"input_tokens": 100, "totalTokens": 100})
                    return
                protocol = wire.protocol(path)
                if protocol is None:
                    api.unknown.append(path)
                    self._whole({"error": {"message": f"no path {path}"}}, 404)
                    return
                body = json.loads(raw)
                reply = api.reply(protocol.read(body))
                if body.get("stream") or ":stream" in path:
                    self._stream(protocol.events(reply))
                else:
                    self._whole(protocol.whole(reply))

            def _whole(self, value: Any, status: int = 200) -> None:
                data = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(data)

            def _stream(self, events: Iterator[tuple[str, Any]]) -> None:
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.send_header("connection", "close")
                self.end_headers()
                for name, value in events:
                    head = f"event: {name}\n" if name else ""
                    data = value if isinstance(value, str) else json.dumps(value)
                    self.wfile.write(f"{head}data: {data}\n\n".encode())
                self.close_connection = True

        return Handler


def _final() -> wire.Reply:
    return wire.Reply(text=FINAL)


def _added(tool: wire.Tool, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a value for each boolean that a client has added to our schema."""
    extra = tool.properties.keys() - schema.get("properties", {}).keys()
    return {one: True for one in sorted(extra) if tool.properties[one].get("type") == "boolean"}
