"""``toolsrv serve --http``: the bearer token, Host and Origin, the port."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner
from tests.server_processes import HELLO

from toolsrv import loopback
from toolsrv.cli.main import cli
from toolsrv_registry.errors import BusyError, UsageError

HEADERS = {"Accept": "application/json, text/event-stream"}


@pytest.fixture
def serving(data_dir: Path) -> object:
    """A server process, without warm-up: (url, token, process)."""
    assert not data_dir.exists()
    process = subprocess.Popen(
        [sys.executable, "-m", "toolsrv", "serve", "--http", "--port", "0", "--no-warm"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    url = process.stderr.readline().split()[-1]
    header = process.stderr.readline().strip()
    yield url, header.removeprefix("Authorization: Bearer "), process
    process.kill()
    out, _ = process.communicate(timeout=10)
    assert out == ""


Serving = tuple[str, str, "subprocess.Popen[str]"]


def post(url: str, **headers: str) -> httpx.Response:
    return httpx.post(url, json=HELLO, headers=HEADERS | headers)


def test_every_request_needs_the_token(serving: Serving) -> None:
    url, token, _ = serving
    assert len(token) >= 40
    refused = [
        post(url),
        post(url, Authorization="Bearer wrong"),
        post(url, Authorization=f"Bearer {token}x"),
        post(url, Authorization=f"Bearer {token[:-1]}"),
        post(url, Authorization=f"Basic {token}"),
        post(url, Authorization=token),
        post(url, Authorization="Bearer"),
        post(f"{url}?token={token}"),
        httpx.get(url, headers=HEADERS),
        httpx.delete(url),
        httpx.options(url),
        httpx.get(url.replace("/mcp", "/")),
    ]
    for response in refused:
        assert response.status_code == 401
        assert response.headers["www-authenticate"].startswith("Bearer")
        assert "error" in response.json()
        assert token not in response.text
    assert post(url, Authorization=f"Bearer {token}").status_code == 200
    assert post(url, Authorization=f"bearer {token}").status_code == 200


def test_host_and_origin_are_checked_beneath_the_token(serving: Serving) -> None:
    url, token, _ = serving
    bearer = f"Bearer {token}"
    assert post(url, Authorization=bearer, Host="evil.example").status_code == 421
    assert post(url, Authorization=bearer, Origin="http://evil.example").status_code == 403
    local = url.removesuffix("/mcp")
    assert post(url, Authorization=bearer, Origin=local).status_code == 200


def test_two_authorization_headers_are_refused(serving: Serving) -> None:
    url, token, _ = serving
    both = [("Authorization", "Bearer wrong"), ("Authorization", f"Bearer {token}")]
    assert httpx.post(url, json=HELLO, headers=[*HEADERS.items(), *both]).status_code == 401


def test_an_interrupt_ends_it_with_an_open_stream(serving: Serving) -> None:
    url, token, process = serving
    headers = HEADERS | {"Authorization": f"Bearer {token}"}
    session = httpx.post(url, json=HELLO, headers=headers).headers["mcp-session-id"]
    with (
        httpx.Client() as client,
        client.stream("GET", url, headers=headers | {"mcp-session-id": session}) as stream,
    ):
        assert stream.status_code == 200
        started = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=15) == 0
        assert time.monotonic() - started < 5
    assert process.stderr is not None
    assert "Traceback" not in process.stderr.read()


def test_a_port_that_is_taken_is_told() -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        result = CliRunner().invoke(cli, ["serve", "--http", "--port", str(port)])
        with pytest.raises(BusyError):
            loopback.listen("127.0.0.1", port)
    assert result.exit_code == 1
    assert f"port {port}" in result.stderr
    assert "--port" in result.stderr


def test_the_token_can_be_given_but_not_a_weak_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLSRV_TOKEN", "a-token-that-is-long-enough")
    assert loopback.choose_token() == "a-token-that-is-long-enough"
    for weak in ("short", "has a space in it, yes", "líne-with-ümlaut-characters"):
        monkeypatch.setenv("TOOLSRV_TOKEN", weak)
        with pytest.raises(UsageError, match="TOOLSRV_TOKEN"):
            loopback.choose_token()
    monkeypatch.delenv("TOOLSRV_TOKEN")
    assert loopback.choose_token() != loopback.choose_token()


def test_a_token_is_kept_for_its_user_alone_and_renewed_when_others_could_read_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "new" / "http-token"
    first = loopback.choose_token(file)
    assert loopback.choose_token(file) == first == file.read_text().strip()
    monkeypatch.setenv("TOOLSRV_TOKEN", "a-token-that-is-long-enough")
    assert loopback.choose_token(file) == "a-token-that-is-long-enough"
    monkeypatch.delenv("TOOLSRV_TOKEN")
    assert loopback.choose_token(file) == first
    second = loopback.choose_token(file, renew=True)
    assert second != first
    assert loopback.choose_token(file) == second
    if os.name == "posix":
        assert file.stat().st_mode & 0o777 == 0o600
        file.chmod(0o640)
        third = loopback.choose_token(file)
        assert third != second
        assert file.stat().st_mode & 0o777 == 0o600
    for damaged in (b"", b"short", b"\xff" * 40, b"two words in it, and long"):
        file.write_bytes(damaged)
        assert len(loopback.choose_token(file)) >= 40
    (tmp_path / "file").touch()
    nowhere = tmp_path / "file" / "http-token"
    assert loopback.choose_token(nowhere) != loopback.choose_token(nowhere)


def test_the_token_is_no_setting_and_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLSRV_TOKEN", "a-token-that-is-long-enough")
    for words in (["config", "show"], ["config", "show", "--json"]):
        result = CliRunner().invoke(cli, words)
        assert "a-token-that" not in result.output
    assert os.environ["TOOLSRV_TOKEN"] not in json.dumps(
        dict(cli.params[0].to_info_dict()), default=str
    )
