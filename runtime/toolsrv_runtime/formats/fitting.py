"""A conversation made to fit a model's context. Measures with the engine; writes no turns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from toolsrv_runtime.engine.base import Engine, Piece, Prompt
from toolsrv_runtime.formats.base import Step

KEPT = 120
"""Characters that stay of an observation for which there is no room."""


def shorten_oldest(
    engine: Engine, whole: Callable[[tuple[Step, ...]], Prompt], path: tuple[Step, ...], limit: int
) -> Prompt:
    """Return the prompt of a path in at most ``limit`` tokens, the oldest observations shortened.

    Task, functions and replies stay; where they alone are longer, so is the prompt.
    """
    prompt, at = whole(path), 0
    while at < len(path) and engine.count(prompt) > limit:
        step = path[at]
        if len(step.observation) > KEPT:
            short = replace(step, observation=f"{step.observation[:KEPT]}...")
            path = (*path[:at], short, *path[at + 1 :])
            prompt = whole(path)
        at += 1
    return prompt


def cut_from_left(engine: Engine, prompt: Prompt, limit: int) -> Prompt:
    """Return the end of a prompt, as much as has at most ``limit`` tokens.

    The cut falls between characters; the reference's falls between tokens. Asks the engine
    O(log characters) times.
    """
    if engine.count(prompt) <= limit:
        return prompt
    text = "".join(piece.text for piece in prompt)
    low, high = 0, len(text)
    while low < high:
        middle = (low + high) // 2
        if engine.count((Piece(text[middle:]),)) <= limit:
            high = middle
        else:
            low = middle + 1
    return (Piece(text[low:]),)
