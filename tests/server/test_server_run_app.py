"""The tree of a run as a view of the client (MCP Apps), in a real browser where there is one."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

import pytest

from toolsrv.trees.live import shown_live
from toolsrv.trees.page import app, page
from toolsrv_runtime.outcome import BacktrackEvent, CallEvent, ObservationEvent, ThoughtEvent

HERE = Path(__file__).parent
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
SOURCES = {key: value for key, value in os.environ.items() if key == "PYTHONPATH"}
NASTY = "</pre></script><img src=x onerror=alert(1)>"


def live_run() -> Any:
    """A run in the middle of its work."""
    from toolsrv.runs.queue import Run
    from toolsrv_runtime.solve import SolveOptions

    run = Run(f"a task {NASTY}", SolveOptions())
    run.status = "working"
    for event in (
        ThoughtEvent(seconds=1, node=1, parent=0, depth=1, text=NASTY),
        CallEvent(
            seconds=1, node=1, depth=1, api_id="A/b/c", function="c_for_b", arguments={"x": NASTY}
        ),
        ObservationEvent(seconds=2, node=1, depth=1, status=500, text=NASTY, source="live"),
        BacktrackEvent(seconds=2, node=1, to=0, reason="failed"),
        ThoughtEvent(seconds=3, node=2, parent=0, depth=1, text="another way"),
        ThoughtEvent(seconds=3, node=9, parent=7, depth=4, text="its parent is forgotten"),
    ):
        run.add_event(event)
    return run


def test_a_run_that_has_not_ended_is_a_tree_of_what_is_known_so_far() -> None:
    shown = shown_live(live_run(), 0)
    assert [(one.id, one.parent, one.kind) for one in shown.nodes] == [
        (0, -1, "root"), (1, 0, "call"), (2, 0, "thought"), (9, 0, "thought"),
    ]  # fmt: skip
    assert (shown.nodes[1].status, shown.nodes[1].ok, shown.nodes[1].pruned) == (500, False, True)
    html = page(shown)
    assert '<body data-state="live">' in html
    assert "<img" not in html
    assert "data-state=" in page(shown.model_copy(update={"status": "answered"}))


@pytest.mark.anyio
async def test_the_view_is_a_resource_that_needs_nothing_and_tools_name_it(connect: Any) -> None:
    async with connect() as one:
        tools = {tool.name: tool for tool in (await one.list_tools()).tools}
        uri = tools["show_run"].meta["ui"]["resourceUri"]
        read = (await one.read_resource(uri)).contents[0]
        listed = {str(found.uri) for found in (await one.list_resources()).resources}
        given = {"task": "easy", "wait_s": 60}
        run = (await one.call_tool("solve_task", given)).structured_content
        told = (await one.read_resource(f"toolsrv://runs/{run['run_id']}/page")).contents[0]
    assert {name for name, tool in tools.items() if tool.meta} == {"solve_task", "show_run"}
    assert uri in listed
    assert read.mime_type == "text/html;profile=mcp-app"
    assert read.text == app()
    for outside in ("http://", "https://", "src="):
        assert outside not in read.text
    assert told.mime_type == "text/html"
    assert '<body data-state="ended">' in told.text
    assert "It is 42." in told.text


class Host:
    """A page on loopback that is an MCP host: its requests go to a real server over stdio."""

    def __init__(self, folder: Path) -> None:
        self.reports: dict[str, dict[str, Any]] = {}
        self.done = threading.Event()
        self._folder = folder
        self._loop = asyncio.new_event_loop()
        self._client: Any = None
        self._ready, self._leave = threading.Event(), asyncio.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._main(),))
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}/"

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(120)
        threading.Thread(target=self._http.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._loop.call_soon_threadsafe(self._leave.set)
        self._thread.join(30)
        self._loop.close()

    async def _main(self) -> None:
        from mcp import Client, StdioServerParameters

        parameters = StdioServerParameters(
            command=sys.executable,
            args=[str(HERE / "scripted_server.py"), "stdio"],
            env={"TOOLSRV_DATA_DIR": str(self._folder), **SOURCES},
        )
        async with Client(parameters) as self._client:
            self._ready.set()
            await self._leave.wait()

    async def _rpc(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if method == "resources/read":
            told = await self._client.read_resource(params["uri"])
        else:
            told = await self._client.call_tool(params["name"], params["arguments"])
        return {"result": told.model_dump(by_alias=True, mode="json", exclude_none=True)}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        host = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                text = app() if self.path == "/app" else (HERE / "app_host.html").read_text()
                self._send(text, "text/html; charset=utf-8")

            def do_POST(self) -> None:
                given = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if self.path == "/report":
                    host.reports[given.pop("name")] = given
                    self._send("{}", "application/json")
                    if "end" in host.reports:
                        host.done.set()
                    return
                answer = asyncio.run_coroutine_threadsafe(host._rpc(**given), host._loop)
                self._send(json.dumps(answer.result(180)), "application/json")

            def _send(self, text: str, kind: str) -> None:
                body = text.encode()
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        return Handler


@pytest.fixture
def host(ready_dir: Path) -> Iterator[Host]:
    with Host(ready_dir) as one:
        yield one


def browse(host: Host, tmp_path: Path, query: str) -> dict[str, dict[str, Any]]:
    """Open the host's page and return what it reports."""
    assert CHROMIUM is not None
    flags = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--disable-extensions",
    ]
    browser = subprocess.Popen(
        [CHROMIUM, *flags, f"--user-data-dir={tmp_path / 'profile'}", "--remote-debugging-port=0",
         host.url + query],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        assert host.done.wait(240), host.reports
    finally:
        browser.terminate()
        browser.wait(30)
    return host.reports


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")
def test_a_browser_shows_the_tree_while_the_run_works_and_when_it_has_ended(
    host: Host, tmp_path: Path
) -> None:
    given = quote(json.dumps({"task": "a SLOW one", "wait_s": 60, "max_seconds": 12}))
    reports = browse(host, tmp_path, f"?tool=solve_task&arguments={given}")
    during, end = reports["while"], reports["end"]
    assert during["log"][:2] == ["ui/initialize", "ui/notifications/initialized"]
    assert (during["state"], during["heading"]) == ("working", "a SLOW one")
    assert end["state"] == "partial"
    assert end["styled"] == "flex"  # the style is not refused
    assert end["nodes"]
    assert end["selected"] == f"n{len(end['nodes']) - 1}"
    assert end["scripts"] == 1


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")
def test_a_host_that_gives_no_resources_shows_the_text_of_the_result(
    host: Host, tmp_path: Path
) -> None:
    given = quote(json.dumps({"task": "easy", "wait_s": 60}))
    query = f"?able=nothing&tool=solve_task&arguments={given}"
    end = browse(host, tmp_path, query)["end"]
    assert "It is 42." in end["said"]
    assert end["nodes"] == []
