"""What the operating system grants this process: cores, and addresses under ``ulimit -v``.

psutil is imported when it is asked for something: a tenth of a plain start.
"""

from __future__ import annotations

import os
import sys


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
