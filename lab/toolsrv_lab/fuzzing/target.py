"""What is fuzzed: a target makes cases and says what must hold for each.

A case is a JSON value (bytes as Latin-1 text), so that one that fails can be kept as a file and
tried again without the generator that made it. Knows nothing about how often or in what order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis.strategies import SearchStrategy


@dataclass(frozen=True)
class Target:
    """One reader under test.

    ``check`` raises for a case that breaks a property: AssertionError, or whatever the reader let
    out that its contract does not name. ``known`` are cases that once failed; they come first.
    """

    name: str
    about: str
    cases: SearchStrategy[Any]
    check: Callable[[Any], None]
    known: tuple[Any, ...] = ()


class BrokenPropertyError(AssertionError):
    """A property does not hold; the message says which, with the values."""


def hold(truth: object, told: str, *values: object) -> None:
    """Raise unless a property holds. Unlike ``assert`` it stays under ``python -O``."""
    if not truth:
        raise BrokenPropertyError(f"{told}: {', '.join(repr(one)[:200] for one in values)}")
