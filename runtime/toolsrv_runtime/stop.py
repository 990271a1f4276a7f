"""A thread-safe wish to stop, checked by the engine at every token and by calls while they wait."""

from __future__ import annotations

import threading
import time


class Stop:
    """Set once, from any thread or signal handler; never unset.

    ``parent`` and ``deadline`` (``time.monotonic`` seconds) make it set without a ``set()``.
    """

    def __init__(self, *, parent: Stop | None = None, deadline: float | None = None) -> None:
        self._event = threading.Event()
        self._parent = parent
        self._deadline = deadline

    def postpone(self, seconds: float) -> None:
        """Put the deadline off, where there is one."""
        if self._deadline is not None:
            self._deadline += seconds

    def set(self) -> None:
        """Ask everything that watches this object to stop as soon as it can."""
        self._event.set()

    def is_set(self) -> bool:
        """Whether to stop now."""
        return (
            self._event.is_set()
            or (self._parent is not None and self._parent.is_set())
            or (self._deadline is not None and time.monotonic() >= self._deadline)
        )
