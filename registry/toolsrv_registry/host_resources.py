"""Resources that the operating system grants this process: cores, addresses, memory, disk space.

A failed operation asks here whether a shortage is the likely reason. psutil is imported on the
first call that needs it: it takes a tenth of a plain start.
"""

from __future__ import annotations

import errno
import os
import shutil
import sys
from pathlib import Path


def usable_cores() -> int:
    """Return how many logical cores this process may run on: what libraries count."""
    return len(core_numbers())


def core_numbers() -> list[int]:
    """Return the numbers of the logical cores that this process may run on.

    macOS binds no process to cores: there they are all.
    """
    import psutil  # noqa: PLC0415 - see above

    process = psutil.Process()
    if hasattr(process, "cpu_affinity"):
        return list(process.cpu_affinity())
    return list(range(os.cpu_count() or 1))


def addresses_left() -> int | None:
    """Return the bytes of addresses that ``ulimit -v`` leaves, None without a limit.

    Only Linux enforces one.
    """
    if sys.platform != "linux":
        return None
    import psutil  # noqa: PLC0415 - see above

    process = psutil.Process()
    if not hasattr(psutil, "RLIMIT_AS"):  # a build without it
        return None
    limit, _ = process.rlimit(psutil.RLIMIT_AS)
    if limit == psutil.RLIM_INFINITY:
        return None
    return int(limit) - int(process.memory_info().vms)


FREE_MEMORY_HINT = (
    "close other programs or raise the limit (ulimit -v, the control group's), and repeat"
)

SCARCE_MEMORY_BYTES = 256 * 1024 * 1024
"""With less, a native library's failure is put down to it: a thread or two take as much."""

_CAUSES_LIMIT = 10
"""Of a chain of causes."""

_SHORTAGE_MESSAGES = (
    "out of memory",
    "cannot allocate memory",
    "can't start new thread",
    "bad_alloc",
    "failed to spawn thread",
    "memory allocation of",
    "failed to map segment",  # of a library
    "resource temporarily unavailable",  # a thread, as Rust tells it
)


def is_memory_error(error: BaseException) -> bool:
    """Whether an error, or what it comes from, says that memory or a thread could not be had."""
    one: BaseException | None = error
    for _ in range(_CAUSES_LIMIT):
        if one is None:
            break
        if isinstance(one, MemoryError) or (isinstance(one, OSError) and one.errno == errno.ENOMEM):
            return True
        if any(text in str(one).lower() for text in _SHORTAGE_MESSAGES):
            return True
        one = one.__cause__ or one.__context__
    return False


def is_memory_scarce() -> bool:
    """Whether ``ulimit -v`` leaves this process less than a library may want at once."""
    try:
        left = addresses_left()
    except (ImportError, MemoryError, OSError) as error:  # psutil itself found no room
        return is_memory_error(error)
    return left is not None and left < SCARCE_MEMORY_BYTES


MIB = 1024 * 1024
SCARCE_DISK_BYTES = 64 * MIB
"""With less, a failure to write is put down to it: an index of 16,463 APIs takes some 60 MiB."""
FREE_DISK_HINT = "free some disk space and repeat"


def disk_shortage(path: Path) -> str:
    """Return how little room is left where ``path`` lies; ``""`` for enough, or if unknown."""
    for place in (path, *path.parents):
        try:
            free = shutil.disk_usage(place).free
        except FileNotFoundError:
            continue
        except OSError:
            return ""
        return f"{free / MIB:.1f} MiB left" if free < SCARCE_DISK_BYTES else ""
    return ""
