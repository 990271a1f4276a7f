"""Limits that more than one room must know. Imports nothing."""

from __future__ import annotations

TASK_LIMIT = 20_000
"""Characters of a task; a longer one is refused with a clear line rather than cut."""
