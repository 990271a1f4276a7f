"""Instruction files: tasks over a catalog, written to JSON lines as query files are read.

A share of the tools can be held out: the *seen* tools are for training, the *held-out* ones for
judging what a model does with tools it never met. ``needs`` of an entry are the sentences that tell
each need, in the order of ``relevant``. Which is which is decided by a hash of the
tool's name, so it is the same in every run.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
from collections.abc import Callable, Sequence
from pathlib import Path

from toolsrv_lab.instructions.compose import compose
from toolsrv_lab.instructions.sample import groups
from toolsrv_registry.api import Api
from toolsrv_registry.errors import UsageError

Progress = Callable[[int, int], None]


def is_held_out(api: Api, share: float) -> bool:
    """Return whether the API's tool is among the held-out share."""
    digest = hashlib.sha256(f"{api.category}/{api.tool}".encode()).hexdigest()
    return int(digest[:8], 16) / 2**32 < share


def write_instructions(
    apis: Sequence[Api],
    path: Path,
    *,
    rounds: int,
    seed: int,
    name: str = "instructions",
    progress: Progress | None = None,
) -> int:
    """Write ``rounds`` tasks per API, each API leading one per round; return their number.

    The file appears when it is complete. Raises UsageError where there is no API.
    """
    if not apis:
        raise UsageError("there is no API to write instructions for", hint="toolsrv catalog list")
    rng = random.Random(seed)
    total = rounds * len(apis)
    fresh = path.with_name(f".{path.name}.new")
    with fresh.open("w", encoding="utf-8") as file:
        for at, members in enumerate(groups(apis, rounds, rng), start=1):
            text, needs = compose(members, rng)
            entry = {
                "query_id": f"{name}/{at}",
                "query": text,
                "set": name,
                "needs": needs,
                "relevant": [
                    {"category": one.category, "tool": one.tool, "api": one.name, "id": one.id}
                    for one in members
                ],
            }
            file.write(json.dumps(entry, ensure_ascii=False) + "\n")
            if progress is not None and at % 500 == 0:
                progress(at, total)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    return total
