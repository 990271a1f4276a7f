"""A data folder, a server over HTTP on it, and the tools that clients must find."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from tests.clients.places import Home, Server

from toolsrv.loopback import TOKEN_FILE


def _environment(data: Path) -> dict[str, str]:
    own = {key: value for key, value in os.environ.items() if not key.startswith("TOOLSRV_")}
    return {**own, "TOOLSRV_DATA_DIR": str(data)}


@pytest.fixture(scope="session")
def served(built_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """``toolsrv serve --http`` on a data folder that servers on stdio share."""
    data = tmp_path_factory.mktemp("clients") / "data"
    shutil.copytree(built_folder, data)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "toolsrv", "serve", "--http", "--port", str(port)]
    process = subprocess.Popen(command, env=_environment(data), stderr=subprocess.DEVNULL)
    end = time.monotonic() + 120
    while True:
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                break
        assert process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.2)
    yield Server(data, port, (data / TOKEN_FILE).read_text("utf-8").strip())
    process.terminate()
    process.wait(30)


@pytest.fixture(scope="session")
def schemas(served: Server) -> dict[str, dict[str, Any]]:
    """The input schemas of the server's tools by name."""

    async def listed() -> dict[str, dict[str, Any]]:
        parameters = StdioServerParameters(
            command=sys.executable, args=["-m", "toolsrv", "serve"], env=_environment(served.data)
        )
        async with Client(parameters) as client:
            return {one.name: one.input_schema for one in (await client.list_tools()).tools}

    return asyncio.run(listed())


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def home(tmp_path: Path, served: Server) -> Iterator[Home]:
    """A scratch home; what clients leave running in it is ended."""
    one = Home(tmp_path / "home", served)
    yield one
    one.end_leftovers()
