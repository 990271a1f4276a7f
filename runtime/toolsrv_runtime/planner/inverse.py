"""Functions that undo each other: number to roman and roman to number, encode and decode. Pure."""

from __future__ import annotations

import re

from toolsrv_registry.functions import Function
from toolsrv_runtime.planner.matched import Matched
from toolsrv_runtime.planner.scene import Scene, news
from toolsrv_runtime.values import kinds as patterns
from toolsrv_runtime.values.facts import words

_UNDO = re.compile(r"\b(?:de|en)(?=(?:cod|crypt|cipher)(?:e|er|ing|ed)?\b)")
_BACK = re.compile(r"\b(?:back|undo|revert|round[ -]trip|other way)\b", re.IGNORECASE)


def wants_back(task: str) -> bool:
    """Whether a task asks for what an answer was made of: "encode it and decode it back"."""
    return _BACK.search(task) is not None


def is_inverse(one: Function, other: Function) -> bool:
    """Whether one tool's two functions undo each other, by their names: O(words)."""
    if one.api.tool != other.api.tool or one.api.id == other.api.id:
        return False
    mine, theirs = words(one.api.name), words(other.api.name)
    turned = " to " in mine and sorted(mine.split()) == sorted(theirs.split())
    return turned or _UNDO.sub("", mine) == _UNDO.sub("", theirs) != mine


def put_back(function: Function, scene: Scene) -> set[str]:
    """Return what an inverse of ``function`` answered.

    Put back, it only tells what that one was called with.
    """
    undone = {offer.function.name for offer in scene.offers if is_inverse(function, offer.function)}
    steps = [step for step in scene.path if step.ok and step.move.function in undone]
    return {value for step in steps for _, value in news(step)}


def is_shaped_for(function: Function, other: Function, matched: Matched) -> bool:
    """Whether the likeliest text for ``function`` has just the form that its inverse reads.

    Dots and dashes go to what reads Morse code, not to what writes it.
    """
    if not is_inverse(function, other):
        return False
    kinds = {
        patterns.value_kind(one, other.api) for one in other.api.required
    } & patterns.RARE_KINDS
    for parameter in function.api.required if kinds else ():
        if patterns.value_kind(parameter, function.api) == "text":
            said = matched.values(function.api, parameter)[:1]
            return any(
                patterns.find_values(kind, value) == [value] for value in said for kind in kinds
            )
    return False
