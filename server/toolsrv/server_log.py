"""Log of ``toolsrv serve``: on stderr, and in a rotating file of the data folder.

Only our own lines and those of the web server get to a level below warning: other libraries write
whole addresses, keys in them included.
"""

from __future__ import annotations

import logging
import logging.handlers
import sys
from pathlib import Path
from typing import Literal, TextIO

FOLDER = "logs"
MOST_BYTES = 1_000_000
KEPT = 3
"""Older files beside the one that is written."""
Level = Literal["debug", "info", "warning", "error"]
LEVELS: tuple[Level, ...] = ("debug", "info", "warning", "error")
_OURS = ("toolsrv", "toolsrv_registry", "toolsrv_catalogs", "toolsrv_runtime", "uvicorn")
_STDERR = "%(levelname)s %(name)s: %(message)s"
_FILE = "%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"


class QuietFile(logging.handlers.RotatingFileHandler):
    """A file that is made with the first line, in a data folder that is there; else nothing is written.

    What goes wrong with it is no matter of the server's: standard error has the line too.
    """

    def __init__(self, path: Path, *, rotates: bool) -> None:
        super().__init__(
            path,
            maxBytes=MOST_BYTES if rotates else 0,
            backupCount=KEPT,
            encoding="utf-8",
            delay=True,
        )
        self._path = path

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line, where that can be done."""
        if self.stream is not None or self._path.parent.parent.is_dir():
            super().emit(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's own name
        """Pass over a disk that is full or closed."""

    def _open(self) -> TextIO:  # type: ignore[override]
        self._path.parent.mkdir(exist_ok=True)
        return super()._open()


def log_file(data_dir: Path, *, http: bool) -> Path:
    """Return where a server writes its log: all that serve HTTP to one file, those on stdio to another."""
    return data_dir / FOLDER / ("http.log" if http else "stdio.log")


def start_log(data_dir: Path, level: Level, *, http: bool) -> None:
    """Send the log to stderr and to its file.

    There is one server on stdio for each client, and while several write nobody may move the file:
    it is moved at a start only.
    """
    number = logging.getLevelNamesMapping()[level.upper()]
    shown = logging.StreamHandler(sys.stderr)
    shown.setFormatter(logging.Formatter(_STDERR))
    path = log_file(data_dir, http=http)
    kept = QuietFile(path, rotates=http)
    kept.setFormatter(logging.Formatter(_FILE))
    if not http:
        _move_large(kept, path)
    root = logging.getLogger()
    root.setLevel(logging.WARNING if level != "error" else logging.ERROR)
    for handler in (shown, kept):
        root.addHandler(handler)
    for name in _OURS:
        logging.getLogger(name).setLevel(number)


def _move_large(handler: QuietFile, path: Path) -> None:
    try:
        if path.stat().st_size > MOST_BYTES:
            handler.doRollover()
    except OSError:  # not there, or another process of Windows holds it
        return
