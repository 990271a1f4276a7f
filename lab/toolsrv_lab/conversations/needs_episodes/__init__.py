"""Generator of episodes from hand-written needs over ToolBench's catalog and the offline one.

One to four needs become a task, the calls that serve them, responses and an answer. APIs of the
offline catalog are called for real; other responses are invented from the response schema or the
need's words. Tables are in ``data/needs_*``. Seeded. ``python -m
toolsrv_lab.conversations.needs_episodes`` writes them.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from toolsrv_lab.conversations.episode import Episode, EpisodeError, check, require, write
from toolsrv_lab.conversations.needs_episodes.catalog import (
    HELD_OUT_CATEGORIES,
    HELD_OUT_SHARE,
    Catalog,
)
from toolsrv_lab.conversations.needs_episodes.writer import Writer
from toolsrv_lab.nano.world import World

_REFUSED = 20
"""Episodes that may break a rule, besides one of a hundred."""


def _check(episode: Episode) -> None:
    check(episode)
    require(len(episode.functions) >= 3, "less than three functions")
    for step in episode.steps:
        require(bool(step.error) != bool(step.sentence), f"a sentence or an error: {step.name}")


def episodes(seed: int, count: int, toolenv: Path) -> Iterator[Episode]:
    """Yield ``count`` episodes. ``toolenv``: ToolBench's archive of tool files and schemas."""
    catalog = Catalog(toolenv)
    with World(catalog.offline) as world:
        yield from checked(Writer(catalog, world, seed), count)


def checked(writer: Writer, count: int) -> Iterator[Episode]:
    """Yield ``count`` episodes of a writer. Raise EpisodeError where too many break a rule."""
    done = 0
    while done < count:
        one = writer.write_one()
        if one is None:
            continue
        try:
            _check(one)
        except EpisodeError as error:
            writer.refused.append(str(error))
            if len(writer.refused) > _REFUSED + done // 100:
                raise
            continue
        done += 1
        yield one


def held_out(seed: int) -> dict[str, Any]:
    """Return the rule by which tools are kept for evaluation."""
    return {
        "rule": "sha256('Category/tool' of the API id, UTF-8) as an integer % 5 == 0, and every tool of the categories",
        "modulus": HELD_OUT_SHARE,
        "remainder": 0,
        "seed": seed,
        "categories": sorted(HELD_OUT_CATEGORIES),
    }


def main() -> None:
    """Write episodes to a file, and the rule of the held-out tools."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--toolenv", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=22_000)
    parser.add_argument("--held-out", type=Path)
    parser.add_argument("--share", default="0/1", help="which share of the needs, as 0/2 or 1/2")
    told = parser.parse_args()
    if told.held_out:
        told.held_out.write_text(json.dumps(held_out(told.seed), indent=1) + "\n", "utf-8")
    catalog = Catalog(told.toolenv)
    with World(catalog.offline) as world:
        part, _, parts = told.share.partition("/")
        writer = Writer(catalog, world, told.seed, (int(part), int(parts)))
        print(write(checked(writer, told.count), told.out), "episodes")
        usable = {(api.id, need) for api, need in catalog.needs}
        print(
            len(writer.used & usable),
            "of",
            len(usable),
            "needs used;",
            writer.dropped,
            "draws dropped;",
            len(writer.refused),
            "refused",
            writer.refused[:5],
        )


__all__ = ["episodes", "main"]
