"""What this machine has: free memory, cores. Linux's own files; where they are missing, unknown."""

from __future__ import annotations

import os
import re
import resource
from pathlib import Path

_CPUS = Path("/sys/devices/system/cpu")
_CGROUP = Path("/sys/fs/cgroup")


def available_memory() -> int | None:
    """Return how many bytes this process may still take, None where nobody says.

    The least of what the machine, the control group and the process's own limit leave.
    """
    left = [one for one in (_machine(), _control_group(), _own_limit()) if one is not None]
    return max(0, min(left)) if left else None


def physical_cores() -> int:
    """Return how many cores this process may run on; two threads of a core count once."""
    cpus = os.sched_getaffinity(0)
    cores = {_read(_CPUS / f"cpu{cpu}/topology/thread_siblings_list") or str(cpu) for cpu in cpus}
    return max(1, len(cores))


def _machine() -> int | None:
    found = re.search(r"^MemAvailable:\s+(\d+) kB", _read(Path("/proc/meminfo")), re.MULTILINE)
    return int(found[1]) * 1024 if found else None


def _control_group() -> int | None:
    """Return what is left in the process's own control group (version 2) and those above it."""
    path = re.search(r"^0::(/.*)$", _read(Path("/proc/self/cgroup")), re.MULTILINE)
    if path is None:
        return None
    place = _CGROUP / path[1].lstrip("/")
    left = []
    for folder in (place, *place.parents):
        limit, used = _read(folder / "memory.max"), _read(folder / "memory.current")
        if limit.isdecimal() and used.isdecimal():
            cached = re.search(
                r"^inactive_file (\d+)$", _read(folder / "memory.stat"), re.MULTILINE
            )
            left.append(int(limit) - int(used) + (int(cached[1]) if cached else 0))
        if folder == _CGROUP:
            break
    return min(left, default=None)


def _own_limit() -> int | None:
    """Return what ``ulimit -v`` leaves."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    pages = _read(Path("/proc/self/statm")).split()
    if limit == resource.RLIM_INFINITY or not pages:
        return None
    return limit - int(pages[0]) * resource.getpagesize()


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""
