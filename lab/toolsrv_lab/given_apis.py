"""Candidates that are given rather than found, in the shape of a search's result.

What stands in for a retriever hands these out (``toolsrv_runtime.agent.candidates``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from toolsrv_registry.api import Api
from toolsrv_runtime.agent.candidates import RetrievedApi


@dataclass(frozen=True, slots=True)
class GivenApi:
    """One candidate; ``score`` in [0, 1], ``clause`` the part of the text that it fits best."""

    api: Api
    score: float = 1.0
    clause: str = ""


@dataclass(frozen=True, slots=True)
class GivenApis:
    """Candidates of one text, best first."""

    hits: Sequence[RetrievedApi]
    nothing_fits: bool = False
    nearest_categories: Sequence[str] = ()
    dead_left_out: int = 0
    need_consent: Sequence[str] = ()
    language: str = ""
