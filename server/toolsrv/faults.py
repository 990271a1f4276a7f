"""Where unexpected exceptions go: a log file each, so that no traceback reaches a user.

It knows nothing about who reports the fault to whom; both rims (command line and MCP server)
call ``record`` and tell the path in one line.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import platform
import secrets
import sys
import tempfile
import traceback
from pathlib import Path

import toolsrv

KEEP = 20


def record(error: BaseException, data_dir: Path) -> Path | None:
    """Write the traceback below ``data_dir`` and return the file, the oldest ones removed.

    Where the data folder cannot be written the system's folder for temporary files stands in;
    ``None`` when that fails too.
    """
    now = dt.datetime.now(dt.UTC)
    name = f"fault-{now:%Y%m%dT%H%M%SZ}-{os.getpid()}-{secrets.token_hex(2)}.log"
    head = f"toolsrv {toolsrv.__version__}, Python {platform.python_version()}, {sys.platform}\n"
    text = head + "".join(traceback.format_exception(error))
    for folder in (data_dir / "faults", Path(tempfile.gettempdir())):
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8", errors="backslashreplace")
            _forget_oldest(folder)
            return folder / name
    return None


def summary(error: BaseException, data_dir: Path) -> str:
    """Record the fault and return the one line that a user sees."""
    path = record(error, data_dir)
    where = f"details in {path}" if path else "and its details could not be written"
    return f"unexpected {type(error).__name__}, a fault of toolsrv; {where}"


def _forget_oldest(folder: Path) -> None:
    for old in sorted(folder.glob("fault-*.log"))[:-KEEP]:
        old.unlink(missing_ok=True)
