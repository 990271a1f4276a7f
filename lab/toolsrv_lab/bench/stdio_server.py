"""A ``toolsrv serve`` process on pipes: JSON lines out and in, its memory, its end."""

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
from pathlib import Path
from typing import Any, Literal, Self

from toolsrv_lab.bench.report import Memory, memory
from toolsrv_registry.errors import DataError

Era = Literal["2025-11-25", "2026-07-28"]
OLD_ERA: Era = "2025-11-25"
NEW_ERA: Era = "2026-07-28"

_CLIENT = {"name": "toolsrv-bench", "version": "1"}
_END_S = 10.0


class ServerProcess:
    """A server on ``data_dir`` with the default settings; a context manager that ends it.

    ``seconds()`` counts from the moment before the process was started.
    """

    def __init__(self, data_dir: Path, *, era: Era, patience_s: float = 120.0) -> None:
        self._era = era
        self._patience = patience_s
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._id = 0
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        # Settings of the person who measures would make the figures their own.
        environment = {k: v for k, v in os.environ.items() if not k.startswith("TOOLSRV_")}
        self._started = time.perf_counter()
        self._process = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-m", "toolsrv", "--data-dir", str(data_dir), "serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=environment,
        )
        threading.Thread(target=self._collect, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def seconds(self) -> float:
        """Return the seconds since the process was started."""
        return time.perf_counter() - self._started

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def memory(self) -> Memory:
        """Return the process's memory."""
        return memory(self.pid)

    def open(self) -> None:
        """Do the era's opening: a request, and in the older era a notification.

        Raises:
            DataError: The server ended, was silent or answered with an error.
        """
        if self._era == NEW_ERA:
            self.request("server/discover")
            return
        self.request("initialize", protocolVersion=OLD_ERA, capabilities={}, clientInfo=_CLIENT)

    def request(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a request and return its result; other messages of the server are passed over.

        Raises:
            DataError: The server ended, was silent or answered with an error.
        """
        self._id += 1
        self._send({"id": self._id, "method": method, "params": params | self._meta()})
        deadline = time.monotonic() + self._patience
        while True:
            message = self._read(method, deadline)
            if message.get("id") == self._id:
                break
        if method == "initialize":
            self._send({"method": "notifications/initialized"})
        if "result" not in message:
            raise DataError(f"the server answered {method} with {message.get('error')}")
        result: dict[str, Any] = message["result"]
        return result

    def close(self) -> None:
        """End the process: by closing its stdin, by force where that is not enough."""
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=_END_S)
        finally:
            self._process.kill()
            self._process.wait()
            self._log.close()

    def _meta(self) -> dict[str, Any]:
        if self._era == OLD_ERA:
            return {}
        prefix = "io.modelcontextprotocol/"
        return {
            "_meta": {
                f"{prefix}protocolVersion": NEW_ERA,
                f"{prefix}clientInfo": _CLIENT,
                f"{prefix}clientCapabilities": {},
            }
        }

    def _send(self, message: dict[str, Any]) -> None:
        pipe = self._process.stdin
        if pipe is None:
            raise TypeError("the process has no stdin")
        try:
            pipe.write(json.dumps({"jsonrpc": "2.0"} | message).encode() + b"\n")
            pipe.flush()
        except BrokenPipeError:
            raise self._ended(str(message["method"])) from None

    def _read(self, method: str, deadline: float) -> dict[str, Any]:
        """Return the next message, or raise DataError after ``deadline``."""
        try:
            line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            raise DataError(
                f"the server did not answer {method} within {self._patience:g} s",
                hint="try again when the machine is less busy",
            ) from None
        if not line.endswith(b"\n"):
            raise self._ended(method)
        try:
            message = json.loads(line)
        except ValueError:
            raise DataError(f"the server wrote a line that is not JSON: {line[:80]!r}") from None
        return message if isinstance(message, dict) else {}

    def _collect(self) -> None:
        """Read the lines of stdout to its end: a pipe of Windows has no reads with a time limit."""
        pipe = self._process.stdout
        if pipe is None:
            raise TypeError("the process has no stdout")
        with pipe:
            for line in pipe:
                self._lines.put(line)
        self._lines.put(b"")

    def _ended(self, method: str) -> DataError:
        self._log.seek(0)
        lines = self._log.read().decode("utf-8", "replace").strip().splitlines()
        said = f": {lines[-1][:300]}" if lines else ""
        return DataError(
            f"the server ended before it answered {method}{said}",
            hint="run 'toolsrv serve' by hand to see why",
        )
