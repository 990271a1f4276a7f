"""Stdin and stdout of the MCP server, for the protocol alone; the same bytes on every system."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from anyio import AsyncFile


def claimed_stdin() -> Iterable[str]:
    """Return the lines of stdin, and leave an empty one to libraries and child processes.

    Bytes that are not UTF-8 become U+FFFD. A closed stdin has no lines.
    """
    try:
        private = os.dup(0)
    except OSError:
        return ()
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return os.fdopen(private, encoding="utf-8-sig", errors="replace", newline="\n", closefd=False)


def claimed_stdout() -> AsyncFile[str]:
    r"""Return stdout for the protocol alone: UTF-8, and a line ends in ``\n`` on Windows too.

    The SDK's own would end it in ``\r\n`` there. What libraries and child processes print goes to
    stderr from now on.
    """
    import anyio

    private = os.dup(1)
    try:
        os.dup2(2, 1)
    except OSError:  # stderr is closed
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
        os.close(nothing)
    if sys.platform == "win32":
        from mcp.os.win32.utilities import rebind_std_handle_to_fd

        with contextlib.suppress(OSError):
            rebind_std_handle_to_fd(1)
    return anyio.wrap_file(os.fdopen(private, "w", encoding="utf-8", newline="\n", closefd=False))
