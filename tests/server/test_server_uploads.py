"""Files that are sent: by path at the command line, within a folder for a client, and nowhere else."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from mcp import Client
from python_multipart.multipart import parse_options_header

from toolsrv.calls.consent import question
from toolsrv.mcp_server.server import build_server
from toolsrv.settings import load
from toolsrv.workbench import Workbench
from toolsrv_runtime.calls.result import Consent
from toolsrv_runtime.calls.serialization import FileArgument, data_url

Run = Callable[..., Result]
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
BINARY = {"type": "string", "format": "binary"}


class Host(BaseHTTPRequestHandler):
    """Keeps what it was sent; answers with its size."""

    seen: list[tuple[str, bytes]]

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        self.seen.append((self.headers["Content-Type"], content))
        reply = json.dumps({"bytes": len(content)}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Stay silent."""


def _operation(name: str, media: str, schema: dict[str, Any], **more: Any) -> dict[str, Any]:
    body = {"required": True, "content": {media: {"schema": schema, **more}}}
    return {"operationId": name, "requestBody": body, "responses": {"200": {"description": "it"}}}


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


OPERATIONS = [
    _operation(
        "form",
        "multipart/form-data",
        _object(file=BINARY, files={"type": "array", "items": BINARY}, note={"type": "string"}),
        encoding={"file": {"contentType": "image/png, image/jpeg"}},
    ),
    _operation("whole", "application/octet-stream", {}),
    _operation("picture", "image/*", BINARY),
    _operation("text", "text/csv", {"type": "string"}),
    _operation(
        "in_json",
        "application/json",
        _object(
            data={"type": "string", "format": "byte"},
            deep=_object(parts={"type": "array", "items": {"contentEncoding": "base64"}}),
            name={"type": "string"},
        ),
    ),
]


@pytest.fixture
def seen(run: Run, tmp_path: Path) -> Iterator[list[tuple[str, bytes]]]:
    """What the host of the catalog ``up`` was sent: media type and body."""
    handler: Any = type("Handler", (Host,), {"seen": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    host = f"127.0.0.1:{server.server_address[1]}"
    document = {
        "openapi": "3.1.0",
        "info": {"title": "up", "version": "1"},
        "servers": [{"url": f"http://{host}"}],
        "paths": {f"/{one['operationId']}": {"post": one} for one in OPERATIONS},
    }
    (tmp_path / "api.json").write_text(json.dumps(document))
    run("config", "set", "own_hosts", host)
    run("config", "set", "calls", "allow POST 127.0.0.1")
    done = run("catalog", "import", str(tmp_path / "api.json"), "--name", "up", "--no-index")
    assert done.exit_code == 0, done.stderr
    yield handler.seen
    server.shutdown()
    thread.join()
    server.server_close()


pytestmark = pytest.mark.usefixtures("no_keyring")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "naïve photo.png").write_bytes(PNG)
    (folder / "b.csv").write_text("a,b\n1,2\n")
    monkeypatch.chdir(folder)
    return folder


def _call(run: Run, name: str, arguments: dict[str, Any], *options: str) -> Result:
    return run("call", f"Other/up/{name}", json.dumps(arguments), *options)


def _parts(sent: tuple[str, bytes]) -> list[tuple[dict[bytes, bytes], bytes, bytes]]:
    """The parts of a form: disposition, media type and content."""
    boundary = b"--" + parse_options_header(sent[0])[1][b"boundary"]
    found = []
    for one in sent[1].split(boundary)[1:-1]:
        head, _, content = one.strip(b"\r\n").partition(b"\r\n\r\n")
        headers = dict(line.split(b": ", 1) for line in head.split(b"\r\n"))
        disposition = parse_options_header(headers[b"Content-Disposition"])[1]
        found.append((disposition, headers.get(b"Content-Type", b""), content))
    return found


def test_a_path_stands_for_a_file_with_its_name_and_type(
    run: Run, seen: list[tuple[str, bytes]], folder: Path
) -> None:
    given = {
        "file": "@naïve photo.png",
        "files": ["@b.csv", f"@{folder / 'naïve photo.png'}"],
        "note": "@b.csv",
    }
    done = _call(run, "form", given)
    assert done.exit_code == 0, done.stderr
    name = "naïve photo.png".encode()
    assert _parts(seen[0]) == [
        ({b"name": b"file", b"filename": name}, b"image/png", PNG),
        ({b"name": b"files", b"filename": b"b.csv"}, b"text/csv", b"a,b\n1,2"),
        ({b"name": b"files", b"filename": name}, b"image/png", PNG),
        ({b"name": b"note"}, b"", b"@b.csv"),  # takes text, so it is one
    ]


@pytest.mark.usefixtures("folder")
def test_an_option_gives_any_argument_as_a_file(run: Run, seen: list[tuple[str, bytes]]) -> None:
    options = ("--file", "files=b.csv", "--file", "note=b.csv")
    assert _call(run, "form", {}, *options).exit_code == 0
    assert [(one[0].get(b"filename"), one[2]) for one in _parts(seen[0])] == [
        (b"b.csv", b"a,b\n1,2"),
        (None, b"a,b\n1,2"),
    ]
    assert _call(run, "text", {}, "--file", "body=b.csv").exit_code == 0
    assert seen[1] == ("text/csv", b"a,b\n1,2\n")
    twice = _call(run, "form", {"note": "a"}, "--file", "note=b.csv")
    assert (twice.exit_code, len(seen)) == (2, 2)
    assert _call(run, "form", {}, "--file", "b.csv").exit_code == 2


@pytest.mark.parametrize(
    ("name", "media"),
    [("whole", "application/octet-stream"), ("picture", "image/png")],
)
@pytest.mark.usefixtures("folder")
def test_a_whole_body_is_a_file(
    run: Run, seen: list[tuple[str, bytes]], name: str, media: str
) -> None:
    assert _call(run, name, {"body": "@naïve photo.png"}).exit_code == 0
    assert seen == [(media, PNG)]


@pytest.mark.usefixtures("folder")
def test_json_has_the_base64_of_a_file(run: Run, seen: list[tuple[str, bytes]]) -> None:
    given = {
        "data": "@b.csv",
        "deep": {"parts": ["data:text/plain,hi", "aGk="]},
        "name": "data:text/plain,hi",
    }
    assert _call(run, "in_json", given).exit_code == 0
    assert json.loads(seen[0][1]) == {
        "data": "YSxiCjEsMgo=",
        "deep": {"parts": ["aGk=", "aGk="]},
        "name": "data:text/plain,hi",
    }


@pytest.mark.parametrize("path", ["none.png", ".", "pipe", "large"])
def test_what_is_no_file_to_send_is_refused(
    run: Run,
    seen: list[tuple[str, bytes]],
    folder: Path,
    path: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "large").write_bytes(b"12345")
    monkeypatch.setattr("toolsrv.calls.uploads.FILE_LIMIT", 4)
    done = _call(run, "whole", {"body": f"@{path}"})
    assert (done.exit_code, seen) == (2, [])
    assert path in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_is_shown_by_its_size_and_digest(
    run: Run, seen: list[tuple[str, bytes]], folder: Path
) -> None:
    run("config", "set", "calls", "")
    done = _call(run, "whole", {"body": "@naïve photo.png"}, "--json")
    assert (done.exit_code, seen) == (2, [])
    digest = hashlib.sha256((folder / "naïve photo.png").read_bytes()).hexdigest()
    told = json.loads(done.stdout)
    for shown in (told["arguments"], told["consent"]["arguments"]):
        assert shown["body"].startswith("data:image/png;name=na%C3%AFve%20photo.png;base64 (264 ")
        assert digest in shown["body"]
    wanted = Consent(
        api_id="a", method="POST", host="h", path="/", arguments={"f": data_url(FileArgument(PNG))}
    )
    assert digest in question(wanted)


async def _over_mcp(*arguments: dict[str, Any]) -> list[Any]:
    bench = Workbench(load().settings)
    try:
        async with Client(build_server(bench, warm=False)) as client:
            given = [{"id": "Other/up/whole", "arguments": one} for one in arguments]
            return [(await client.call_tool("call_api", one)).structured_content for one in given]
    finally:
        await bench.aclose()


def test_a_client_names_no_path_unless_a_person_names_the_folder(
    run: Run, seen: list[tuple[str, bytes]], folder: Path, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s3cret")
    (folder / "link").symlink_to(secret)
    paths = [f"@{secret}", "@../secret", "@link", "@b.csv", "@./b.csv"]
    arguments = [{"body": one} for one in paths]
    told = asyncio.run(_over_mcp(*arguments))
    assert all("at the command line only" in one["error"] for one in told)
    assert seen == []
    run("config", "set", "upload_folder", str(folder))
    told = asyncio.run(_over_mcp(*arguments, {"body": "data:;base64,AAE="}))
    assert ["not in the folder" in one.get("error", "") for one in told] == [True] * 3 + [False] * 3
    assert [one[1] for one in seen] == [b"a,b\n1,2\n"] * 2 + [b"\0\1"]
