"""Slow, silent, endless and too many clients: each costs the world little, and no other client."""

from __future__ import annotations

import contextlib
import runpy
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from toolsrv.api_server import app, serve

HELPERS = runpy.run_path(str(Path(__file__).parent / "world_server.py"))
TOKEN: str = HELPERS["TOKEN"]
BODY = {
    "category": "Data",
    "tool_name": "values",
    "api_name": "fine",
    "tool_input": "{}",
    "strip": "",
    "toolbench_key": TOKEN,
}


@pytest.fixture
def gate() -> threading.Event:
    """Set once the API ``slow`` has been called."""
    return threading.Event()


@pytest.fixture
def world(gate: threading.Event) -> Iterator[tuple[str, Any]]:
    """A world with a fast API and one that never answers: (address, server)."""
    caller = HELPERS["values_caller"]({"fine": {"fine": True}}, gate)
    with HELPERS["world_of"](HELPERS["value_apis"]("fine", "slow"), caller) as one:
        yield one


def connect(where: str) -> socket.socket:
    host, _, port = where.removeprefix("http://").partition(":")
    return socket.create_connection((host, int(port)), timeout=60)


def ask(where: str, **others: Any) -> httpx.Response:
    return httpx.post(f"{where}/virtual", json=BODY | others, timeout=60)


def rest(client: socket.socket) -> bytes:
    """Return what still comes until the server closes the connection."""
    parts = []
    with contextlib.suppress(ConnectionError):
        while part := client.recv(65_536):
            parts.append(part)
    return b"".join(parts)


def test_fifty_silent_clients_hurt_nobody_and_are_let_go(
    world: tuple[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    where, server = world
    monkeypatch.setattr(serve, "REQUEST_S", 3.0)
    with contextlib.ExitStack() as stack:
        silent = [stack.enter_context(connect(where)) for _ in range(50)]
        with ThreadPoolExecutor(4) as pool:
            said = list(pool.map(lambda _: ask(where), range(40)))
        assert [one.status_code for one in said] == [200] * 40
        assert [rest(one) for one in silent] == [b""] * 50
    assert ended(server)


def ended(server: Any) -> bool:
    """Whether all requests come to their end; the last one may still be putting itself away."""
    until = time.monotonic() + 10
    while server.server_state.tasks and time.monotonic() < until:
        time.sleep(0.01)
    return not server.server_state.tasks


@pytest.mark.parametrize(
    "begun",
    [
        b"POST /virt",
        b"POST /virtual HTTP/1.1\r\nHost: localhost\r\nX: ",
        b"POST /virtual HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
        b"POST /virtual HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{",
    ],
)
def test_a_client_that_sends_a_byte_now_and_then_is_let_go(
    world: tuple[str, Any], monkeypatch: pytest.MonkeyPatch, begun: bytes
) -> None:
    where, server = world
    monkeypatch.setattr(serve, "REQUEST_S", 1.0)
    with connect(where) as client:
        client.sendall(begun)
        started = time.monotonic()
        with contextlib.suppress(ConnectionError):
            client.settimeout(0.1)
            while time.monotonic() < started + 50:
                client.sendall(b"1")
                with contextlib.suppress(TimeoutError):
                    if not client.recv(1000):
                        break
    assert time.monotonic() - started < 40
    assert ask(where).status_code == 200
    assert ended(server)


def test_the_next_request_of_a_connection_has_its_own_time(
    world: tuple[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    where, _ = world
    monkeypatch.setattr(serve, "REQUEST_S", 2.0)
    with httpx.Client(timeout=60) as client:
        for _ in range(3):
            assert client.post(f"{where}/virtual", json=BODY).status_code == 200
    with connect(where) as raw:
        raw.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\nPOST /virt")
        assert rest(raw).count(b"HTTP/1.1") == 1  # and then the connection ends


def test_too_many_connections_cost_the_one_that_has_been_silent_longest(
    world: tuple[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    where, server = world
    monkeypatch.setattr(serve, "CONNECTIONS", 10)
    monkeypatch.setattr(serve, "REQUEST_S", 60.0)
    with contextlib.ExitStack() as stack:
        silent = [stack.enter_context(connect(where)) for _ in range(30)]
        assert rest(silent[0]) == b""
        assert [ask(where).status_code for _ in range(5)] == [200] * 5
        assert len(server.server_state.connections) <= 10


def test_a_connection_that_is_being_answered_makes_no_room(
    world: tuple[str, Any], gate: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    where, server = world
    monkeypatch.setattr(serve, "CONNECTIONS", 1)
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(ask, where, api_name="slow")
        assert gate.wait(60)
        with connect(where) as other:
            assert rest(other) == b""
        server.should_exit = True
        assert slow.result().status_code == 503


def test_a_large_body_is_refused_and_not_held(world: tuple[str, Any]) -> None:
    where, _ = world
    said = ask(where, tool_input="x" * (app.BODY_LIMIT + 1))
    assert said.status_code == 413
    assert set(said.json()) == {"error", "response"}

    def endless() -> Iterator[bytes]:
        for _ in range(64):
            yield b" " * 65_536

    with contextlib.suppress(httpx.WriteError):  # refused before it is sent
        assert httpx.post(f"{where}/virtual", content=endless(), timeout=60).status_code == 413
    assert ask(where).status_code == 200


def test_large_headers_are_refused(world: tuple[str, Any]) -> None:
    where, _ = world
    with connect(where) as client, contextlib.suppress(ConnectionError):
        client.sendall(b"POST /virtual HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 100_000)
        assert rest(client).startswith((b"HTTP/1.1 400", b"HTTP/1.1 431"))
    assert ask(where).status_code == 200


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"POST /virtual HTTP/1.1\r\nContent-Length: -1\r\nHost: localhost\r\n\r\n",
        b"POST /virtual HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST /virtual HTTP/9.9\r\n\r\n",
        b"\x00" * 50,
    ],
)
def test_what_is_no_http_is_refused(
    world: tuple[str, Any], sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serve, "REQUEST_S", 1.0)
    where, _ = world
    with connect(where) as client:
        client.sendall(sent)
        said = rest(client)
    assert b"Traceback" not in said
    assert ask(where).status_code == 200


def test_a_client_that_leaves_is_forgotten(world: tuple[str, Any]) -> None:
    where, server = world
    for begun in (b"", b"POST /virtual HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{"):
        with connect(where) as client:
            client.sendall(begun)
    assert ask(where).status_code == 200
    assert len(server.server_state.connections) <= 3


def test_a_call_that_takes_too_long_for_toolbenchs_client_is_told_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(app, "PATIENCE_S", 0.5)
    apis = HELPERS["value_apis"]("slow")
    with HELPERS["world_of"](apis, HELPERS["values_caller"]({})) as (where, _):
        asked = BODY | {"api_name": "slow"}
        said = httpx.post(f"{where}/rapidapi", json=asked, timeout=60)
    assert said.status_code == 200
    assert said.json() == {"error": "Timeout error...", "response": ""}


def test_the_end_of_the_server_waits_for_no_client(
    world: tuple[str, Any], gate: threading.Event
) -> None:
    where, server = world
    with connect(where), connect(where) as half, ThreadPoolExecutor(1) as pool:
        half.sendall(b"POST /virtual HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{")
        slow = pool.submit(ask, where, api_name="slow")
        assert gate.wait(60)
        started = time.monotonic()
        server.should_exit = True
        said = slow.result()
        assert (said.status_code, set(said.json())) == (503, {"error", "response"})
        assert rest(half) == b""
    assert time.monotonic() - started < 10  # one or two seconds; more on a busy machine
