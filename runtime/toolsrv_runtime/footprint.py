"""How much memory a model takes, from the sizes in its file's header.

Pure arithmetic: knows neither the machine nor llama.cpp.
"""

from __future__ import annotations


def resident_cells(context: int) -> int:
    """Return how many tokens of a tree are worth keeping beside a path of ``context`` tokens."""
    return context + min(3 * context, 16_384)
