"""A prompt cut as the reference cuts it: from the left. Measures with the engine."""

from __future__ import annotations

from toolsrv_runtime.engine.base import Engine, Piece, Prompt


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
