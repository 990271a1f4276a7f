"""What this machine has: free memory, cores. What the system does not say is unknown."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import NamedTuple

from toolsrv_registry.process import addresses_left, core_numbers

_CPUS = Path("/sys/devices/system/cpu")
_CGROUP = Path("/sys/fs/cgroup")


class Memory(NamedTuple):
    """Bytes of a process: of its own that lie in memory, and of addresses (what ``ulimit -v`` counts)."""

    own: int
    addresses: int


class Shortage(NamedTuple):
    """Bytes that a process still needs, bytes that are left, and who says so."""

    needed: int
    available: int
    limit: str


NOTHING = Memory(0, 0)


def available_memory(program: Memory = NOTHING) -> int | None:
    """Return how many bytes this process may still take, None where nobody says.

    The least of what the machine, the control group and the process's own limit leave.
    ``program`` is what the process comes to without what is asked about: what it has not taken of
    that yet is set aside.
    """
    left = [left - needed for needed, left, _ in _limits(program)]
    return max(0, min(left)) if left else None


def shortage(program: Memory) -> Shortage | None:
    """Return what is missing for the process to come to ``program``, None where it has room."""
    return next((one for one in _limits(program) if one.needed > one.available), None)


def physical_cores() -> int:
    """Return how many cores this process may run on; two threads of a core count once."""
    cpus = core_numbers()
    if not sys.platform.startswith("linux"):
        import psutil  # noqa: PLC0415 - 10 ms of a start

        return max(1, min(len(cpus), psutil.cpu_count(logical=False) or len(cpus)))
    cores = {_read(_CPUS / f"cpu{cpu}/topology/thread_siblings_list") or str(cpu) for cpu in cpus}
    return max(1, len(cores))


def _limits(program: Memory) -> list[Shortage]:
    """Return every limit that is known, with what the process still needs of it."""
    import psutil  # noqa: PLC0415 - 10 ms of a start

    taken = psutil.Process().memory_info()
    # Windows counts what is the process's own; of Linux's pages those of files are shared.
    resident = getattr(taken, "private", taken.rss) - getattr(taken, "shared", 0)
    own = max(0, program.own - resident)
    addresses = max(0, program.addresses - taken.vms)
    known = [
        (own, psutil.virtual_memory().available, "the machine"),
        (own, _control_group(), "the control group"),
        (addresses, addresses_left(), "ulimit -v"),
    ]
    return [Shortage(needed, left, who) for needed, left, who in known if left is not None]


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


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""
