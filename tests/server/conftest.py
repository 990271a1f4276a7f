"""Every test gets its own data folder; clients over every transport and in both eras."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Its stdio client keeps the standard error of the moment it is imported: never a runner's stand-in.
import mcp.client.stdio  # noqa: F401
import pytest
from click.testing import CliRunner, Result
from tests.catalog_commands import Seaside
from tests.client_files import machine
from tests.server_processes import end, spawn

from toolsrv.cli.main import cli
from toolsrv.settings import load

HERE = Path(__file__).parent
SCRIPTED = HERE / "scripted_server.py"
SOURCES = {key: value for key, value in os.environ.items() if key == "PYTHONPATH"}
"""What a client does not hand on to a server by itself: where these sources are."""
TOOLSRV = [sys.executable, "-m", "toolsrv"]
Connect = Callable[[], AbstractAsyncContextManager[Any]]
MATRIX = "test_server_mcp.py"
"""The file whose tests run over each transport in each era at every commit."""
PAIRS = {("memory", "auto"), ("stdio", "legacy"), ("http", "auto")}
"""Those of a commit elsewhere; the others run at night."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave the rest of the matrix of transports and eras to the nightly gate."""
    for item in items:
        call = getattr(item, "callspec", None)
        if call is None or item.path.parent != HERE or item.path.name == MATRIX:
            continue
        pair = (call.params.get("transport"), call.params.get("era"))
        if None not in pair and pair not in PAIRS:
            item.add_marker(pytest.mark.nightly)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def no_keyring(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The developer's own keyring is never touched."""
    import keyring
    from keyring.backends import fail

    before = keyring.get_keyring()
    keyring.set_keyring(fail.Keyring())  # type: ignore[no-untyped-call]
    monkeypatch.delenv("RAPIDAPI_KEY", raising=False)
    yield
    keyring.set_keyring(before)


@pytest.fixture(autouse=True)
def data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The test's own, still empty data folder; nothing of the developer's settings is seen."""
    for name in [one for one in os.environ if one.startswith("TOOLSRV_")]:
        monkeypatch.delenv(name)
    folder = tmp_path / "data"
    monkeypatch.setenv("TOOLSRV_DATA_DIR", str(folder))
    return folder


@pytest.fixture
def ready_dir(data_dir: Path, built_folder: Path) -> Path:
    """The test's own data folder with a built index."""
    shutil.copytree(built_folder, data_dir)
    return data_dir


@pytest.fixture
def run() -> Callable[..., Result]:
    """Run the command line in this process, rim included."""

    def invoke(*arguments: str, stdin: str | bytes | None = None) -> Result:
        return CliRunner().invoke(cli, list(arguments), input=stdin, prog_name="toolsrv")

    return invoke


@pytest.fixture
def source(tmp_path: Path) -> Seaside:
    """The folder ``seaside``, to write and to import."""
    return Seaside(tmp_path / "seaside")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home in which ``connect`` looks for clients: empty, on Linux."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setattr("toolsrv.cli.connect.this_machine", lambda: machine(folder))
    return folder


@dataclass(frozen=True)
class HttpServer:
    """A server process on loopback: where, the header it wants, the link of its web page."""

    url: str
    token: str
    link: str
    process: subprocess.Popen[str]


def http_server(command: list[str], **kwargs: Any) -> HttpServer:
    """Start a server on HTTP and read its address, its token and the link of its web page."""
    process = spawn(*command, **kwargs)
    assert process.stderr is not None
    lines: list[str] = []
    while len(lines) < 3:
        line = process.stderr.readline()
        assert line, f"the server ended: {process.wait()}"
        if "://" in line or line.startswith("Authorization"):
            lines.append(line.strip())
    threading.Thread(target=process.stderr.read, daemon=True).start()
    token = lines[1].removeprefix("Authorization: Bearer ")
    return HttpServer(lines[0].split()[-1], token, lines[2].split()[-1], process)


@pytest.fixture(scope="session")
def scripted_http(
    built_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[HttpServer]:
    """One scripted server on HTTP for the whole session."""
    folder = tmp_path_factory.mktemp("http") / "data"
    shutil.copytree(built_folder, folder)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TOOLSRV_")}
    environment["TOOLSRV_DATA_DIR"] = str(folder)
    server = http_server([sys.executable, str(SCRIPTED), "http"], env=environment)
    yield server
    end(server.process)


@pytest.fixture
def start_http() -> Iterator[Callable[..., HttpServer]]:
    """Return a function that starts a server on HTTP with the given settings.

    A scripted one, or what ``command`` starts.
    """
    started: list[HttpServer] = []

    def start(settings: dict[str, str], *command: str) -> HttpServer:
        words = list(command) or [sys.executable, str(SCRIPTED), "http"]
        started.append(http_server(words, env=os.environ | settings))
        return started[-1]

    yield start
    for one in started:
        end(one.process)


@pytest.fixture(params=["memory", "stdio", "http"])
def transport(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(params=["auto", "legacy"], ids=["2026-07-28", "2025-11-25"])
def era(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def connect(transport: str, era: str, ready_dir: Path, request: pytest.FixtureRequest) -> Connect:
    """Return a factory of clients of a scripted server, over the transport and in the era."""

    @asynccontextmanager
    async def client() -> AsyncIterator[Any]:
        from mcp import Client, StdioServerParameters

        match transport:
            case "memory":
                async with _in_memory(ready_dir, era) as one:
                    yield one
            case "stdio":
                parameters = StdioServerParameters(
                    command=sys.executable,
                    args=[str(SCRIPTED), "stdio"],
                    env={"TOOLSRV_DATA_DIR": str(ready_dir), **SOURCES},
                )
                async with Client(parameters, mode=era) as one:
                    yield one
            case _:
                server: HttpServer = request.getfixturevalue("scripted_http")
                async with over_http(server.url, server.token, era) as one:
                    yield one

    return client


@asynccontextmanager
async def _in_memory(folder: Path, era: str) -> AsyncIterator[Any]:
    import runpy

    from mcp import Client

    from toolsrv.mcp_server.server import build_server

    settings = load({"data_dir": str(folder)}).settings
    bench = runpy.run_path(str(SCRIPTED))["scripted_bench"](settings)
    try:
        async with Client(build_server(bench, warm=False), mode=era) as one:
            yield one
    finally:
        await bench.aclose()


@asynccontextmanager
async def over_http(url: str, token: str, era: str) -> AsyncIterator[Any]:
    """Connect with a bearer token."""
    import httpx2
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    headers = {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(streamable_http_client(url, http_client=http), mode=era) as one,
    ):
        yield one


@pytest.fixture
def wire() -> Callable[..., dict[str, Any]]:
    """Return a function that sends one JSON-RPC line to a process and reads lines to its answer."""

    def exchange(process: subprocess.Popen[str], message: dict[str, Any]) -> dict[str, Any]:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        process.stdin.flush()
        while "id" in message:
            answer: dict[str, Any] = json.loads(process.stdout.readline())
            if answer.get("id") == message["id"]:
                return answer
        return {}

    return exchange
