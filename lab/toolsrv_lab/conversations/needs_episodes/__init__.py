"""Episodes from the hand-written needs over ToolBench's catalog and the offline one."""

from __future__ import annotations

from toolsrv_lab.conversations.needs_episodes.generator import episodes, main

__all__ = ["episodes", "main"]
