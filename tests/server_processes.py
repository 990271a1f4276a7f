"""Servers as processes: started with pipes, greeted over stdio, killed."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import Any

HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
Wire = Callable[..., dict[str, Any]]
"""The fixture ``wire``: one message to a process, and its answer."""


def spawn(*command: str, **options: Any) -> subprocess.Popen[str]:
    """Start a process with text pipes."""
    pipe = subprocess.PIPE
    pipes: dict[str, Any] = {"stdin": pipe, "stdout": pipe, "stderr": pipe}
    return subprocess.Popen(command, text=True, **pipes | options)


def opened(process: subprocess.Popen[str], wire: Wire) -> subprocess.Popen[str]:
    """Return a process after its handshake."""
    wire(process, HELLO)
    wire(process, INITIALIZED)
    return process


def end(process: subprocess.Popen[str]) -> None:
    """Kill a process and close its pipes."""
    process.kill()
    process.wait(timeout=20)
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            try:
                pipe.close()
            except BrokenPipeError:
                continue
