"""A large file that appears whole or not at all. Knows nothing about what is in it."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from toolsrv_runtime.convert.errors import WriteError


@contextlib.contextmanager
def fresh_file(target: Path) -> Iterator[Path]:
    """Yield the path of an empty file beside ``target``, and rename it to that at the end.

    It is flushed to the disk before; whatever goes wrong, it is removed and ``target`` is as it
    was.

    Raises:
        WriteError: The folder is missing or closed, or the disk is full.
    """
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name[:80]}-", dir=target.parent)
        os.close(handle)
    except OSError as error:
        raise _plain(target, error) from None
    fresh = Path(name)
    try:
        yield fresh
        with fresh.open("rb") as file:
            os.fsync(file.fileno())
        fresh.chmod(0o644)
        fresh.replace(target)
    except OSError as error:
        raise _plain(target, error) from error
    finally:
        fresh.unlink(missing_ok=True)


def _plain(target: Path, error: OSError) -> WriteError:
    return WriteError(
        f"cannot write {str(target)!r}: {error.strerror or error}",
        hint="free some space, or name another place with --out",
    )
