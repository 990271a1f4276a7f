"""Seeded samples of tasks: the same for the same seed, and a larger one holds a smaller one."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def draw(items: Sequence[T], limit: int | None, *, seed: int, key: Callable[[T], str]) -> list[T]:
    """Return at most ``limit`` of the items, drawn by a hash of ``key``, in their own order."""
    if limit is None or limit >= len(items):
        return list(items)
    ranked = sorted(range(len(items)), key=lambda at: _rank(seed, key(items[at])))
    return [items[at] for at in sorted(ranked[:limit])]


def draw_by_stratum(
    items: Sequence[T],
    limit: int | None,
    *,
    seed: int,
    key: Callable[[T], str],
    stratum: Callable[[T], str],
) -> list[T]:
    """Return at most ``limit`` of the items, each stratum in proportion (largest remainders)."""
    if limit is None or limit >= len(items):
        return list(items)
    groups: dict[str, list[T]] = {}
    for one in items:
        groups.setdefault(stratum(one), []).append(one)
    exact = {name: limit * len(group) / len(items) for name, group in groups.items()}
    sizes = {name: int(size) for name, size in exact.items()}
    for name in sorted(exact, key=lambda name: (sizes[name] - exact[name], name)):
        if sum(sizes.values()) < limit:
            sizes[name] += 1
    chosen = {
        key(one)
        for name, group in groups.items()
        for one in draw(group, sizes[name], seed=seed, key=key)
    }
    return [one for one in items if key(one) in chosen]


def _rank(seed: int, key: str) -> str:
    return hashlib.sha256(f"{seed}/{key}".encode()).hexdigest()
