"""Check that the parts of the program fit into memory before any of them is opened.

What native libraries make of short memory is no error that could be told: the C library ends the
process, a thread that could not begin is waited for, an index looks damaged. So what the parts come
to is compared with what there is first. The model's own share is
``toolsrv_runtime.requirements``'s.

Imports nothing heavy: it comes before what is.
"""

from __future__ import annotations

from dataclasses import dataclass

from toolsrv_registry.errors import MemoryShortError
from toolsrv_registry.host_resources import usable_cores
from toolsrv_runtime.requirements import ProcessMemory, memory_shortage

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Workload:
    """What a kind of work takes in all, in MiB, without a model: peaks, rounded up.

    ``own`` is the process's own memory, ``addresses`` what ``ulimit -v`` counts, of that
    ``per_core`` for the threads that libraries start; ``per_api`` are KiB of both for an API of
    the catalogs. Source: RssAnon and VmPeak in /proc of ``toolsrv describe``, ``search``,
    ``index build`` and ``solve`` of three calls, on one and two cores, with 170 and 16,633 APIs.
    """

    name: str
    own: int
    addresses: int
    per_core: int
    per_api: int = 0
    besides: str = "a model"

    def memory(self, apis: int = 0) -> ProcessMemory:
        """Return what it comes to with so many APIs, on this machine's cores."""
        more = self.per_api * apis // 1024
        addresses = self.addresses + self.per_core * usable_cores() + more
        return ProcessMemory((self.own + more) * MIB, addresses * MIB)


OPENING = Workload(
    "opening the catalog", own=40, addresses=220, per_core=45, besides="a search or a solve"
)
SEARCHING = Workload("a search", own=200, addresses=1200, per_core=65, per_api=10)
SOLVING = Workload("a solve", own=290, addresses=1520, per_core=120, per_api=12)


def check_memory(work: Workload, apis: int = 0) -> None:
    """Refuse work that memory does not suffice for.

    Raises:
        MemoryShortError: says how much is needed and how much there is.
    """
    needs = work.memory(apis)
    short = memory_shortage(needs)
    if short is None:
        return
    from toolsrv_runtime.requirements import format_bytes

    if short.limit == "ulimit -v":
        hint = f"ulimit -v {-(-needs.addresses // 1024)} or more"
    else:
        hint = "close other programs, or give this one more"
    raise MemoryShortError(
        f"{work.name} needs {format_bytes(short.needed)} more of memory, and {format_bytes(short.available)} are "
        f"available ({short.limit})",
        hint=f"{hint}; {work.besides} comes on top of that",
    )
