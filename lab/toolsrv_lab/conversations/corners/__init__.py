"""Hard cases of tool calling as episodes: dates, numbers, lists, chains, failures, near misses."""

from __future__ import annotations

from toolsrv_lab.conversations.corners.generator import episodes, main
from toolsrv_lab.conversations.corners.talk import talk

__all__ = ["episodes", "main", "talk"]
