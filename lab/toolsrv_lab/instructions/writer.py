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
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from toolsrv_lab.instructions.compose import compose
from toolsrv_lab.instructions.samples import Deck, Kind, Sample, groups, needed
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
    drawn = ((members, None) for members in groups(apis, rounds, rng))
    return _write(drawn, rounds * len(apis), path, name, rng, progress)


def write_sampled(
    apis: Sequence[Api],
    path: Path,
    *,
    kinds: Sequence[Kind],
    rounds: int,
    seed: int,
    name: str = "instructions",
    progress: Progress | None = None,
) -> int:
    """Write ``rounds`` tasks per tool and kind of sample, with what was sampled as candidates.

    As the paper samples (``samples``). The file appears when it is complete; returns the number of
    tasks. Raises UsageError where nothing can be sampled.
    """
    if not apis:
        raise UsageError("there is no API to write instructions for", hint="toolsrv catalog list")
    rng = random.Random(seed)
    deck = Deck(apis, kinds)
    drawn = ((needed(sample, rng), sample) for sample in deck.samples(rounds, seed))
    return _write(drawn, rounds * len(deck), path, name, rng, progress)


def entry(
    query_id: str,
    text: str,
    name: str,
    members: Sequence[Api],
    *,
    needs: Sequence[str] = (),
    sample: Sample | None = None,
) -> dict[str, Any]:
    """Return a line of an instruction file; see ``retrieval.queries`` for its fields."""
    line: dict[str, Any] = {"query_id": query_id, "query": text, "set": name}
    if needs:
        line["needs"] = needs
    line["relevant"] = [_named(api) for api in members]
    if sample is not None:
        line["candidates"] = [_named(api) for api in sample.apis]
        line["kind"] = sample.kind
    return line


def _named(api: Api) -> dict[str, str]:
    return {"category": api.category, "tool": api.tool, "api": api.name, "id": api.id}


def _write(
    drawn: Iterable[tuple[Sequence[Api], Sample | None]],
    total: int,
    path: Path,
    name: str,
    rng: random.Random,
    progress: Progress | None,
) -> int:
    fresh = path.with_name(f".{path.name}.new")
    with fresh.open("w", encoding="utf-8") as file:
        for at, (members, sample) in enumerate(drawn, start=1):
            text, needs = compose(members, rng)
            line = entry(f"{name}/{at}", text, name, members, needs=needs, sample=sample)
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
            if progress is not None and at % 500 == 0:
                progress(at, total)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    return total
