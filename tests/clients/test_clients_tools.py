"""Published clients without a model: inspectors, command lines, bridges."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from mcp import Client, StdioServerParameters
from tests.clients.places import Ended, Home
from tests.clients.tool_clients import API, PROXY, REMOTE, TOOL_CLIENTS, ToolClient

pytestmark = pytest.mark.nightly
CALL = {"id": API, "arguments": {"country": "Peru"}}
STARTS = 4


def _cases() -> list[Any]:
    return [
        pytest.param(client, http, id=f"{client.package.program}-{'http' if http else 'stdio'}")
        for client in TOOL_CLIENTS
        for http in ((False, True) if client.http else (False,))
    ]


@pytest.mark.parametrize(("client", "http"), _cases())
def test_a_client_lists_and_calls_the_tools_that_the_entry_of_a_project_names(
    client: ToolClient, http: bool, home: Home, schemas: dict[str, dict[str, Any]]
) -> None:
    program = str(client.package.install())
    over = ("--http", "--port", str(home.server.port)) if http else ()
    home.toolsrv("connect", "claude-code", "--scope", "project", *over)

    def run(words: tuple[str, ...]) -> Ended:
        file = str(home.work / ".mcp.json")
        ended = home.run([program, *(one.replace("CONFIG", file) for one in words)])
        for _ in range(STARTS if client.again else 0):
            if client.again not in ended.output + ended.errors:
                break
            ended = home.run([program, *(one.replace("CONFIG", file) for one in words)])
        assert ended.code == 0, ended
        return ended

    if client.first:
        run(client.first)
    if client.listing:
        listed = run(client.listing)
        for name, schema in schemas.items():
            assert f'"{name}"' in listed.output
            for value in schema.get("properties", {}).values():
                assert value["description"] in listed.output
    assert "Lima" in run(client.calling).output
    if client.last:
        run(client.last)


@pytest.mark.anyio
@pytest.mark.parametrize("era", ["auto", "legacy"])
async def test_a_client_on_stdio_reaches_the_http_server_through_mcp_remote(
    era: str, home: Home, schemas: dict[str, dict[str, Any]]
) -> None:
    header = f"Authorization:Bearer {home.server.token}"
    parameters = StdioServerParameters(
        command=str(REMOTE.install()), args=[home.server.url, "--header", header], env=home.env
    )
    async with Client(parameters, mode=era) as client:
        tools = (await client.list_tools()).tools
        assert {one.name: one.input_schema for one in tools} == schemas
        result = await client.call_tool("call_api", CALL)
    assert not result.is_error
    assert "Lima" in str(result.content)
    assert result.structured_content is not None
    assert result.structured_content["response"]["capital"] == "Lima"


def test_mcpo_offers_the_tools_as_an_openapi_server(
    home: Home, schemas: dict[str, dict[str, Any]]
) -> None:
    with _proxy(home) as url, httpx.Client(base_url=url, timeout=120) as http:
        http.headers["Authorization"] = "Bearer own"
        document = http.get("/toolsrv/openapi.json").json()
        assert set(document["paths"]) == {f"/{name}" for name in schemas}
        for name, schema in schemas.items():
            form = document["components"]["schemas"].get(f"{name}_form_model", {"properties": {}})
            for key, value in schema.get("properties", {}).items():
                assert form["properties"][key]["description"] == value["description"]
        called = http.post("/toolsrv/call_api", json=CALL)
        assert called.status_code == 200
        assert "Lima" in called.text
        wrong = http.post("/toolsrv/call_api", json={**CALL, "id": API[:-1]})
        assert wrong.status_code == 500  # its word for any error of a tool
        assert API in wrong.text  # the hint is there


@contextmanager
def _proxy(home: Home) -> Iterator[str]:
    program = PROXY.install()
    home.toolsrv("connect", "claude-code", "--scope", "project")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = ["--config", ".mcp.json", "--host", "127.0.0.1", "--port", str(port)]
    log = home.folder / "log"
    with log.open("w") as file:
        process = subprocess.Popen(
            [program, *options, "--api-key", "own"],
            cwd=home.work, env=home.env, stdout=file, stderr=file,
        )  # fmt: skip
    try:
        end = time.monotonic() + 120
        while "Uvicorn running" not in log.read_text():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < end, log.read_text()
            time.sleep(0.2)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)
