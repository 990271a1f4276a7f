"""A server for this machine only: its socket on loopback, and the token that its clients know.

Knows nothing of what is served.
"""

from __future__ import annotations

import os
import secrets
import socket

from toolsrv.settings import TOKEN_VARIABLE
from toolsrv_registry.errors import BusyError, UsageError

LOOPBACK = ("127.0.0.1", "localhost", "::1")
TOKEN_MINIMUM = 16


def choose_token() -> str:
    """Return the token from the environment, or a new one.

    Raises:
        UsageError: The token given is too short or has characters that no header may have.
    """
    token = os.environ.get(TOKEN_VARIABLE, "")
    if not token:
        return secrets.token_urlsafe(32)
    if len(token) < TOKEN_MINIMUM or not token.isascii() or not token.isprintable() or " " in token:
        raise UsageError(
            f"{TOKEN_VARIABLE} must have at least {TOKEN_MINIMUM} printable ASCII characters, "
            "no spaces",
            hint=f"unset {TOKEN_VARIABLE} to have a token made",
        )
    return token


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket on loopback; port 0 takes a free one.

    Raises:
        UsageError: The host is not loopback.
        BusyError: The port is taken.
    """
    if host not in LOOPBACK:
        raise UsageError(
            f"{host[:80]!r} is not loopback; the server is for this machine only",
            hint=f"use one of {', '.join(LOOPBACK)}; for other machines, put a proxy with TLS and "
            "its own authentication before it",
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    # On Windows SO_REUSEADDR would let another program listen on a port that is taken.
    option = getattr(socket, "SO_EXCLUSIVEADDRUSE", socket.SO_REUSEADDR)
    try:
        listener.setsockopt(socket.SOL_SOCKET, option, 1)
        listener.bind((host, port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise BusyError(
            f"cannot listen on {host} port {port}: {error.strerror or error}",
            hint="choose another port with --port, or 0 for any free one",
        ) from error
    return listener


def origin(host: str, listener: socket.socket) -> str:
    """Return the address of a listening socket as a URL writes it, ``http://127.0.0.1:8765``."""
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{listener.getsockname()[1]}"
