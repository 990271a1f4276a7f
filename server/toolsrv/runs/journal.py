"""Journals: live runs on disk from their first step, so that a killed process loses none.

One file of JSON lines for each run: a header with the task and its options, then its events, the
observations with their whole responses. Each line is appended and handed to the operating system,
without a sync. The writer holds the lock beside its file for as long as the run lives, so a journal
whose lock is free belongs to a process that has ended: ``open_runs`` keeps it as an interrupted run.
A last line that is torn is left out. What prevents writing never stops a solve and is reported once.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

import toolsrv
from toolsrv.runs.interrupted import interrupted_record
from toolsrv.runs.queue import Journal, NoJournal
from toolsrv.runs.records import RunRecord, response_text
from toolsrv.runs.store import MOST_RESPONSE, RunStore
from toolsrv_registry import wellformed
from toolsrv_registry.errors import ToolsrvError
from toolsrv_registry.file_lock import HeldLock, lock_beside
from toolsrv_runtime.options import SolveOptions
from toolsrv_runtime.outcome import Event, ObservationEvent, call_text

if TYPE_CHECKING:
    from toolsrv.settings import Settings

JOURNALS = "journals"
FORMAT, VERSION = "toolsrv-run", 1
MOST_BYTES = 64 * 1024 * 1024
"""Of one journal; what follows is not written, and that is reported."""
_SUFFIX = ".jsonl"
_LOST = "the run would be lost if this process were killed: {}"


class Header(BaseModel):
    """First line of a journal. ``continues`` is the run that the task goes on from, "" without."""

    model_config = ConfigDict(frozen=True)

    format: str
    version: int
    run_id: str = Field(pattern=r"^[A-Za-z0-9_-]{1,200}$")
    task: str
    options: SolveOptions
    continues: str
    model: str
    toolsrv: str
    started: datetime


class RunJournal:
    """Journal of one live run; ``discard`` it once the run is kept, ``leave`` it where it is not.

    ``report`` is called once with why the run is not written any more. No method raises.
    """

    def __init__(self, folder: Path, header: Header, report: Callable[[str], None]) -> None:
        """Begin the file in a data folder, with its header."""
        self._path = folder / JOURNALS / f"{header.run_id}{_SUFFIX}"
        self._report = report
        self._lock: HeldLock | None = None
        self._file: BinaryIO | None = None
        self._size = 0
        self._written: set[str] = set()
        with self._reported():
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = lock_beside(self._path)
            handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            self._file = os.fdopen(handle, "wb", buffering=0)
            self._write(_encoded(header.model_dump(mode="json", exclude={"options": {"earlier"}})))

    def add(self, event: Event) -> None:
        """Append an event; the response of a call that is there already is not repeated."""
        if self._file is None:
            return
        line: dict[str, Any] = {"event": event.model_dump()}
        made = event.evidence if isinstance(event, ObservationEvent) else None
        with self._reported():
            if made is not None:
                key = call_text(made.api_id, made.arguments)
                known = {"response": None} if key in self._written else {}
                line["evidence"] = made.model_dump() | known
                if made.ok:  # until then its response is not the one that counts
                    self._written.add(key)
            content = _encoded(line)
            if made is not None and len(content) > MOST_RESPONSE:
                whole = response_text(made)
                line["evidence"] |= {"response": whole[:MOST_RESPONSE], "characters": len(whole)}
                content = _encoded(line)
            self._write(content)

    def discard(self) -> None:
        """Remove the file: the run is kept, or there is nothing to keep. Idempotent."""
        self._close()
        if self._lock is not None:
            with contextlib.suppress(OSError):
                self._path.unlink(missing_ok=True)
        self.leave()

    def leave(self) -> None:
        """Let the file go as it is: whoever looks for runs next keeps it. Idempotent."""
        self._close()
        lock, self._lock = self._lock, None
        if lock is not None:
            with contextlib.suppress(OSError):
                lock.release()

    def _close(self) -> None:
        file, self._file = self._file, None
        with contextlib.suppress(OSError):
            if file is not None:
                file.close()

    def _write(self, line: bytes) -> None:
        """Write a whole line, or raise."""
        self._size += len(line)
        if self._size > MOST_BYTES:
            raise OverflowError(f"its journal has more than {MOST_BYTES:,} bytes")
        left = memoryview(line)
        while left and self._file is not None:
            left = left[self._file.write(left) or 0 :]

    @contextlib.contextmanager
    def _reported(self) -> Iterator[None]:
        """Report what prevents writing, and write no more; the lock stays."""
        try:
            yield
        except (OSError, ValueError, OverflowError, RecursionError) as error:
            self._close()
            why = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
            self._report(_LOST.format(why))


def _encoded(line: dict[str, Any]) -> bytes:
    """Return a line as JSON; in ASCII, so that half a surrogate pair can be written too."""
    return json.dumps(line, default=str).encode("ascii") + b"\n"


def open_journal(
    settings: Settings,
    run_id: str,
    task: str,
    options: SolveOptions,
    report: Callable[[str], None],
) -> Journal:
    """Begin the journal of a run; none where no runs are kept. ``report`` as of ``RunJournal``."""
    if not settings.keep_runs:
        return NoJournal()
    try:
        header = Header(
            format=FORMAT,
            version=VERSION,
            run_id=run_id,
            task=wellformed.text(task),
            options=options,
            continues=options.earlier[-1].run_id if options.earlier else "",
            model=str(settings.model or "the model that ships"),
            toolsrv=toolsrv.__version__,
            started=datetime.now(UTC),
        )
    except ValidationError:  # an id that is no name of a file
        report(_LOST.format(f"{run_id[:80]!r} is no id of a run"))
        return NoJournal()
    return RunJournal(settings.data_dir, header, report)


def open_runs(folder: Path) -> RunStore:
    """Open the kept runs to read, those among them whose process was killed. Blocks.

    Raises as ``RunStore.open_to_read`` does.
    """
    keep_interrupted(folder)
    return RunStore.open_to_read(folder)


def any_runs(folder: Path) -> bool:
    """Whether a data folder has kept runs or journals; nothing is opened for that."""
    return RunStore.exists(folder) or bool(_journals(folder))


def is_written(folder: Path, run_id: str) -> bool:
    """Whether a run of this id is live: another process works on it."""
    return any(one.stem == run_id for one in _journals(folder))


def keep_interrupted(folder: Path) -> int:
    """Keep the runs whose process has ended; return how many. Blocks.

    What another process still writes is left alone; so is everything where nothing can be written,
    and what a newer toolsrv wrote.
    """
    kept = 0
    for path in _journals(folder):
        try:
            with lock_beside(path):
                kept += _keep(folder, path)
        except (OSError, ToolsrvError):  # its process lives, or there is no room for it yet
            continue
    return kept


def _journals(folder: Path) -> list[Path]:
    """Return the journals of a data folder, the oldest first."""
    found = []
    with contextlib.suppress(OSError):
        for one in (folder / JOURNALS).glob(f"*{_SUFFIX}"):
            with contextlib.suppress(OSError):  # its run was kept meanwhile
                found.append((one.stat().st_mtime, one))
    return [path for _, path in sorted(found)]


def _keep(folder: Path, path: Path) -> bool:
    """Keep the run of a journal and remove the file; False where there is nothing to keep.

    A journal that its run outlived, as the process ended between keeping and removing, goes.
    """
    if not path.exists():  # kept meanwhile
        return False
    record = read_journal(path)
    if record is None and _has_line(path):
        return False
    if record is not None:
        with RunStore.open(folder) as store:
            if store.has(record.id):
                record = None
            else:
                store.keep(record, None)
    path.unlink()
    return record is not None


def _has_line(path: Path) -> bool:
    with path.open("rb") as file:
        return file.readline(MOST_BYTES).endswith(b"\n")


def read_journal(path: Path) -> RunRecord | None:
    """Return the run of a journal as far as it was written.

    None where there is not even a whole header, or not one that this version reads.

    Raises:
        OSError: the file cannot be read.
    """
    ended = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    with path.open("rb") as file:
        lines = _lines(file)
        try:
            header = Header.model_validate(next(lines, None))
        except ValidationError:
            return None
        if (header.format, header.version) != (FORMAT, VERSION) or path.stem != header.run_id:
            return None
        return interrupted_record(
            header.run_id, header.task, header.options, list(_events(lines)), ended,
            continues=header.continues, model=header.model, toolsrv=header.toolsrv,
        )  # fmt: skip


def _lines(file: BinaryIO) -> Iterator[Any]:
    """Yield the values of the lines, up to the first that is torn or too long."""
    while (line := file.readline(MOST_BYTES)).endswith(b"\n"):
        try:
            yield wellformed.loads(line)
        except (ValueError, RecursionError):
            return


def _events(lines: Iterator[Any]) -> Iterator[Event]:
    events: TypeAdapter[Event] = TypeAdapter(Event)
    for line in lines:
        try:
            event = events.validate_python(line["event"])
            if isinstance(event, ObservationEvent) and "evidence" in line:
                fields = event.model_dump() | {"evidence": line["evidence"]}
                event = ObservationEvent.model_validate(fields)
        except (ValidationError, KeyError, TypeError):
            return
        yield event
