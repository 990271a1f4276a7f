"""Run the API server: start, connection limits, end.

Connection limits keep slow and silent clients from others.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Iterator
from types import FrameType
from typing import TYPE_CHECKING

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from toolsrv.api_server.app import create_app
from toolsrv.api_server.protocol import Find, World
from toolsrv.loopback import choose_token, listen, origin
from toolsrv_registry.errors import UsageError
from toolsrv_runtime.calls.caller import Caller
from toolsrv_runtime.calls.policy import READ_METHODS, PolicyRule, parse_rules
from toolsrv_runtime.stop import Stop

if TYPE_CHECKING:
    from toolsrv.workbench import Workbench

REQUEST_S = 10.0
"""Seconds for a request to come, its body included, and for a reply to be taken."""
CONNECTIONS = 200
HEAD_LIMIT = 16 * 1024
"""Bytes of a request's line and headers."""

_INCOMPLETE = frozenset({h11.IDLE, h11.SEND_BODY})


class PatientProtocol(H11Protocol):
    """One connection, for as long as its client does its part."""

    deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._look()
        if len(self.connections) > CONNECTIONS:
            self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        """End waiting."""
        self._wait(waiting=False)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take bytes, and look whether they complete a request."""
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        """Begin to wait for the next request."""
        super().on_response_complete()
        self._look()

    def pause_writing(self) -> None:
        """Begin to wait for the client to take what it asked for."""
        super().pause_writing()
        self._wait(waiting=True)

    def resume_writing(self) -> None:
        """Look what is waited for now."""
        super().resume_writing()
        self._look()

    def shutdown(self) -> None:
        """End with the server: with the reply that is being made, or at once without one."""
        if self._incomplete():
            self.drop()
        else:
            super().shutdown()

    def drop(self) -> None:
        """End the connection now."""
        self._wait(waiting=False)
        self.transport.abort()

    def _incomplete(self) -> bool:
        return self.conn.their_state in _INCOMPLETE

    def _look(self) -> None:
        self._wait(waiting=self._incomplete() and not self.transport.is_closing())

    def _wait(self, *, waiting: bool) -> None:
        """Have the clock running while the client is waited for, from the first moment on."""
        if waiting and self.deadline is None:
            self.deadline = self.loop.call_later(REQUEST_S, self.drop)
        elif not waiting and self.deadline is not None:
            self.deadline.cancel()
            self.deadline = None

    def _make_room(self) -> None:
        others = [
            (one.deadline.when(), id(one), one)
            for one in self.connections
            if isinstance(one, PatientProtocol) and one is not self and one.deadline is not None
        ]
        (min(others)[2] if others else self).drop()


GRACE_S = 0.8
"""Seconds that calls have to end once the server is to stop; then their clients get a 503."""


class _Server(uvicorn.Server):
    """uvicorn's server, which tells the calls in progress that it stops."""

    def __init__(self, config: uvicorn.Config, stop: Stop) -> None:
        super().__init__(config)
        self._stop = stop

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        asyncio.get_running_loop().call_later(GRACE_S, self._stop.set)
        await super().shutdown(sockets)


def serve_world(
    bench: Workbench, *, host: str, port: int, with_token: bool, changes: bool = False
) -> None:
    """Serve until interrupted; tells addresses and token on stderr. For ``changes`` see ``World``.

    Raises:
        UsageError: The host is not this machine's loopback, TOOLSRV_TOKEN is too short, or changes
            are to be allowed to everybody, or by no rule.
        BusyError: The port is taken.
        DataError: The data folder or what is in it cannot be used.
        KeyboardInterrupt: Ctrl-C or SIGTERM ended it.
    """
    rules = _widening(bench.settings.calls, with_token=with_token) if changes else ()
    with _sigterm_interrupts():
        token = choose_token() if with_token else None
        store = bench.registry().store
        listener = listen(host, port)
        server = make_server(store.get_many, bench.caller(), token, bench.aclose, changes=changes)
        _tell(origin(host, listener), bench.settings.mode, token, rules)
        server.run(sockets=[listener])


def make_server(
    find: Find,
    caller: Caller,
    token: str | None,
    close: Callable[[], Awaitable[None]] | None = None,
    *,
    changes: bool = False,
) -> uvicorn.Server:
    """Return a server for a listening socket; ``create_app`` says what ``close`` is."""
    stop = Stop()
    app = create_app(World(find, caller, stop, changes=changes), token, close)
    config = uvicorn.Config(
        app,
        http=PatientProtocol,
        ws="none",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        h11_max_incomplete_event_size=HEAD_LIMIT,
        timeout_graceful_shutdown=2,
    )
    return _Server(config, stop)


@contextlib.contextmanager
def _sigterm_interrupts() -> Iterator[None]:
    """Have SIGTERM end the block as Ctrl-C does; uvicorn repeats it when it has shut down."""

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _widening(calls: str, *, with_token: bool) -> tuple[PolicyRule, ...]:
    """Return the rules that allow changes.

    Raises:
        UsageError: there is none, or there is no token that keeps others out.
    """
    if not with_token:
        raise UsageError(
            "without a token every program on this machine could change something",
            hint="leave out --no-token or --allow-changes",
        )
    rules = tuple(
        one
        for one in parse_rules(calls)
        if one.verdict == "allow" and one.method not in READ_METHODS
    )
    if not rules:
        raise UsageError(
            "no rule of yours allows anything that changes something",
            hint='toolsrv config set calls "allow POST api.example.com"',
        )
    return rules


def _tell(where: str, mode: str, token: str | None, rules: tuple[PolicyRule, ...]) -> None:
    said = f"API world ({mode}) at {where}/rapidapi and {where}/virtual\n"
    if token is None:
        said += "without a token: every program on this machine can make calls here\n"
    else:
        said += f"Authorization: Bearer {token}\n"
    for one in rules:
        place = f"catalog {one.catalog}" if one.catalog else one.place or "all hosts"
        said += f"made without a question, as your rules allow: {one.method} at {place}\n"
    sys.stderr.write(said)
    sys.stderr.flush()
