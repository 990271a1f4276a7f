"""``toolsrv serve --http`` for several users: kept token, named hosts and origins, health, its log."""

from __future__ import annotations

import contextlib
import logging
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner
from tests.server_processes import HELLO

from toolsrv import server_log
from toolsrv.cli.main import cli
from toolsrv.mcp_server.http import security
from toolsrv.server_log import QuietFile, log_file
from toolsrv_registry.errors import UsageError

ACCEPT = {"Accept": "application/json, text/event-stream"}
PAGE = "https://inspector.example.com"


@contextlib.contextmanager
def serving(*words: str) -> Iterator[tuple[str, str, subprocess.Popen[str]]]:
    """A server process without warm-up: its address without a path, its token, the process."""
    command = [sys.executable, "-m", "toolsrv", "serve", "--http", "--port", "0", "--no-warm"]
    process = subprocess.Popen(
        [*command, *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    try:
        url = process.stderr.readline().split()[-1].removesuffix("/mcp")
        token = process.stderr.readline().strip().removeprefix("Authorization: Bearer ")
        yield url, token, process
    finally:
        process.kill()
        process.communicate()


def post(url: str, token: str, **headers: str) -> httpx.Response:
    bearer = {"Authorization": f"Bearer {token}"}
    return httpx.post(f"{url}/mcp", json=HELLO, headers=ACCEPT | bearer | headers)


def test_the_token_stays_from_start_to_start_until_it_is_renewed(data_dir: Path) -> None:
    with serving() as (url, first, process):
        assert post(url, first).status_code == 200
        process.send_signal(signal.SIGINT)
        assert process.wait(15) == 0
    with serving() as (url, second, _):
        assert second == first
    with serving("--new-token") as (url, third, _):
        assert third != first
        assert post(url, first).status_code == 401
        assert post(url, third).status_code == 200
    assert (data_dir / "http-token").read_text("ascii").strip() == third


def test_health_and_well_known_paths_need_no_token_but_the_right_host() -> None:
    with serving() as (url, token, _):
        health = httpx.get(f"{url}/health")
        assert (health.status_code, health.json()["status"]) == (200, "ok")
        assert token not in health.text
        assert httpx.head(f"{url}/health").status_code == 200
        assert httpx.post(f"{url}/health").status_code == 405
        assert httpx.get(f"{url}/health", headers={"Host": "evil.example"}).status_code == 421
        assert (
            httpx.get(f"{url}/health", headers={"Origin": "http://evil.example"}).status_code == 403
        )
        for path in (
            "oauth-protected-resource",
            "oauth-protected-resource/mcp",
            "openid-configuration",
        ):
            assert httpx.get(f"{url}/.well-known/{path}").status_code == 404
        assert httpx.get(f"{url}/healthy").status_code == 401
        assert httpx.get(f"{url}/mcp/.well-known/x").status_code == 401


def test_named_hosts_are_served_and_others_are_not() -> None:
    words = ("--allowed-host", "toolsrv.example.com", "--allowed-host", "box.lan:8443")
    with serving(*words) as (url, token, _):
        for host in ("toolsrv.example.com", "toolsrv.example.com:444", "box.lan:8443"):
            assert post(url, token, Host=host).status_code == 200, host
        for host in ("evil.example", "box.lan", "box.lan:1", "toolsrv.example.com.evil.example"):
            assert post(url, token, Host=host).status_code == 421, host


def test_pages_of_named_origins_may_call_and_others_may_not() -> None:
    asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization,mcp-session-id"}  # fmt: skip
    with serving("--allowed-origin", PAGE) as (url, token, _):
        before = httpx.options(f"{url}/mcp", headers={"Origin": PAGE, **asked})
        assert before.status_code == 200
        assert before.headers["access-control-allow-origin"] == PAGE
        assert "mcp-session-id" in before.headers["access-control-allow-headers"]
        made = post(url, token, Origin=PAGE)
        assert made.status_code == 200
        assert made.headers["access-control-allow-origin"] == PAGE
        assert "mcp-session-id" in made.headers["access-control-expose-headers"]
        assert post(url, "wrong", Origin=PAGE).headers["access-control-allow-origin"] == PAGE
        other = "https://evil.example"
        refused = httpx.options(f"{url}/mcp", headers={"Origin": other, **asked})
        assert "access-control-allow-origin" not in refused.headers
        assert post(url, token, Origin=other).status_code == 403
        assert post(url, token, Origin=f"{PAGE}.evil.example").status_code == 403
    with serving() as (url, _, _):
        assert httpx.options(f"{url}/mcp", headers={"Origin": PAGE, **asked}).status_code == 401


@pytest.mark.parametrize("host", ["*", "", "a b", "http://a.example", "a.example/x", "*.example"])
def test_what_is_no_host_is_refused(host: str) -> None:
    with pytest.raises(UsageError):
        security([host])


@pytest.mark.parametrize(
    "origin", ["*", "null", "a.example", "https://a.example/", "ftp://a", "https://*"]
)
def test_what_is_no_origin_is_refused(origin: str) -> None:
    with pytest.raises(UsageError):
        security([], [origin])


@pytest.mark.parametrize(
    "words", [("--allowed-host", "a"), ("--allowed-origin", "http://a"), ("--new-token",)]
)
def test_what_is_for_http_is_refused_on_stdio(words: tuple[str, ...]) -> None:
    done = CliRunner().invoke(cli, ["serve", *words])
    assert done.exit_code == 2
    assert "--http" in done.stderr


def test_the_log_is_kept_at_the_level_that_was_asked_for(ready_dir: Path) -> None:
    with serving("--log-level", "info") as (url, token, _):
        assert post(url, token).status_code == 200
        assert post(url, token, Host="evil.example").status_code == 421
    text = log_file(ready_dir, http=True).read_text("utf-8")
    assert "POST /mcp" in text
    assert "evil.example" in text
    assert token not in text
    if sys.platform != "win32":
        assert log_file(ready_dir, http=True).stat().st_mode & 0o077 == 0
    with serving() as (url, token, _):
        post(url, token)
    assert log_file(ready_dir, http=True).read_text("utf-8") == text


def line(text: str) -> logging.LogRecord:
    return logging.LogRecord("toolsrv", logging.WARNING, "", 0, text, (), None)


def test_a_log_stays_small_and_nothing_that_is_wrong_with_it_ends_a_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(server_log, "MOST_BYTES", 1_000)
    path = log_file(tmp_path, http=True)
    handler = QuietFile(path, rotates=True)
    for number in range(200):
        handler.emit(line(f"{number}: {'x' * 90}"))
    handler.close()
    kept = sorted(path.parent.iterdir())
    assert len(kept) == 1 + server_log.KEPT
    assert all(one.stat().st_size <= 1_000 for one in kept)

    absent = log_file(tmp_path / "absent", http=False)
    QuietFile(absent, rotates=False).emit(line("no data folder"))
    assert not absent.parent.parent.exists()
    (tmp_path / "closed").mkdir()
    (tmp_path / "closed" / "logs").touch()
    QuietFile(log_file(tmp_path / "closed", http=False), rotates=False).emit(line("in the way"))
    assert capsys.readouterr().err == ""
