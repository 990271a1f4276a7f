"""Published clients, installed from npm or the Python package index into a folder that is kept.

``TOOLSRV_CLIENTS`` names the folder, else it is ``toolsrv-clients`` among the temporary files; all
clients take about 3 GB. Node comes from ``TOOLSRV_NODE``, from the path where it is new enough, or
from npm's package ``node``. What cannot be installed because there is no npm or no network skips
its tests.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from filelock import FileLock

NODE = "22.23.3"
NODE_FROM = 22
"""The oldest major version of Node that all of the clients run on."""
FREE_BYTES = 1 << 30
"""Nothing is installed where less is free."""
SECONDS = 900
_OFFLINE = re.compile(
    "ENOTFOUND|EAI_AGAIN|ETIMEDOUT|ECONNREFUSED|ECONNRESET|ENETUNREACH|network|"
    "NewConnectionError|Temporary failure|Could not fetch URL",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Package:
    """One published program: ``program`` is its command; ``python`` says that pip installs it."""

    name: str
    version: str
    program: str
    python: bool = False
    needs: tuple[str, ...] = ()

    def install(self) -> Path:
        """Return the program, installed if it was not; skip the test where that cannot be."""
        folder = _kept(f"{self.name.strip('@').replace('/', '+')}-{self.version}")
        names = [f"{self.name}{'==' if self.python else '@'}{self.version}", *self.needs]
        program = _bin(folder, python=self.python) / self.program
        if self.python:
            pip = [str(program.parent / "python"), "-m", "pip", "install", "-q", "--retries", "1"]
            _once(folder, [[sys.executable, "-m", "venv", str(folder)], [*pip, *names]])
        else:
            _once(folder, [_npm_install(folder, names)])
        return program


def _bin(folder: Path, *, python: bool) -> Path:
    return folder / "bin" if python else folder / "node_modules" / ".bin"


def _kept(name: str) -> Path:
    place = os.environ.get("TOOLSRV_CLIENTS") or Path(tempfile.gettempdir()) / "toolsrv-clients"
    return Path(place) / name


def _npm_install(folder: Path, names: list[str]) -> list[str]:
    quiet = ["--no-fund", "--no-audit", "--no-save", "--no-update-notifier", "--fetch-retries=1"]
    return ["npm", "install", *quiet, "--prefix", str(folder), *names]


_unreachable: dict[str, str] = {}
"""What a registry's program said when there was no network: it is not tried again."""


def _once(folder: Path, commands: list[list[str]]) -> None:
    """Run the commands that fill a folder, unless a run before has."""
    folder.mkdir(parents=True, exist_ok=True)
    done = folder / "installed"
    with FileLock(folder.with_name(folder.name + ".lock")):
        if done.exists():
            return
        if shutil.disk_usage(folder).free < FREE_BYTES:
            pytest.skip(f"less than 1 GiB is free for {folder.name}")
        for command in commands:
            _fetch(command, folder.name)
        done.touch()


def _fetch(command: list[str], name: str) -> None:
    kind = Path(command[0]).name
    if shutil.which(command[0]) is None:
        pytest.skip(f"no {kind} here")
    if kind not in _unreachable:
        ended = subprocess.run(
            command, capture_output=True, text=True, timeout=SECONDS, check=False
        )
        said = ended.stdout + ended.stderr
        if ended.returncode == 0:
            return
        lines = [line for line in said.splitlines() if _OFFLINE.search(line)]
        assert lines, said
        _unreachable[kind] = lines[0][:200]
    pytest.skip(f"{name} cannot be fetched: {_unreachable[kind]}")


@cache
def node_folder() -> Path:
    """Return the folder of a Node that is new enough; skip the test where there is none."""
    found = os.environ.get("TOOLSRV_NODE") or shutil.which("node")
    if found and _major(found) >= NODE_FROM:
        return Path(found).parent
    folder = _kept(f"node-{NODE}")
    _once(folder, [_npm_install(folder, [f"node@{NODE}"])])
    return folder / "node_modules" / "node" / "bin"


def _major(node: str) -> int:
    said = subprocess.run(
        [node, "--version"], capture_output=True, text=True, timeout=60, check=False
    )
    return int(found[1]) if (found := re.match(r"v(\d+)\.", said.stdout)) else 0
