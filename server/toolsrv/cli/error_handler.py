"""Map exceptions of the command line to exit codes and one-line messages.

0 done · 1 fault (damaged data, busy, unexpected) · 2 bad usage · 3 no full answer (``solve``) · 130
interrupted (143 by SIGTERM, 129 by SIGHUP) · 141 the reader of stdout went away. With ``--json`` an
error is also the one JSON document on stdout: ``{"error": …, "hint": …, "exit_code": …}``.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import click

from toolsrv import faults
from toolsrv.cli.output import emit_json, note
from toolsrv.cli.session import Session
from toolsrv.plain import one_line
from toolsrv.signals import exit_code, number_of
from toolsrv_registry.errors import NotFoundError, ToolsrvError, UsageError
from toolsrv_registry.host_resources import FREE_MEMORY_HINT, is_memory_error

DONE, FAULT, USAGE, NO_ANSWER, READER_GONE = 0, 1, 2, 3, 141


@dataclass(frozen=True)
class ErrorReport:
    """How an invocation that did not end well is told."""

    code: int
    message: str = ""
    hint: str = ""


def run_guarded(run: Callable[[], object], session: Session, arguments: Sequence[str]) -> int:
    """Run a command and return the exit code; an error is told on stderr."""
    _prepare_streams()
    try:
        result = run()
        code = result if isinstance(result, int) else DONE
        sys.stdout.flush()
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the error handler
        if session.debug:
            sys.excepthook(type(error), error, error.__traceback__)
        code = report_error(_error_report(error, session), "--json" in arguments)
    return code


def _prepare_streams(system: str = sys.platform) -> None:
    """Make the streams usable: present, and never failing for a character they lack.

    Windows' redirected ones have the code page of the system: they become UTF-8, unless
    PYTHONIOENCODING names something else.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by whoever started us
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace", encoding=_encoding(system))


def _encoding(system: str) -> str | None:
    """Return the encoding to set, None for that which a stream has."""
    return "utf-8" if system == "win32" and "PYTHONIOENCODING" not in os.environ else None


def _error_report(error: BaseException, session: Session) -> ErrorReport:
    match error:
        case KeyboardInterrupt() | click.Abort():
            return ErrorReport(exit_code(number_of(error)), "interrupted")
        case BrokenPipeError():
            return ErrorReport(READER_GONE)
        case click.exceptions.NoArgsIsHelpError() if error.ctx is not None:
            names = ", ".join(error.ctx.command.list_commands(error.ctx))  # type: ignore[attr-defined]
            path = error.ctx.command_path
            return ErrorReport(USAGE, f"{path} needs a command: {names}", f"see {path} --help")
        case click.UsageError():
            path = error.ctx.command_path if error.ctx else "toolsrv"
            return ErrorReport(USAGE, error.format_message(), _usage_hint(error, path))
        case click.ClickException():
            return ErrorReport(error.exit_code, error.format_message())
        case UsageError() | NotFoundError():
            return ErrorReport(USAGE, error.message, error.hint)
        case ToolsrvError():
            # A folder named where a file belongs, or the reverse, is wrong use wherever it is met.
            wrong = isinstance(error.__context__, _WRONG_PLACE)
            return ErrorReport(USAGE if wrong else FAULT, error.message, error.hint)
        case OSError() if error.errno in _PLAIN_ERRNOS:
            where = f"{error.filename}: " if error.filename else ""
            return ErrorReport(FAULT, f"{where}{error.strerror}", _plain_hint(error))
        case _ if is_memory_error(error):
            return ErrorReport(
                FAULT, f"memory ran short: {error or type(error).__name__}", FREE_MEMORY_HINT
            )
        case _:
            return ErrorReport(FAULT, faults.summary(error, session.fault_folder()))


def _usage_hint(error: click.UsageError, path: str) -> str:
    """Return where help is; and how to write a text that begins like an option: -15 F in Celsius."""
    number = isinstance(error, click.NoSuchOption) and error.option_name.lstrip("-")[:1].isdigit()
    behind = f'; a text that begins with a minus comes behind two: {path} -- "-15 …"'
    return f"see {path} --help{behind if number else ''}"


def _plain_hint(error: OSError) -> str:
    """Return what to do; a full disk whose file is unknown may be that of the output."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT) and error.filename is None:
        return "free some space where the output goes, or in the data folder: toolsrv doctor"
    return _PLAIN_ERRNOS[error.errno or 0]


_WRONG_PLACE = (IsADirectoryError, NotADirectoryError)
_FOLDER_HINT = (
    "see who may read and write there; --data-dir or TOOLSRV_DATA_DIR names another data folder"
)
_PLAIN_ERRNOS = {
    errno.ENOSPC: "free some space, or name another folder with --data-dir or TOOLSRV_DATA_DIR",
    errno.EDQUOT: "free some space, or name another folder with --data-dir or TOOLSRV_DATA_DIR",
    errno.EACCES: _FOLDER_HINT,
    errno.EPERM: _FOLDER_HINT,
    errno.EROFS: _FOLDER_HINT,
    errno.ENOTDIR: _FOLDER_HINT,
    errno.ENAMETOOLONG: "no file can have this name: check the path",
    errno.ELOOP: "its links lead in a circle: check the path",
}


def report_error(ending: ErrorReport, as_json: bool) -> int:
    """Tell an ending on stderr, with ``--json`` on stdout too, and return its exit code."""
    if ending.code == READER_GONE:
        _discard_stdout()
        return ending.code
    message = one_line(ending.message, 1000)
    note(f"error: {message}")
    if ending.hint:
        note(f"hint: {one_line(ending.hint, 2000)}")
    if as_json:
        try:
            emit_json({"error": message, "hint": ending.hint, "exit_code": ending.code})
        except OSError:
            _discard_stdout()
    return ending.code


def _discard_stdout() -> None:
    """Point stdout at nothing, so that the interpreter's last flush cannot fail."""
    try:
        number = sys.stdout.fileno()
    except (OSError, ValueError):
        return
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, number)
    os.close(nothing)
