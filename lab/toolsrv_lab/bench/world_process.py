"""A ``toolsrv world serve`` process on a free port of loopback."""

from __future__ import annotations

import os
import re
import secrets
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Self

from toolsrv_lab.bench.machine import Memory, memory
from toolsrv_registry.errors import DataError

_START_S = 120.0
_END_S = 20.0


class WorldProcess:
    """A world on ``data_dir`` in a mode, the other settings being the defaults; a context manager.

    ``host``, ``port`` and ``token`` are known inside the context.
    """

    host = "127.0.0.1"

    def __init__(self, data_dir: Path, mode: str) -> None:
        self.token = secrets.token_urlsafe(32)
        self.port = 0
        environment = {k: v for k, v in os.environ.items() if not k.startswith("TOOLSRV_")}
        self._process = subprocess.Popen(  # noqa: S603 - our own program
            [
                *(sys.executable, "-m", "toolsrv", "--data-dir", str(data_dir)),
                *("world", "serve", "--port", "0", "--mode", mode),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=environment | {"TOOLSRV_TOKEN": self.token},
        )

    def __enter__(self) -> Self:
        try:
            self.port = self._port()
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def memory(self) -> Memory:
        """Return the process's memory."""
        return memory(self._process.pid)

    def cpu_seconds(self) -> float:
        """Return the processor time that it has used, 0.0 where that cannot be known."""
        try:
            stat = Path(f"/proc/{self._process.pid}/stat").read_text(encoding="utf-8")
        except OSError:
            return 0.0
        fields = stat.rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self) -> float:
        """End it as a service manager does, by force where that is not enough; return seconds."""
        started = time.perf_counter()
        self._process.terminate()
        try:
            self._process.wait(timeout=_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stderr is not None:
            self._process.stderr.close()
        return time.perf_counter() - started

    def _port(self) -> int:
        """Read what the process says of its address."""
        pipe = self._process.stderr
        if pipe is None:
            raise TypeError("the process has no stderr")
        said, deadline = b"", time.monotonic() + _START_S
        while not (found := re.search(rb"http://127\.0\.0\.1:(\d+)/", said)):
            left = max(0.0, deadline - time.monotonic())
            chunk = os.read(pipe.fileno(), 4096) if select.select([pipe], [], [], left)[0] else b""
            if not chunk:
                lines = said.decode("utf-8", "replace").strip().splitlines()
                raise DataError(
                    f"the world did not start{f': {lines[0][:300]}' if lines else ''}",
                    hint="run 'toolsrv world serve' by hand to see why",
                )
            said += chunk
        return int(found[1])
