"""Responses that are files: saved by the command line, resources over MCP, kept by recordings."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from mcp import Client
from mcp.server.mcpserver.exceptions import ResourceNotFoundError
from mcp.types import BlobResourceContents, EmbeddedResource, ResourceLink

from toolsrv.calls import files as call_files
from toolsrv.mcp_server.call_resources import CallFiles
from toolsrv.mcp_server.server import build_server
from toolsrv.settings import load
from toolsrv.workbench import Workbench
from toolsrv_runtime.calls.response_body import Attachment
from toolsrv_runtime.calls.result import CallResult

Run = Callable[..., Result]
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4
LARGE = PNG * 100
_PNG_TYPE = {"Content-Type": "image/png"}
RESPONSES: dict[str, tuple[int, dict[str, str], bytes]] = {
    "picture": (200, _PNG_TYPE, PNG),
    "named": (
        200,
        _PNG_TYPE
        | {"Content-Disposition": "attachment; filename*=UTF-8''..%2F..%2Fna%C3%AFve.png"},
        PNG,
    ),
    "wrong": (200, {"Content-Type": "text/plain; charset=utf-8"}, PNG),
    "untyped": (200, {}, PNG),
    "large": (200, _PNG_TYPE, LARGE),
    "failed": (404, _PNG_TYPE, PNG),
    "words": (200, {"Content-Type": "text/plain"}, b"hello"),
    "value": (200, {"Content-Type": "application/json"}, b'{"a": 1}'),
}


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        status, headers, content = RESPONSES[self.path.strip("/")]
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Stay silent."""


@pytest.fixture
def files(run: Run, tmp_path: Path) -> Iterator[None]:
    """A catalog ``files`` of a host on loopback, one API for each response."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    host = f"127.0.0.1:{server.server_address[1]}"
    answer = {"responses": {"200": {"description": "it"}}}
    document = {
        "openapi": "3.1.0",
        "info": {"title": "files", "version": "1"},
        "servers": [{"url": f"http://{host}"}],
        "paths": {f"/{name}": {"get": {"operationId": name, **answer}} for name in RESPONSES},
    }
    (tmp_path / "api.json").write_text(json.dumps(document))
    run("config", "set", "own_hosts", host)
    told = run("catalog", "import", str(tmp_path / "api.json"), "--name", "files", "--no-index")
    assert told.exit_code == 0, told.stderr
    yield
    server.shutdown()
    thread.join()
    server.server_close()


def _id(name: str) -> str:
    return f"Other/files/{name}"


pytestmark = pytest.mark.usefixtures("no_keyring", "files")


@pytest.mark.parametrize(
    ("name", "saved"),
    [
        ("picture", "picture.png"),
        ("named", "naïve.png"),
        ("wrong", "wrong.png"),
        ("untyped", "untyped.png"),
    ],
)
def test_bytes_are_never_printed_and_saved_in_the_data_folder(
    run: Run, data_dir: Path, name: str, saved: str
) -> None:
    result = run("call", _id(name))
    path = data_dir / "files" / saved
    assert result.exit_code == 0
    assert result.stdout == "binary, 1,032 bytes, image/png, not shown\n"
    assert f"saved: {path} (1,032 bytes, image/png)" in result.stderr
    assert path.read_bytes() == PNG
    assert [one.name for one in (data_dir / "files").iterdir()] == [saved]


def test_a_file_that_comes_with_an_error_is_kept_too(run: Run) -> None:
    result = run("call", _id("failed"), "--json")
    document = json.loads(result.stdout)
    assert (result.exit_code, document["status"]) == (1, 404)
    assert Path(document["files"][0]["path"]).read_bytes() == PNG


def test_a_file_is_saved_where_a_person_says_and_replaces_nothing(
    run: Run, tmp_path: Path, data_dir: Path
) -> None:
    target = tmp_path / "a.png"
    assert run("call", _id("picture"), "--save", str(target)).exit_code == 0
    assert target.read_bytes() == PNG
    assert not (data_dir / "files").exists()
    target.write_text("mine")
    refused = run("call", _id("picture"), "--save", str(target))
    assert (refused.exit_code, target.read_text()) == (2, "mine")
    assert "--force" in refused.stderr
    assert run("call", _id("picture"), "--save", str(target), "--force").exit_code == 0
    assert target.read_bytes() == PNG


def test_a_folder_gets_files_by_their_names_which_never_leave_it(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    for _ in range(2):
        assert run("call", _id("named"), "--save", str(folder), "--force").exit_code == 0
    assert run("call", _id("picture"), "--save", str(folder)).exit_code == 0
    assert sorted(one.name for one in folder.iterdir()) == [
        "naïve-2.png",
        "naïve.png",
        "picture.png",
    ]


def test_text_and_json_are_saved_as_they_are_read(run: Run, tmp_path: Path) -> None:
    text, value = tmp_path / "a.txt", tmp_path / "a.json"
    told = run("call", _id("words"), "--save", str(text))
    assert (told.stdout, text.read_text()) == ("", "hello")
    run("call", _id("value"), "--save", str(value))
    assert json.loads(value.read_text()) == {"a": 1}


@pytest.mark.parametrize("place", ["no/such/folder.png", "."])
def test_what_cannot_be_written_is_refused_before_the_call(
    run: Run, tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("call", _id("picture"), "--save", place)
    assert result.exit_code == (0 if place == "." else 2)


def test_the_folder_of_files_keeps_within_its_limits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call_files, "MOST_FILES", 3)
    for number in range(5):
        call_files.keep_file(
            tmp_path, Attachment.from_bytes(bytes([number]), "", f"{number}.bin"), "a/b/c"
        )
    assert len(list((tmp_path / "files").iterdir())) == 3
    assert (tmp_path / "files" / "4.bin").exists()
    monkeypatch.setattr(call_files, "MOST_BYTES", 10)
    call_files.keep_file(tmp_path, Attachment.from_bytes(b"123456789", "", "last.bin"), "a/b/c")
    assert sum(one.stat().st_size for one in (tmp_path / "files").iterdir()) <= 10


async def _over_mcp(*names: str) -> list[Any]:
    """Call over MCP; return each result and what its file reads as."""
    bench = Workbench(load().settings)
    found: list[Any] = []
    try:
        async with Client(build_server(bench, warm=False)) as client:
            for name in names:
                got = await client.call_tool("call_api", {"id": _id(name), "x_unknown": 1})
                assert got.structured_content is not None
                uris = [one["uri"] for one in got.structured_content["files"]]
                found.append((got, [await client.read_resource(one) for one in uris]))
    finally:
        await bench.aclose()
    return found


def test_a_client_gets_bytes_as_a_resource_and_a_model_a_short_line() -> None:
    (small, small_read), (large, large_read), (words, none) = asyncio.run(
        _over_mcp("picture", "large", "words")
    )
    for got, read, content in ((small, small_read, PNG), (large, large_read, LARGE)):
        (contents,) = read[0].contents
        assert isinstance(contents, BlobResourceContents)
        assert base64.b64decode(contents.blob) == content
        assert contents.mime_type == "image/png"
        said = f"binary, {len(content):,} bytes, image/png, saved as "
        assert got.structured_content["response"].startswith(said)
        (one,) = got.structured_content["files"]
        assert (one["media_type"], one["bytes"]) == ("image/png", len(content))
        assert one["uri"] in got.content[0].text
        assert "Ignored arguments: x_unknown" in got.content[0].text
    embedded = small.content[1]
    assert isinstance(embedded, EmbeddedResource)
    assert isinstance(embedded.resource, BlobResourceContents)
    assert base64.b64decode(embedded.resource.blob) == PNG
    link = large.content[1]
    assert isinstance(link, ResourceLink)
    assert (link.mime_type, link.size) == ("image/png", len(LARGE))
    assert (len(words.content), none) == (1, [])


@pytest.mark.parametrize("target", ["", "loop.png", "../secret", "../files", "deeper/a.png"])
def test_what_lies_elsewhere_or_nowhere_is_not_read(data_dir: Path, target: str) -> None:
    folder = data_dir / "files"
    (folder / "deeper").mkdir(parents=True)
    for place in (data_dir / "secret", folder / "deeper" / "a.png", folder / "kept.png"):
        place.write_bytes(PNG)
    file = call_files.saved_file(folder / "kept.png", "image/png", len(PNG))
    assert call_files.kept_path(data_dir, file) == folder / "kept.png"
    (folder / "kept.png").unlink()
    if target:
        (folder / "loop.png").symlink_to("kept.png")
        (folder / "kept.png").symlink_to(target)
    uri = call_files.new_uri()
    result = CallResult(
        api_id="a", arguments={}, url="", status=200, response="", error="", source="live",
        seconds=0.1, kept=(file.model_copy(update={"uri": uri}),),
    )  # fmt: skip
    known = CallFiles(data_dir)
    known.of_call(result)
    with pytest.raises(ResourceNotFoundError, match="no such file"):
        known.read(uri)


def test_a_recording_gives_the_same_bytes_again(run: Run, tmp_path: Path) -> None:
    for mode in ("record", "replay"):
        path = tmp_path / f"{mode}.png"
        done = run("call", _id("named"), "--mode", mode, "--save", str(path), "--json")
        assert done.exit_code == 0, done.stderr
        document = json.loads(done.stdout)
        assert document["source"] == ("live" if mode == "record" else "recorded")
        assert document["files"][0]["name"] == "../../naïve.png"
        assert path.read_bytes() == PNG
