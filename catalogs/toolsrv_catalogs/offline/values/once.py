"""Data that is loaded on its first use, once, however many threads come for it at that moment."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache, wraps
from typing import TypeVar

T = TypeVar("T")


def once(load: Callable[[], T]) -> Callable[[], T]:
    """Return ``load`` as it is called once; ``functools.cache`` lets every early caller load.

    A load that fails is tried again. Loads may use one another, but not in a circle.
    """
    cached = cache(load)
    lock = threading.Lock()

    @wraps(load)
    def get() -> T:
        with lock:
            return cached()

    return get
