"""Running the world on loopback until Ctrl-C or SIGTERM."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Iterator
from types import FrameType
from typing import TYPE_CHECKING

import uvicorn

from toolsrv.loopback import choose_token, listen, origin
from toolsrv.world.answer import Find, World
from toolsrv.world.app import create_app
from toolsrv.world.connections import HEAD_LIMIT, PatientProtocol
from toolsrv_registry.errors import UsageError
from toolsrv_runtime.calls.caller import Caller
from toolsrv_runtime.calls.policy import READING, Rule, parse_rules
from toolsrv_runtime.stop import Stop

if TYPE_CHECKING:
    from toolsrv.workbench import Workbench

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


def _widening(calls: str, *, with_token: bool) -> tuple[Rule, ...]:
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
        one for one in parse_rules(calls) if one.verdict == "allow" and one.method not in READING
    )
    if not rules:
        raise UsageError(
            "no rule of yours allows anything that changes something",
            hint='toolsrv config set calls "allow POST api.example.com"',
        )
    return rules


def _tell(where: str, mode: str, token: str | None, rules: tuple[Rule, ...]) -> None:
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
