"""Socket and bearer token of a server on loopback.

Knows nothing of what is served.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
from pathlib import Path

from toolsrv.config_file import exclusive_lock, write_atomic
from toolsrv.settings import TOKEN_VARIABLE
from toolsrv_registry.errors import BusyError, ToolsrvError, UsageError

log = logging.getLogger(__name__)
HTTP_PORT = 8765
"""Port of ``serve --http``, unless another is named."""
TOKEN_FILE = "http-token"  # noqa: S105 - a file's name
"""In the data folder: the token of ``serve --http``, kept between starts."""

LOOPBACK = ("127.0.0.1", "localhost", "::1")
TOKEN_MINIMUM = 16


def choose_token(file: Path | None = None, *, renew: bool = False) -> str:
    """Return the token from the environment, else the one kept in ``file``, else a new one.

    A new one is kept there, for this user alone. One that others could read is renewed, as with
    ``renew``. Without ``file``, and where it cannot be written, the token is for this start only.

    Raises:
        UsageError: The token given is too short or has characters that no header may have.
    """
    token = os.environ.get(TOKEN_VARIABLE, "")
    if not token:
        return secrets.token_urlsafe(32) if file is None else _kept_token(file, renew=renew)
    if not _is_strong(token):
        raise UsageError(
            f"{TOKEN_VARIABLE} must have at least {TOKEN_MINIMUM} printable ASCII characters, "
            "no spaces",
            hint=f"unset {TOKEN_VARIABLE} to have a token made",
        )
    return token


def _is_strong(token: str) -> bool:
    return (
        len(token) >= TOKEN_MINIMUM and token.isascii() and token.isprintable() and " " not in token
    )


def _kept_token(file: Path, *, renew: bool) -> str:
    try:
        with exclusive_lock(file.with_suffix(".lock")):
            kept = "" if renew else _private_text(file)
            if _is_strong(kept):
                return kept
            token = secrets.token_urlsafe(32)
            write_atomic(file, f"{token}\n")  # made with mode 0600
            return token
    except ToolsrvError as error:
        log.warning("the token is for this start only: %s", error.message)
        return secrets.token_urlsafe(32)


def _private_text(file: Path) -> str:
    """Return what is in a file that only this user can read, "" for any other."""
    try:
        if os.name == "posix" and file.stat().st_mode & 0o077:
            log.warning("others could read %s: its token is replaced", file)
            return ""
        return file.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""


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
