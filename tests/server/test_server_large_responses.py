"""Responses that are too large for memory, and files that the calls of a solve bring."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from mcp import Client
from mcp.types import BlobResourceContents

from toolsrv.mcp_server.server import build_server
from toolsrv.settings import load
from toolsrv.workbench import Workbench

Run = Callable[..., Result]
SECRET = "a-key-that-nobody-may-see"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 24_000  # 6.1 MB
ITEMS = json.dumps([{"id": one, "text": "x" * 90} for one in range(60_000)]).encode()
PNG_TYPE = {"Content-Type": "image/png"}
JSON_TYPE = {"Content-Type": "application/json"}
BOMB = gzip.compress(b"\x89PNG\r\n\x1a\n" + bytes(40_000_000))
RESPONSES: dict[str, tuple[dict[str, str], bytes]] = {
    "picture": (PNG_TYPE, PNG),
    "small": (PNG_TYPE, PNG[:1_000]),
    "items": (JSON_TYPE, ITEMS),
    "zipped": (JSON_TYPE | {"Content-Encoding": "gzip"}, gzip.compress(ITEMS)),
    "bomb": (PNG_TYPE | {"Content-Encoding": "gzip"}, BOMB),
    "key": (PNG_TYPE, PNG[:5_000_000] + SECRET.encode() + PNG[5_000_000:]),
    "broken": (PNG_TYPE, PNG),
    "slow": (PNG_TYPE, PNG),
}
GOES_ON = threading.Event()
"""Lets what is slow send its end."""


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        name = self.path.strip("/")
        headers, content = RESPONSES[name]
        self.send_response(200)
        for header, value in headers.items():
            self.send_header(header, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        try:
            if name in {"broken", "slow"}:
                self.wfile.write(content[:5_000_000])
                content = b"" if name == "broken" else content[5_000_000:]
            if name == "slow":
                GOES_ON.wait(60)
            self.wfile.write(content)
        except OSError:
            self.close_connection = True  # whoever asked has read enough

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Stay silent."""


@pytest.fixture
def host(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A catalog ``files`` of a host on loopback, one API for each response."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    place = f"127.0.0.1:{server.server_address[1]}"
    document = {
        "openapi": "3.1.0",
        "info": {"title": "files", "version": "1"},
        "servers": [{"url": f"http://{place}"}],
        "paths": {
            f"/{name}": {
                "get": {
                    "operationId": name,
                    "summary": f"Get the {name}",
                    "responses": {"200": {"description": "it"}},
                    "security": [{"k": []}] if name == "key" else [],
                }
            }
            for name in RESPONSES
        },
        "components": {
            "securitySchemes": {"k": {"type": "apiKey", "in": "header", "name": "X-Key"}}
        },
    }
    (tmp_path / "api.json").write_text(json.dumps(document))
    monkeypatch.setenv("TOOLSRV_OWN_HOSTS", place)
    told = run("catalog", "import", str(tmp_path / "api.json"), "--name", "files", "--no-index")
    assert told.exit_code == 0, told.stderr
    GOES_ON.clear()
    yield place
    GOES_ON.set()
    server.shutdown()
    thread.join()
    server.server_close()


pytestmark = pytest.mark.usefixtures("no_keyring", "host")


def _id(name: str) -> str:
    return f"Other/files/{name}"


def _left(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.iterdir())


@pytest.mark.parametrize(
    ("name", "content", "media"),
    [
        ("picture", PNG, "image/png"),
        ("items", ITEMS, "application/json"),
        ("zipped", ITEMS, "application/json"),
    ],
)
def test_a_large_response_is_saved_whole(
    run: Run, tmp_path: Path, name: str, content: bytes, media: str
) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    target = folder / "file"
    told = run("call", _id(name), "--save", str(target))
    assert told.exit_code == 0, told.stderr
    assert target.read_bytes() == content
    assert f"saved: {target} ({len(content):,} bytes, {media})" in told.stderr
    assert target.stat().st_mode & 0o077 == 0
    again = run("call", _id(name), "--save", str(target))
    assert again.exit_code == 2
    assert run("call", _id(name), "--save", str(target), "--force").exit_code == 0
    assert run("call", _id(name), "--save", str(folder)).exit_code == 0
    assert len(_left(folder)) == 2


def test_a_large_file_goes_to_the_data_folder_without_being_named(run: Run, data_dir: Path) -> None:
    told = run("call", _id("picture"), "--json")
    document = json.loads(told.stdout)
    (one,) = document["files"]
    assert (document["kind"], one["bytes"], one["media_type"]) == ("ok", len(PNG), "image/png")
    assert Path(one["path"]).read_bytes() == PNG
    assert _left(data_dir / "files") == ["picture.png"]


@pytest.mark.parametrize(
    ("name", "said"),
    [("items", f"the response has {len(ITEMS):,} bytes"), ("zipped", "more than 4,000,000 bytes")],
)
def test_a_large_text_says_its_size_what_is_kept_and_what_to_do(
    run: Run, name: str, said: str, data_dir: Path
) -> None:
    told = run("call", _id(name), "--json")
    document = json.loads(told.stdout)
    assert (told.exit_code, document["kind"]) == (1, "too_large")
    assert said in document["error"]
    assert "its first 20,000 characters are kept" in document["error"]
    assert "--save" in document["hint"]
    assert len(document["response"]) == 20_000
    assert not (data_dir / "files").exists()


@pytest.mark.parametrize("name", ["picture", "bomb", "items"])
def test_what_is_over_the_setting_is_not_written(run: Run, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    run("config", "set", "download_bytes", "4500000")
    told = run("call", _id(name), "--save", str(folder / "file"))
    assert told.exit_code == 1
    assert "4,500,000" in told.stderr
    assert "download_bytes" in told.stderr
    assert _left(folder) == []


@pytest.mark.parametrize(
    ("name", "why"), [("broken", "closed connection"), ("key", "repeats a key")]
)
def test_what_breaks_off_or_repeats_a_key_leaves_nothing(
    run: Run, tmp_path: Path, host: str, name: str, why: str
) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    run("keys", "set", host.partition(":")[0], stdin=f"{SECRET}\n")
    run("config", "set", "call_seconds", "5")
    told = run("call", _id(name), "--save", str(folder / "file"))
    assert told.exit_code == 1
    assert SECRET not in told.output
    assert why in told.stderr
    assert _left(folder) == []


@pytest.mark.skipif(sys.platform == "win32", reason="no signals there")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_leaves_nothing_half_written(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    words = ["-m", "toolsrv", "call", _id("slow"), "--save", str(folder / "file")]
    process = subprocess.Popen([sys.executable, *words], stderr=subprocess.DEVNULL)
    end = time.monotonic() + 60
    while not any(one.stat().st_size for one in folder.iterdir()) and time.monotonic() < end:
        time.sleep(0.02)
    assert _left(folder) != []
    process.send_signal(number)
    assert process.wait(30) == code
    assert _left(folder) == []


def test_a_place_that_cannot_be_written_is_told_in_a_line(run: Run, data_dir: Path) -> None:
    data_dir.mkdir(exist_ok=True)
    (data_dir / "files").write_text("no folder")
    told = run("call", _id("picture"))
    assert told.exit_code == 1
    assert "cannot be written" in told.stderr
    assert "free some space" in told.stderr
    assert "download_bytes" not in told.stderr
    assert "Traceback" not in told.output


def _script(folder: Path, name: str) -> str:
    call = {"function": f"{name}_for_files", "arguments": {}}
    answer = {
        "function": "Finish",
        "arguments": {"return_type": "give_answer", "final_answer": "Here it is."},
    }
    path = folder / "script.json"
    path.write_text(json.dumps({"replies": [call, answer]}), "utf-8")
    return f"scripted:{path}"


@pytest.mark.parametrize(("name", "content"), [("small", PNG[:1_000]), ("picture", PNG)])
def test_a_solve_saves_the_files_of_its_calls_and_names_them(
    run: Run, tmp_path: Path, data_dir: Path, name: str, content: bytes
) -> None:
    task = f"Get the {name}"
    model = _script(tmp_path, name)
    told = run("solve", task, "--category", "Other", "--model", model, "--json")
    assert told.exit_code == 0, told.stderr
    (evidence,) = json.loads(told.stdout)["evidence"]
    (file,) = evidence["files"]
    assert Path(file["path"]).read_bytes() == content
    assert Path(file["path"]).parent == data_dir / "files"
    assert (file["name"], file["bytes"]) == (f"{name}.png", len(content))
    assert f"saved as {name}.png" in evidence["response"]
    plain = run("solve", task, "--category", "Other", "--model", model)
    assert f"saved: {data_dir / 'files' / f'{name}-2.png'}" in plain.stderr


async def _solved(name: str) -> tuple[dict[str, Any], Any, Any]:
    """Solve over MCP; return the run, its text, and its file as a new server reads it."""
    bench = Workbench(load().settings)
    try:
        async with Client(build_server(bench, warm=False)) as client:
            got = await client.call_tool(
                "solve_task",
                {"task": f"Get the {name}", "options": {"category": "Other"}, "wait_s": 60},
            )
            view = got.structured_content
            assert view is not None
            (file,) = view["evidence"][0]["files"]
            read = await client.read_resource(file["uri"])
    finally:
        await bench.aclose()
    bench = Workbench(load().settings)
    try:
        async with Client(build_server(bench, warm=False)) as client:
            with pytest.raises(Exception, match="no such file"):
                await client.read_resource(file["uri"])
            await client.call_tool("get_run", {"run_id": view["run_id"]})
            again = await client.read_resource(file["uri"])
    finally:
        await bench.aclose()
    return view, got.content[0], (read, again)


def test_the_files_of_a_run_are_resources_and_stay_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLSRV_MODEL", _script(tmp_path, "picture"))
    view, told, reads = asyncio.run(_solved("picture"))
    (file,) = view["evidence"][0]["files"]
    assert file["uri"].startswith("toolsrv://files/")
    assert file["uri"] in told.text
    for read in reads:
        (contents,) = read.contents
        assert isinstance(contents, BlobResourceContents)
        assert (contents.mime_type, base64.b64decode(contents.blob)) == ("image/png", PNG)
