"""Solve tasks with API calls: model engines, prompt formats, tree search, calls and evidence.

Imports ``toolsrv_registry`` and ``toolsrv_catalogs`` only. The package itself imports nothing; it
holds the one limit that every room checks.
"""

from __future__ import annotations

TASK_LIMIT = 20_000
"""Characters of a task; a longer one is refused with a clear line rather than cut."""
