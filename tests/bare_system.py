"""A process that has no more than Windows has: ``bare_system.py toolsrv ARGS`` or ``- CODE``.

What only POSIX has is gone before toolsrv is imported: modules, signals, functions and flags of
``os``, event loops that take signal handlers. Text files have the line ends of Windows, and of
toolsrv's modules one that leaves an encoding to the system fails. ``sys.platform`` stays, because
the libraries are those of this system; so a few of them keep the module that they import here.
"""

from __future__ import annotations

import asyncio
import builtins
import importlib
import importlib.abc
import io
import os
import runpy
import signal
import sys
import warnings
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

MODULES = {
    "fcntl",
    "resource",
    "termios",
    "tty",
    "pty",
    "pwd",
    "grp",
    "syslog",
    "crypt",
    "readline",
}
KEPT_BY = {"mcp", "psutil"}  # import them where sys.platform is not win32
EARLY = ("platformdirs",)  # take functions of os when they are imported, where it is not win32
SIGNALS = (
    "SIGHUP SIGKILL SIGALRM SIGQUIT SIGUSR1 SIGUSR2 SIGPIPE SIGCHLD SIGTSTP SIGCONT setitimer "
    "getitimer pause pthread_sigmask pthread_kill sigwait"
)
OF_OS = (
    "fork forkpty getuid geteuid getgid getegid setsid getpgid killpg sched_getaffinity "
    "sched_setaffinity getloadavg chown lchown fchown fchmod mkfifo nice pread "
    "O_NOFOLLOW O_NONBLOCK O_CLOEXEC O_DIRECTORY O_TMPFILE"
)


class _Refused(importlib.abc.MetaPathFinder):
    """Finds what Windows does not have, and says so."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        del path, target
        if name not in MODULES:
            return None
        frame = sys._getframe(1)
        while frame.f_back is not None and "importlib" in frame.f_code.co_filename:
            frame = frame.f_back
        if str(frame.f_globals.get("__name__")).partition(".")[0] in KEPT_BY:
            return None
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def _no_handler(*_: Any) -> None:
    raise NotImplementedError


def strip() -> None:
    """Take away what Windows does not have."""
    for name in EARLY:
        importlib.import_module(name)
    for name in MODULES:
        sys.modules.pop(name, None)
    sys.meta_path.insert(0, _Refused())
    for module, names in ((signal, SIGNALS), (os, OF_OS)):
        for name in names.split():
            if hasattr(module, name):
                delattr(module, name)
    for name in ("add_signal_handler", "remove_signal_handler"):
        setattr(asyncio.SelectorEventLoop, name, _no_handler)
    os.linesep = "\r\n"
    slow = importlib.import_module("_pyio")  # the one that looks at os.linesep
    for name in ("open", "TextIOWrapper"):
        setattr(io, name, getattr(slow, name))
    builtins.open = io.open
    warnings.filterwarnings("error", category=EncodingWarning, module=r"toolsrv(_\w+)?(\.|$)")


def main() -> None:
    """Run toolsrv, or a text of Python."""
    if not sys.flags.warn_default_encoding:
        raise SystemExit("run it with -X warn_default_encoding")
    strip()
    what, *arguments = sys.argv[1:]
    if what == "-":
        sys.argv = ["-", *arguments[1:]]
        exec(compile(arguments[0], "code", "exec"), {"__name__": "__main__"})
    else:
        sys.argv = [what, *arguments]
        runpy.run_module(what, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
