"""The stdout of the MCP server, the same bytes on every system."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from anyio import AsyncFile


def claimed_stdout() -> AsyncFile[str]:
    r"""Return stdout for the protocol alone: UTF-8, and a line ends in ``\n`` on Windows too.

    The SDK's own would end it in ``\r\n`` there. What libraries and child processes print goes to
    stderr from now on.
    """
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
