"""Thread-safe cancellation flag, checked at every token and by calls that wait."""

from __future__ import annotations

import math
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

    def left(self) -> float:
        """Return the seconds until a deadline sets it: infinite without one, 0 when it is set."""
        if self._event.is_set():
            return 0.0
        outer = math.inf if self._parent is None else self._parent.left()
        own = math.inf if self._deadline is None else self._deadline - time.monotonic()
        return max(0.0, min(outer, own))

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
