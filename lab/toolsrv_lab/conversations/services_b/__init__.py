"""Episodes over hand-written services, half B: everyday life, trades, machines, software."""

from __future__ import annotations

from toolsrv_lab.conversations.services_b.generator import episodes, main

__all__ = ["episodes", "main"]
