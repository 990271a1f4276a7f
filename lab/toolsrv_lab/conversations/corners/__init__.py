"""Generator of hard cases of tool calling: dates, numbers, lists, chains, failures, near misses.

Function families, values, phrases and chains are hand-written in ``data/corners_*``. Values stand
between marks while a task is composed, so that the words for an argument are read off the finished
text. Seeded. ``python -m toolsrv_lab.conversations.corners`` writes them.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random

from toolsrv_lab.conversations.corners.calls import (
    dates,
    listed,
    numbers,
    optional,
    several,
    texts,
    two,
    yes_no,
)
from toolsrv_lab.conversations.corners.chains import chains
from toolsrv_lab.conversations.corners.failures import failed
from toolsrv_lab.conversations.corners.limits import injected, long, nothing, partly, stopping
from toolsrv_lab.conversations.corners.talk import talk
from toolsrv_lab.conversations.corners.values import MID, OPEN, SHUT
from toolsrv_lab.conversations.episode import Episode, check, require, write

_SHARES: Sequence[tuple[Callable[[Random], Episode], int]] = (
    (dates, 1500),
    (numbers, 1150),
    (several, 800),
    (listed, 500),
    (two, 650),
    (chains, 1000),
    (optional, 550),
    (stopping, 450),
    (partly, 200),
    (failed, 600),
    (yes_no, 450),
    (long, 300),
    (texts, 300),
    (injected, 250),
    (nothing, 740),
)


def _check(episode: Episode) -> None:
    check(episode)
    marked = set(episode.task) & {OPEN, MID, SHUT, "}"}
    require(not marked, f"a mark is left: {episode.task!r}")
    marked = set(episode.answer) & {OPEN, MID, SHUT, "{", "}"}
    require(not marked, f"a mark is left: {episode.answer!r}")


def episodes(seed: int, count: int) -> Iterator[Episode]:
    """Yield the episodes, checked, no task twice."""
    rng = Random(seed)
    total = sum(share for _, share in _SHARES)
    plan = [make for make, share in _SHARES for _ in range(round(share * count / total))]
    while len(plan) < count:
        plan.append(dates)
    rng.shuffle(plan)
    seen: set[str] = set()
    for make in plan[:count]:
        while True:
            episode = make(Random(rng.random()))
            if episode.task.lower() not in seen:
                break
        _check(episode)
        seen.add(episode.task.lower())
        yield episode


def main() -> None:
    """Write the episodes, or the talk."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--count", type=int, default=9000)
    parser.add_argument("--seed", type=int, default=20261127)
    parser.add_argument("--talk", action="store_true", help="replies without a call")
    options = parser.parse_args()
    if options.talk:
        with options.file.open("w", encoding="utf-8") as out:
            for one in talk(options.seed, options.count):
                out.write(json.dumps(one, ensure_ascii=False) + "\n")
        return
    print(write(episodes(options.seed, options.count), options.file))


__all__ = ["episodes", "main", "talk"]
