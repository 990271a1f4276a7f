"""An MCP server of plain JSON lines that misbehaves as its tools' names say; needs no library.

``odd_tool_server.py STATE``: ``STATE`` counts starts and calls, a line each; a file ``STATE.new``
adds a tool to the list.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

STATE = Path(sys.argv[1])
MEGABYTE = b"x" * 1_000_000
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
TOOLS = (
    "fine",
    "endless_line",
    "hundred_megabytes",
    "wrong_ids",
    "loud",
    "dies_late",
    "files",
    "announce",
    "garbage",
)


def main() -> None:
    """Answer line by line until standard input ends."""
    note("starts")
    if "--silent" in sys.argv:
        time.sleep(3600)
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            answer(message["id"], message["method"], message.get("params") or {})


def answer(at: Any, method: str, params: dict[str, Any]) -> None:
    match method:
        case "initialize":
            info = {"name": "odd", "version": "1"}
            capabilities = {"tools": {"listChanged": True}}
            version = params["protocolVersion"]
            result(at, protocolVersion=version, capabilities=capabilities, serverInfo=info)
        case "tools/list":
            note("lists")
            names = [*TOOLS, "fresh"] if STATE.with_suffix(".new").exists() else list(TOOLS)
            result(at, tools=[tool(name) for name in names])
        case "tools/call":
            note(f"calls of {params['name']}")
            call(at, params["name"])
        case _:
            send({"jsonrpc": "2.0", "id": at, "error": {"code": -32601, "message": "no"}})


def tool(name: str) -> dict[str, Any]:
    reads = {"readOnlyHint": name != "dies_late"}
    return {"name": name, "inputSchema": {"type": "object"}, "annotations": reads}


def call(at: Any, name: str) -> None:
    match name:
        case "endless_line":
            os.write(1, b'{"jsonrpc": "2.0", "id": 1, "result": "')
            while True:
                os.write(1, MEGABYTE)
        case "hundred_megabytes":
            head = json.dumps({"jsonrpc": "2.0", "id": at, "result": {"content": []}})[:-3]
            os.write(1, head.encode() + b'{"type": "text", "text": "')
            for _ in range(100):
                os.write(1, MEGABYTE)
            os.write(1, b'"}]}}\n')
        case "wrong_ids":
            for wrong in ("none", 999_999, None, -1, 1.5):
                result(wrong, content=[text("not this one")])
            result(at, content=[text("this one")])
        case "loud":
            for _ in range(200):
                os.write(2, MEGABYTE)
            result(at, content=[text("said")])
        case "dies_late":
            os.write(2, b"out of coal\n")
            os.write(1, b'{"jsonrpc": "2.0", "id": ')
            os._exit(7)
        case "files":
            blob = base64.b64encode(PNG).decode()
            result(
                at,
                content=[
                    text("three files"),
                    {"type": "image", "data": blob, "mimeType": "image/png"},
                    {"type": "audio", "data": blob, "mimeType": "audio/wav"},
                    {
                        "type": "resource",
                        "resource": {"uri": "sea:///a/b.bin", "blob": blob, "mimeType": "x/y"},
                    },
                ],
            )
        case "announce":
            send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
            result(at, content=[text("announced")])
        case "garbage":
            os.write(1, b"\xff\xfe not json\n\n[1]\n{}\n" * 1_000)
            os.write(1, b'{"a":' * 5_000 + b"\n")
            result(at, content=[text("behind it")])
        case _:
            result(at, content=[text(name)])


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def result(at: Any, **value: Any) -> None:
    send({"jsonrpc": "2.0", "id": at, "result": value})


def send(message: dict[str, Any]) -> None:
    data = json.dumps(message).encode() + b"\n"
    while data:
        data = data[os.write(1, data) :]


def note(what: str) -> None:
    with STATE.open("a") as file:
        file.write(f"{what}\n")


if __name__ == "__main__":
    main()
