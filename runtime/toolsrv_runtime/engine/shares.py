"""Who decodes how many tokens in the next step: fair to every call that waits.

Pure: it is given what waits and divides one batch. Calls that want few tokens (the next one of a
reply) never wait for a prompt: they are served whole in every step, and prompts share what one
chunk leaves. So a long prompt adds at most a chunk to the time of anybody's next token, as in
vLLM's chunked prefill.
"""

from __future__ import annotations

from collections.abc import Sequence

SHORT = 16
"""Up to so many tokens count as the next step of a reply (one sampled, the others forced)."""

CHUNK = 64
"""Prompt tokens per step while somebody waits for the next token."""


def shares(wanted: Sequence[int], capacity: int, *, others: bool) -> list[int]:
    """Return how many tokens each call decodes now; ``wanted`` in the order they came, each > 0.

    ``others``: calls that are choosing a token meanwhile and will soon wait too. A call that is
    alone gets whole batches, so its arithmetic is always the same.
    """
    given = [count if count <= SHORT else 0 for count in wanted]
    for index in range(len(given)):
        given[index] = min(given[index], capacity - sum(given[:index]))
    long = [index for index, count in enumerate(wanted) if count > SHORT]
    left = capacity - sum(given)
    if others or len(long) < len(wanted):
        left = min(left, CHUNK)
    for place, index in enumerate(long):
        given[index] = min(wanted[index], left // (len(long) - place))
        left -= given[index]
    return given
