"""Handshake with a server on stdio that is started as a client starts it.

The process gets the environment of the barest client, a short list of variables and those of the
entry, so that what works here works there. Imports nothing heavy.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any

import toolsrv
from toolsrv.clients.known import ServerCommand
from toolsrv.mcp_server.handshake_cache import ACKNOWLEDGED, LISTEN
from toolsrv.plain import one_line
from toolsrv_registry.errors import DataError

REVISIONS = ("2025-11-25", "2026-07-28", "2025-06-18", "2025-03-26", "2024-11-05")
"""Versions of the protocol that clients open with; ``server/discover`` opens the second."""
TIMEOUT_S = 30.0
"""Seconds for one session; the most patient clients wait so long."""
PROMPT_S = 0.5
"""A start with kept answers takes less."""
END_S = 5.0
LINE_LIMIT = 4_000_000
OPENING_REQUESTS = 2
LINE = 300
"""Characters of a command line that are told."""
TAIL = 400
"""Characters of standard error that are told, its last ones."""

_DISCOVERED = "2026-07-28"
_LISTEN = "listen"
_CLIENT = {"name": "toolsrv-doctor", "version": toolsrv.__version__}
_INHERITED = (
    "HOME", "LOGNAME", "PATH", "SHELL", "USER", "LANG", "LC_ALL", "TERM", "TMPDIR", "TZ",
)  # fmt: skip
"""What Codex hands on, the barest of the clients."""
_INHERITED_WINDOWS = (
    "APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PATHEXT", "PROCESSOR_ARCHITECTURE",
    "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "USERNAME", "USERPROFILE",
)  # fmt: skip


@dataclass(frozen=True)
class Handshake:
    """What a server said: its name and version, how many tools; ``seconds`` from start to the list."""

    server: str
    version: str
    tools: int
    seconds: float


def bare_environment(env: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a server in the barest client, with an entry's ``env``."""
    names = _INHERITED_WINDOWS if sys.platform == "win32" else _INHERITED
    return {name: os.environ[name] for name in names if name in os.environ} | dict(env)


def warm_handshake_cache(start: ServerCommand, revisions: Sequence[str] = REVISIONS) -> Handshake:
    """Open a session in each version, so that the first answers are kept; return the fastest.

    A start that had nothing kept is repeated at the end, to see how long one takes from now on.

    Raises:
        DataError: as ``shake_hands``.
    """
    heard = [shake_hands(start, revision) for revision in revisions]
    if heard[0].seconds > PROMPT_S:
        heard.append(shake_hands(start, revisions[0]))
    return min(heard, key=lambda one: one.seconds)


def shake_hands(
    start: ServerCommand, revision: str = REVISIONS[0], timeout_s: float = TIMEOUT_S
) -> Handshake:
    """Start the server, open a session, list its tools, and end it. Blocks.

    Raises:
        DataError: it cannot be started, ends, says nothing in time, or answers with an error.
    """
    begun = time.monotonic()
    with session(start, timeout_s) as one:
        opened, listed = one.open(revision)
        seconds = time.monotonic() - begun
    return _handshake_result(opened, listed, seconds)


@contextlib.contextmanager
def session(start: ServerCommand, timeout_s: float = TIMEOUT_S) -> Iterator[StdioSession]:
    """Start a server, and end it with the block; ``timeout_s`` is for its first answers.

    Raises:
        DataError: as ``shake_hands``, also for what is asked in the block.
    """
    with tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(  # noqa: S603 - the command of an entry, without a shell
                [start.command, *start.arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=bare_environment(start.env),
            )
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            raise DataError(
                f"{start.command} cannot be started: {why}", hint="toolsrv connect writes it anew"
            ) from error
        one = StdioSession(process, time.monotonic() + timeout_s)
        try:
            yield one
        except _FaultError as error:
            one.end()
            raise DataError(
                f"{start.line[:LINE]}: {error}{_stderr_tail(errors)}",
                hint="start that command in a terminal to see more",
            ) from None
        finally:
            one.end()


class _FaultError(Exception):
    """What is wrong with a session."""


class StdioSession:
    """One server, its lines, and when it must have answered (monotonic). Made by ``session``."""

    def __init__(self, process: subprocess.Popen[bytes], deadline: float) -> None:
        self._process = process
        self._deadline = deadline
        self._lines: queue.Queue[bytes] = queue.Queue()
        self._calls = 0
        self._reader = threading.Thread(target=self._read, name="handshake", daemon=True)
        self._reader.start()

    def open(self, revision: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the results of the opening request and of ``tools/list``."""
        if revision == _DISCOVERED:
            about = "io.modelcontextprotocol/"
            meta = {
                f"{about}protocolVersion": revision,
                f"{about}clientInfo": _CLIENT,
                f"{about}clientCapabilities": {},
            }
            opened = self._ask(1, "server/discover", {"_meta": meta})
            if kinds := _list_changes(opened):
                self._listen({"_meta": meta, "notifications": kinds})
            return opened, self._ask(2, "tools/list", {"_meta": meta})
        hello = {"protocolVersion": revision, "capabilities": {}, "clientInfo": _CLIENT}
        opened = self._ask(1, "initialize", hello)
        self._send({"method": "notifications/initialized"})
        return opened, self._ask(2, "tools/list", {})

    def call(self, tool: str, arguments: Mapping[str, Any], timeout_s: float) -> dict[str, Any]:
        """Call a tool after ``open`` in a version before 2026-07-28; return its typed result."""
        self._deadline = time.monotonic() + timeout_s
        self._calls += 1
        params = {"name": tool, "arguments": arguments}
        result = self._ask(OPENING_REQUESTS + self._calls, "tools/call", params)
        if result.get("isError"):
            parts = result.get("content")
            texts = (
                [str(one.get("text", "")) for one in parts if isinstance(one, dict)]
                if isinstance(parts, list)
                else []
            )
            raise _FaultError(f"{tool} failed: {one_line(' '.join(texts), TAIL)}")
        found = result.get("structuredContent")
        return found if isinstance(found, dict) else {}

    def end(self) -> None:
        """Close its standard input and wait a while, then kill it; a second time does nothing."""
        process = self._process
        with contextlib.suppress(OSError):
            if process.stdin is not None:
                process.stdin.close()
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._reader.join(END_S)
        if process.stdout is not None and not self._reader.is_alive():  # else a child holds it
            process.stdout.close()

    def _listen(self, params: Mapping[str, Any]) -> None:
        """Subscribe as clients do before they list the tools; a refusal is no fault."""
        self._send({"id": _LISTEN, "method": LISTEN, "params": params})
        while (message := self._next(LISTEN)).get("id") != _LISTEN:
            if message.get("method") == ACKNOWLEDGED:
                return

    def _next(self, method: str) -> dict[str, Any]:
        """Return the next message; ``method`` is what waits for it."""
        try:
            line = self._lines.get(timeout=max(0.0, self._deadline - time.monotonic()))
        except queue.Empty:
            raise _FaultError(f"no answer to {method} in time") from None
        if not line:
            raise _FaultError(f"it ended before it answered {method}")
        return _message(line)

    def _ask(self, known: int, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        self._send({"id": known, "method": method, "params": params})
        while True:
            message = self._next(method)
            if message.get("id") != known:
                continue
            if isinstance(result := message.get("result"), dict):
                return result
            error = message.get("error")
            told = error.get("message") if isinstance(error, dict) else None
            raise _FaultError(f"{method} was refused: {one_line(str(told), TAIL)}")

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None  # noqa: S101 - a pipe
        try:
            self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            raise _FaultError("it ended at once") from None

    def _read(self) -> None:
        assert self._process.stdout is not None  # noqa: S101 - a pipe
        with contextlib.suppress(OSError, ValueError):
            while line := self._process.stdout.readline(LINE_LIMIT):
                self._lines.put(line)
        self._lines.put(b"")


def _list_changes(opened: Mapping[str, Any]) -> dict[str, bool]:
    """Return the lists whose changes a server announces, as a client subscribes to them."""
    able = opened.get("capabilities")
    kinds = able if isinstance(able, dict) else {}
    return {
        f"{kind}ListChanged": True
        for kind in ("tools", "prompts", "resources")
        if isinstance(kinds.get(kind), dict) and kinds[kind].get("listChanged") is True
    }


def _message(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        raise _FaultError(
            f"a line on standard output is no message: {one_line(line.decode(errors='replace'), 80)}"
        ) from None
    return found if isinstance(found, dict) else {}


def _handshake_result(
    opened: Mapping[str, Any], listed: Mapping[str, Any], seconds: float
) -> Handshake:
    meta = opened.get("_meta")
    about = opened.get("serverInfo") or (
        meta.get("io.modelcontextprotocol/serverInfo") if isinstance(meta, dict) else None
    )
    info = about if isinstance(about, dict) else {}
    tools = listed.get("tools")
    return Handshake(
        server=one_line(str(info.get("name", "")), 80),
        version=one_line(str(info.get("version", "")), 40),
        tools=len(tools) if isinstance(tools, list) else 0,
        seconds=seconds,
    )


def _stderr_tail(errors: IO[bytes]) -> str:
    size = errors.seek(0, os.SEEK_END)
    errors.seek(max(0, size - 4 * TAIL))
    words = one_line(errors.read().decode(errors="replace"), 4 * TAIL)[-TAIL:].strip()
    return f" ({words})" if words else ""
