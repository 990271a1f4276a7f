"""Fault log: one file per unexpected exception, so that no traceback reaches a user.

It knows nothing about who reports the fault to whom; both error handlers (command line and MCP
server) call ``record`` and tell the path in one line.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import errno
import os
import platform
import secrets
import stat
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path

import toolsrv

KEEP = 20


def record(error: BaseException, data_dir: Path) -> Path | None:
    """Write the traceback below ``data_dir`` and return the file, the oldest ones removed.

    Where the data folder cannot be written a folder of the user's own stands in, below the
    system's for temporary files; ``None`` when that fails too.
    """
    now = dt.datetime.now(dt.UTC)
    name = f"fault-{now:%Y%m%dT%H%M%S.%fZ}-{os.getpid()}-{secrets.token_hex(2)}.log"
    head = f"toolsrv {toolsrv.__version__}, Python {platform.python_version()}, {sys.platform}\n"
    text = head + "".join(traceback.format_exception(error))
    places: tuple[Callable[[], Path], ...] = (lambda: _made(data_dir / "faults"), _spare)
    for place in places:
        try:
            path = place() / name
            path.write_text(text, encoding="utf-8", errors="backslashreplace")
        except OSError:
            continue
        _forget_oldest(path.parent)
        return path
    return None


def summary(error: BaseException, data_dir: Path) -> str:
    """Record the fault and return the one line that a user sees."""
    path = record(error, data_dir)
    where = f"details in {path}" if path else "and its details could not be written"
    return f"unexpected {type(error).__name__}, a fault of toolsrv; {where}"


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _spare() -> Path:
    """Return a folder for this user alone, in a place where everybody may make folders.

    Windows has that place, and its rights, for each user.

    Raises:
        OSError: It cannot be made, or what has its name is not ours or open to others.
    """
    if sys.platform == "win32" or not hasattr(os, "geteuid"):
        return _made(Path(tempfile.gettempdir()) / "toolsrv-faults")
    folder = Path(tempfile.gettempdir()) / f"toolsrv-faults-{os.geteuid()}"
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()  # a link that somebody put there is not followed
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise PermissionError(errno.EPERM, "not a folder of this user alone", str(folder))
    return folder


def _forget_oldest(folder: Path) -> None:
    """Remove what is too old, as far as that is possible: the newest is written already."""
    for old in sorted(folder.glob("fault-*.log"))[:-KEEP]:
        with contextlib.suppress(OSError):
            old.unlink(missing_ok=True)
