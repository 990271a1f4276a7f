"""A temporary data folder that is gone afterwards, also when Ctrl-C comes at the worst moment."""

from __future__ import annotations

import contextlib
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """Yield a new folder and remove it at the end; making and removing are not interrupted."""
    with _held():
        folder = Path(tempfile.mkdtemp(prefix="toolsrv-bench-"))
        try:
            with _released():
                yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _held() -> Iterator[None]:
    """Let SIGINT wait, where a system can do that."""
    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def _released() -> Iterator[None]:
    """Let SIGINT through inside ``_held``."""
    if sys.platform == "win32":
        yield
        return
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
