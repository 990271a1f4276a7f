"""A ``toolsrv world serve`` process on a free port of loopback."""

from __future__ import annotations

import os
import re
import secrets
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Self

import psutil

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
            times = psutil.Process(self._process.pid).cpu_times()
        except psutil.Error:
            return 0.0
        return float(times.user + times.system)

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
        said = b""
        patience = threading.Timer(_START_S, self._process.kill)
        patience.start()
        while not (found := re.search(rb"http://127\.0\.0\.1:(\d+)/", said)):
            line = pipe.readline()  # a pipe of Windows cannot be waited for with a time limit
            if not line:
                patience.cancel()
                lines = said.decode("utf-8", "replace").strip().splitlines()
                raise DataError(
                    f"the world did not start{f': {lines[0][:300]}' if lines else ''}",
                    hint="run 'toolsrv world serve' by hand to see why",
                )
            said += line
        patience.cancel()
        return int(found[1])
