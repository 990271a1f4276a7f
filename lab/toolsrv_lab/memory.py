"""How the C library keeps memory while a model is trained on processors.

glibc asks the kernel for each large block and gives it back when it is freed, so a step faults its
tensors' pages in again and again: nearly half of its time. Told to keep what is freed, it does not.
Knows nothing about models.
"""

from __future__ import annotations

import ctypes
import sys

# mallopt(3): these numbers are the parameters' names in malloc.h.
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX = -1, -2, -4
_PAD_BYTES = 512 << 20


def keep_freed_memory() -> bool:
    """Let this process keep large blocks that are freed; return whether the C library heard it.

    Only glibc does; elsewhere nothing happens. Call it before the first tensor is made, in a
    process that ends with its training: memory is given back at its end.
    """
    if not sys.platform.startswith("linux"):
        return False
    library = ctypes.CDLL(None)
    if not hasattr(library, "gnu_get_libc_version"):
        return False
    mallopt = library.mallopt
    mallopt.argtypes, mallopt.restype = (ctypes.c_int, ctypes.c_int), ctypes.c_int
    settings = ((_MMAP_MAX, 0), (_TRIM_THRESHOLD, -1), (_TOP_PAD, _PAD_BYTES))
    return all(mallopt(name, value) == 1 for name, value in settings)
