"""Whether an API can be called as things are, and what a call of it has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Key = Literal["", "set", "missing"]


@dataclass(frozen=True, slots=True)
class Ready:
    """What a call has.

    ``callable``: by itself, or once a person says yes, which ``asks`` tells. ``key`` is empty where
    none is needed; ``lacks`` what is missing, as ``auth.lacking``. ``offline``: this machine
    answers. ``calls_left`` of the host today, None without a limit.
    """

    callable: bool
    asks: bool = False
    key: Key = ""
    lacks: str = ""
    offline: bool = False
    calls_left: int | None = None
