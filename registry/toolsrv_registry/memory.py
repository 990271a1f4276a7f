"""Did something fail because memory ran short? Asked after it failed, to tell the likely reason."""

from __future__ import annotations

import errno

from toolsrv_registry.process import addresses_left

AGAIN = "close other programs or raise the limit (ulimit -v, the control group's), and repeat"

SCARCE_BYTES = 256 * 1024 * 1024
"""With less, a native library's failure is put down to it: a thread or two take as much."""

_DEPTH = 10
"""Of a chain of causes."""

_SAID = (
    "out of memory",
    "cannot allocate memory",
    "can't start new thread",
    "bad_alloc",
    "failed to spawn thread",
    "memory allocation of",
    "failed to map segment",  # of a library
    "resource temporarily unavailable",  # a thread, as Rust tells it
)


def ran_short(error: BaseException) -> bool:
    """Whether an error, or what it comes from, says that memory or a thread could not be had."""
    one: BaseException | None = error
    for _ in range(_DEPTH):
        if one is None:
            break
        if isinstance(one, MemoryError) or (isinstance(one, OSError) and one.errno == errno.ENOMEM):
            return True
        if any(text in str(one).lower() for text in _SAID):
            return True
        one = one.__cause__ or one.__context__
    return False


def scarce() -> bool:
    """Whether ``ulimit -v`` leaves this process less than a library may want at once."""
    try:
        left = addresses_left()
    except (ImportError, MemoryError, OSError) as error:  # psutil itself found no room
        return ran_short(error)
    return left is not None and left < SCARCE_BYTES
