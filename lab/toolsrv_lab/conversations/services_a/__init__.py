"""Episodes over hand-written services, half A: mail to e-signature."""

from __future__ import annotations

from toolsrv_lab.conversations.services_a.generator import episodes, main

__all__ = ["episodes", "main"]
