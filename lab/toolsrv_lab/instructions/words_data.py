"""The word lists of the generator, read once from ``data/``. Knows nothing about APIs."""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from importlib.resources import files


@cache
def synonyms() -> dict[str, tuple[str, ...]]:
    """Return word or phrase -> what may stand for it."""
    found: dict[str, list[str]] = defaultdict(list)
    for line in _lines("synonyms.txt"):
        group = [part.strip() for part in line.split(",")]
        for word in group:
            found[word] += [other for other in group if other != word]
    return {word: tuple(dict.fromkeys(others)) for word, others in found.items()}


@cache
def openings() -> dict[str, tuple[str, ...]]:
    """Return category (``any`` for all) -> openings with ``{slot}`` places."""
    return _sections("stories.txt")


@cache
def slots() -> dict[str, tuple[str, ...]]:
    """Return slot name -> what may fill it."""
    return _sections("slots.txt")


def _sections(name: str) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = defaultdict(list)
    heads: list[str] = []
    for line in _lines(name):
        if line.startswith("["):
            heads = [head.strip() for head in line.strip("[]").split(",")]
            continue
        for head in heads:
            found[head].append(line)
    return {head: tuple(lines) for head, lines in found.items()}


def _lines(name: str) -> list[str]:
    text = (files("toolsrv_lab.instructions") / "data" / name).read_text("utf-8")
    return [line.strip() for line in text.splitlines() if line.strip() and line[0] != "#"]
