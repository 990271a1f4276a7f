"""Twins: the same API at another provider, so that a call that fails can be mended.

Rows for the small model and annotated solution paths both offer them. Seeded by its caller.
"""

from __future__ import annotations

import random
import re

from toolsrv_registry.api import Api

_PROVIDERS = ("alt", "pro", "plus", "v2", "backup", "express", "open", "global", "lite", "hub")


def twin_of(api: Api, rng: random.Random) -> Api:
    """Return an API of another provider that does the same."""
    other = rng.choice(_PROVIDERS)
    tool = f"{other} {api.tool}" if rng.random() < 0.5 else f"{api.tool} {other}"
    category, _, last = api.id.split("/", 2)
    key = re.sub(r"[^a-z0-9]+", "_", tool.lower()).strip("_")
    return api.model_copy(update={"tool": tool, "id": f"{category}/{key}/{last}"})


def does_the_same(one: Api, other: Api) -> bool:
    """Whether two APIs have the same name and description."""
    return (one.name, one.description) == (other.name, other.description)
