"""Episodes over hand-written services, half B: travel, money, shops, health, texts, calculators."""

from __future__ import annotations

from toolsrv_lab.conversations.services_b.generator import episodes, main

__all__ = ["episodes", "main"]
