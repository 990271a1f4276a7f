"""Connections of clients that are slow, silent or too many: none of them keeps others waiting.

uvicorn waits for ever for a first request, and for the rest of one; here a request has
``REQUEST_S`` to come whole. When there are too many connections, the one that has kept the server
waiting longest makes room. Knows HTTP only as far as h11 tells where a request stands.
"""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

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
