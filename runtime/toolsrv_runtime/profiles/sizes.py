"""Which aids and switches a chat model gets by default: by its size class.

One table, filled in from measurements (``toolsrv lab eval models``). Imports nothing of ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

SizeClass = Literal["tiny", "small", "large", "server"]
"""At most 0.3, at most 2 billion parameters, more; ``server``: a model of others, of any size."""

TINY = 300_000_000
SMALL = 2_000_000_000


@dataclass(frozen=True, slots=True)
class Defaults:
    """``aids`` None: all there are (``agent.guidance.AIDS``)."""

    aids: frozenset[str] | None = None
    switches: frozenset[str] = frozenset()


CHOOSES_WELL = frozenset({"coverage", "exclude", "check", "shortlist", "ask"})
"""For models that choose functions and read values better than a matcher of 23 million parameters."""

TUNED = frozenset({"coverage", "values", "exclude", "check", "decline", "ask"})
"""For a small model that was trained to choose among functions: on a catalog that the matcher does not
know it chooses better than the matcher: 12 of 22 development tasks there without ``match`` and
``shortlist`` (and before ``decline``), 21 of 52 with all aids."""

DEFAULTS: Mapping[SizeClass, Defaults] = {
    "tiny": Defaults(),
    "small": Defaults(),
    "large": Defaults(aids=CHOOSES_WELL),
    "server": Defaults(aids=CHOOSES_WELL),
}


def size_class(parameters: int) -> SizeClass:
    """Return the class of a model that runs here; 0 parameters: not known, taken for large."""
    if not parameters:
        return "large"
    if parameters <= TINY:
        return "tiny"
    return "small" if parameters <= SMALL else "large"
