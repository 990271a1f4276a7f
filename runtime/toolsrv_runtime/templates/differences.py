"""Where two renderings agree and differ, never inside a marker such as ``<tool_call>``. Pure."""

from __future__ import annotations

import re

_CUT_BEGIN = re.compile(r"[<\[][^<>\[\]\s]*$")
_CUT_END = re.compile(r"^[^<>\[\]\s]*[>\]]")


def same_begin(first: str, second: str) -> str:
    """Return the characters that both begin with."""
    most = min(len(first), len(second))
    differs = (at for at in range(most) if first[at] != second[at])
    return first[: next(differs, most)]


def common_prefix(first: str, second: str) -> str:
    """Return what both begin with, without a marker that the difference cuts."""
    shared = same_begin(first, second)
    whole = shared in {first, second} and shared.endswith((">", "]", "\n", "}"))
    if first == second or whole:
        return shared
    cut = _CUT_BEGIN.search(shared)
    return shared[: cut.start()] if cut else shared


def common_suffix(first: str, second: str) -> str:
    """Return what both end with, without a marker that the difference cuts."""
    shared = same_begin(first[::-1], second[::-1])[::-1]
    if shared in {first, second}:
        return shared
    cut = _CUT_END.search(shared)
    return shared[cut.end() :] if cut else shared


def split_repeated(before: str, between: str, after: str) -> tuple[str, str, str, str, str]:
    """Split the texts around repeated items into begin, open, close, separator and end.

    ``before`` the first item stands begin + open, ``between`` two close + separator + open, and
    ``after`` the last close + end.
    """
    opened = common_suffix(before, between)
    closed = common_prefix(after, between)
    if len(opened) + len(closed) > len(between):
        closed = closed[: max(0, len(between) - len(opened))]
    separator = between[len(closed) : len(between) - len(opened)]
    begin = before[: len(before) - len(opened)]
    return begin, opened, closed, separator, after[len(closed) :]
