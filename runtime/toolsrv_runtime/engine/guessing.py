"""Which token comes next if a text repeats itself. Knows no model and no grammar.

Values are copied from the task and from responses, so two tokens in a row are often followed by
what followed them before (prompt-lookup drafting, with drafts of one token).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

CREDIT = 4
"""Guesses that may be wrong in one reply before the first is right."""


class Guessing:
    """Guesses the token behind a prompt and what was written so far; used for one reply.

    A wrong guess costs one, a right one brings one: with none left there are no more guesses.
    """

    def __init__(self, prompt: Sequence[int]) -> None:
        self._pair: tuple[int, ...] = tuple(prompt[-2:])
        self._behind: dict[tuple[int, ...], int] = dict(
            zip(pairwise(prompt), prompt[2:], strict=False)
        )
        self._read = 0
        self._guess: int | None = None
        self._credit = CREDIT

    def next(self, written: Sequence[int], allowed: Callable[[int], bool]) -> int | None:
        """Return what followed the last two tokens when they came before; None to guess nothing.

        ``written`` begins as it did in the last call. What is not ``allowed`` is not guessed.
        """
        fresh = written[self._read :]
        self._read = len(written)
        if self._guess is not None:
            self._credit += 1 if list(fresh[:1]) == [self._guess] else -1
        for token in fresh:
            self._behind[self._pair] = token
            self._pair = (*self._pair, token)[-2:]
        guess = self._behind.get(self._pair) if self._credit > 0 else None
        self._guess = guess if guess is not None and allowed(guess) else None
        return self._guess
