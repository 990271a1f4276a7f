"""SQLite files opened safely: WAL, busy timeout, migrations, explained errors, cached reads.

``CachedRead`` keeps what was read until this process or another writes the file. Knows no tables.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

from toolsrv_registry import wellformed
from toolsrv_registry.errors import BusyError, DamagedError, DataError, ToolsrvError
from toolsrv_registry.host_resources import FREE_DISK_HINT, disk_shortage

BUSY_SECONDS = 20.0
APPLICATION_ID = 0x746F6F6C  # "tool"
_ANEW = "move it away and repeat: a new one is begun, and what was imported is imported again"

Migration = Callable[[sqlite3.Connection], None]
Stamp = tuple[int, int]
"""Two numbers: the first moves when another connection wrote the file, the second when ours did."""


class Database:
    """An open SQLite file. ``Database.open`` makes one; close it or use it as a context.

    ``read_only``: nothing can be written where it lies, and it was opened all the same.
    """

    def __init__(
        self, connection: sqlite3.Connection, path: Path, *, read_only: bool = False
    ) -> None:
        self._connection = connection
        self.read_only = read_only
        self._lock = threading.RLock()
        self._writes = 0
        self.path = path

    @classmethod
    def open(cls, path: Path, migrations: Sequence[Migration]) -> Self:
        """Open or create the file and bring it to the newest version.

        A file that is not ours, or is a newer toolsrv's, is refused before anything is written.
        """
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(
                f"cannot use {path}: {error.strerror}", hint="set another data directory"
            ) from error
        with _translated(path):
            connection = sqlite3.connect(
                path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
        try:
            with _translated(path):
                connection.row_factory = sqlite3.Row
                _checked_version(connection, path, len(migrations))
                _use_wal(connection)
                connection.execute("PRAGMA synchronous = NORMAL")
                connection.execute("PRAGMA foreign_keys = ON")
                _migrate(connection, path, migrations)
        except ToolsrvError:
            connection.close()
            raise
        return cls(connection, path)

    @classmethod
    def open_to_read(cls, path: Path, migrations: Sequence[Migration]) -> Self:
        """Open the file as ``open`` does; where nothing can be written, to read alone.

        A full disk or a closed folder has no room for what SQLite makes beside a file that it opens.
        """
        try:
            return cls.open(path, migrations)
        except DataError as error:
            unwritable = isinstance(error.__cause__, sqlite3.DatabaseError)
            if isinstance(error, DamagedError) or not unwritable:
                raise
            connection = _read_only(path, len(migrations))
            if connection is None:
                raise
            return cls(connection, path, read_only=True)

    def read(
        self, sql: str, parameters: Sequence[Any] | Mapping[str, Any] = ()
    ) -> list[sqlite3.Row]:
        """Run one query and return all rows. Text that SQLite cannot hold matches nothing."""
        if isinstance(parameters, Mapping):
            parameters = {key: _storable(value) for key, value in parameters.items()}
        else:
            parameters = [_storable(value) for value in parameters]
        with self._lock, _translated(self.path):
            return self._connection.execute(sql, parameters).fetchall()

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection inside one transaction; an exception undoes all of it.

        Only what SQLite raises is told as this file's failure; all else comes out as it is.
        """
        with self._lock, _translated(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                # A full disk ends the transaction by itself.
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
            finally:
                self._writes += 1

    def stamp(self) -> Stamp:
        """Return two numbers that move when anybody writes the file.

        Inside ``steady`` other processes' writes do not count.
        """
        seen = _SEEN.get()
        if seen is not None and seen[0] is self:
            return seen[1], self._writes
        version = self.read("PRAGMA data_version")[0][0]
        return int(version), self._writes

    @contextmanager
    def steady(self) -> Iterator[None]:
        """Look only once, now, whether others wrote the file: for many short reads in a row.

        Where a file is shared each look costs some system calls. Holds for this thread, and for
        whoever runs in a copy of its context.
        """
        token = _SEEN.set((self, self.stamp()[0]))
        try:
            yield
        finally:
            _SEEN.reset(token)

    def close(self) -> None:
        """Close the file. Twice is fine."""
        with self._lock:
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_SEEN: ContextVar[tuple[Database, int] | None] = ContextVar("toolsrv_seen", default=None)


def _storable(value: Any) -> Any:
    """Return text without lone surrogates, which no UTF-8 database holds."""
    return wellformed.text(value) if isinstance(value, str) else value


def _read_only(path: Path, known: int) -> sqlite3.Connection | None:
    """Return a connection that writes nothing, None where what is written needs writing to be read."""
    ways = ["mode=ro"]
    wal = path.with_name(f"{path.name}-wal")
    if not wal.exists() or not wal.stat().st_size:
        ways.append("immutable=1")  # it would leave out what is only in the WAL so far
    for way in ways:
        connection = None
        try:
            connection = sqlite3.connect(
                f"{path.absolute().as_uri()}?{way}",
                timeout=BUSY_SECONDS,
                isolation_level=None,
                check_same_thread=False,
                uri=True,
            )
            connection.row_factory = sqlite3.Row
            if _checked_version(connection, path, known) == known:
                return connection
        except sqlite3.DatabaseError:
            pass
        if connection is not None:
            connection.close()
    return None


def _use_wal(connection: sqlite3.Connection) -> None:
    """Switch to WAL. SQLite does not wait for a lock here, so two first openers meet."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL").fetchone()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return


def _migrate(connection: sqlite3.Connection, path: Path, migrations: Sequence[Migration]) -> None:
    known = len(migrations)
    if _checked_version(connection, path, known) == known:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have migrated while this one waited for the lock.
        for migration in migrations[_checked_version(connection, path, known) :]:
            migration(connection)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {known}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _checked_version(connection: sqlite3.Connection, path: Path, known: int) -> int:
    """Return how many migrations a file has had: 0 for an empty one. Only reads.

    Raises:
        DataError: It is another program's, or a newer toolsrv's.
    """
    # In one statement, so of one moment: another process may be making the file.
    owner, version, tables = connection.execute(
        "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_master)"
        " FROM pragma_application_id, pragma_user_version"
    ).fetchone()
    if owner != APPLICATION_ID and (owner or version or tables):
        raise DataError(f"{path} is another program's database", hint="set another data directory")
    if version > known:
        raise DataError(
            f"{path} was written by a newer toolsrv (version {version}, this one knows {known})",
            hint="upgrade toolsrv, or set another data directory",
        )
    return int(version)


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into ours, each with what to do next."""
    try:
        yield
    except sqlite3.ProgrammingError:
        # Use after close and wrong statements are our own mistakes, not the user's.
        raise
    except sqlite3.DatabaseError as error:
        raise _explained(path, error) from error


def _explained(path: Path, error: sqlite3.DatabaseError) -> ToolsrvError:
    code = (error.sqlite_errorcode or 0) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return BusyError(
            f"{path} is in use by another process", hint="try again when it has finished"
        )
    if code == sqlite3.SQLITE_FULL:
        return DataError(f"no space left for {path}: the disk is full", hint=FREE_DISK_HINT)
    if code == sqlite3.SQLITE_IOERR:
        left = disk_shortage(path)
        if left:
            return DataError(
                f"no space left for {path}: the disk is full ({left})", hint=FREE_DISK_HINT
            )
        return DataError(
            f"cannot read or write {path}: {error}",
            hint="check its disk (room, quota, limit on file sizes) and repeat",
        )
    if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
        return DataError(
            f"cannot write {path}: {error}",
            hint="check its permissions, or set another data directory",
        )
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return DamagedError(
            f"{path} is damaged: {error}",
            hint=_ANEW,
        )
    return DamagedError(f"{path}: {error}", hint=_ANEW)


CachedT = TypeVar("CachedT")


class CachedRead(Generic[CachedT]):
    """What ``read`` gave last; O(1) while neither this process nor another wrote the file."""

    def __init__(self, database: Database, read: Callable[[], CachedT]) -> None:
        self._database = database
        self._read = read
        self._kept: tuple[Stamp, CachedT] | None = None

    def get(self) -> CachedT:
        """Return it as the file has it now, or had it when ``Database.steady`` began."""
        stamp = self._database.stamp()
        kept = self._kept
        if kept is None or kept[0] != stamp:
            # Read after the stamp: a change between the two is seen the next time. No lock is
            # held, as whoever writes may ask for this; two threads at worst read the same twice.
            self._kept = kept = (stamp, self._read())
        return kept[1]
