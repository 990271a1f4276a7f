"""``toolsrv`` as a process on a pseudo-terminal, for tests that answer its questions."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

_MOMENT_S = 0.3


class Terminal:
    """A process whose stdin and stderr are a terminal, and what it says there."""

    def __init__(self, master: int, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.said = ""
        self._master = master

    def read_until(self, words: str, seconds: float = 60) -> None:
        end = time.monotonic() + seconds
        while words not in self.said:
            left = end - time.monotonic()
            assert left > 0, self.said
            if select.select([self._master], [], [], left)[0]:
                try:
                    data = os.read(self._master, 65536)
                except OSError:  # the other side is closed
                    data = b""
                assert data, self.said
                self.said += data.decode("utf-8", "replace")

    def type(self, text: str) -> None:
        """Type a text a moment after the question: ``input`` loses a signal that comes before it reads."""
        time.sleep(_MOMENT_S)
        os.write(self._master, text.encode())

    def drain(self) -> None:
        while select.select([self._master], [], [], 0.2)[0]:
            try:
                data = os.read(self._master, 65536)
            except OSError:
                return
            self.said += data.decode("utf-8", "replace")

    def end(self, seconds: float = 60) -> tuple[int, bytes]:
        """Wait for the end; return the exit code and what is on stdout."""
        assert self.process.stdout is not None
        end = time.monotonic() + seconds
        while self.process.poll() is None:
            assert time.monotonic() < end, self.said
            self.drain()
        self.drain()
        return self.process.returncode, self.process.stdout.read()


@contextmanager
def terminal(*words: str, stdin: bool = True) -> Iterator[Terminal]:
    master, slave = os.openpty()
    code = "import fcntl, os, sys, termios; fcntl.ioctl(2, termios.TIOCSCTTY, 0); "
    code += "os.execv(sys.executable, [sys.executable, '-m', 'toolsrv', *sys.argv[1:]])"
    process = subprocess.Popen(
        [sys.executable, "-c", code, *words],
        stdin=slave if stdin else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=slave,
        start_new_session=True,
        env=os.environ | {"TERM": "dumb", "COLUMNS": "200"},
    )
    os.close(slave)
    try:
        yield Terminal(master, process)
    finally:
        process.kill()
        process.wait()
        os.close(master)
        if process.stdout is not None:
            process.stdout.close()
