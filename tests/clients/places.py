"""The scratch home that a client under test runs in, and its processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from tests.clients.installed import node_folder

SECONDS = 480
"""A client's whole conversation, on a loaded machine."""


@dataclass(frozen=True)
class Server:
    """What the clients connect to: a data folder and, beside stdio, an address with its token."""

    data: Path
    port: int
    token: str

    @property
    def url(self) -> str:
        """The address over HTTP."""
        return f"http://127.0.0.1:{self.port}/mcp"


@dataclass(frozen=True)
class Ended:
    """How a client ended and what it printed."""

    code: int
    output: str
    errors: str


@dataclass
class Home:
    """A home folder of its own, with a work folder in it, and the variables of a client there."""

    folder: Path
    server: Server
    env: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.work.mkdir(parents=True)
        paths = (str(node_folder()), "/usr/local/bin", "/usr/bin", "/bin")
        self.env |= {
            "HOME": str(self.folder),
            "PATH": os.pathsep.join(paths),
            "LANG": "C.UTF-8",
            "NO_COLOR": "1",
            "TOOLSRV_DATA_DIR": str(self.server.data),
            **{key: value for key, value in os.environ.items() if key == "PYTHONPATH"},
        }

    @property
    def work(self) -> Path:
        """The folder that a client is started in."""
        return self.folder / "work"

    def write(self, path: str, value: Any) -> Path:
        """Write a file below the home: a text as it is, anything else as JSON."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(value if isinstance(value, str) else json.dumps(value, indent=2), "utf-8")
        return file

    def toolsrv(self, *arguments: str) -> Ended:
        """Run a command of ``toolsrv`` in this home; it must succeed."""
        ended = self.run([sys.executable, "-m", "toolsrv", *arguments])
        assert ended.code == 0, ended
        return ended

    def run(self, command: Sequence[str], more: Mapping[str, str] | None = None) -> Ended:
        """Run a client to its end, without a terminal."""
        process = subprocess.Popen(
            command,
            cwd=self.work,
            env={**self.env, **(more or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            output, errors = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, errors = process.communicate()
            raise AssertionError(f"no end in {SECONDS} s\n{output}\n{errors}") from None
        return Ended(process.returncode, output, errors)

    def end_leftovers(self) -> None:
        """Kill the processes that have this home as theirs: clients leave daemons behind."""
        for one in psutil.process_iter():
            try:
                if one.environ().get("HOME") == str(self.folder):
                    one.kill()
            except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
                continue
