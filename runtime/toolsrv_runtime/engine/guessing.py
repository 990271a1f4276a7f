"""Which tokens come next if a text repeats itself. Knows no model and no grammar.

Values are copied from the task and from responses, so a few tokens in a row are often followed by
what followed them before (prompt-lookup drafting).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

CREDIT = 4
"""Guesses that may be wrong in one reply before the first is right."""

LONGEST = 8
"""Tokens of a guess at most: each is evaluated, and costs something where it is wrong."""

_CONTEXT = 2
"""Tokens that have to be the same as before."""


class Guessing:
    """Guesses the tokens behind a prompt and what was written so far; used for one reply.

    A guess is one token. After two that were right it may have two, and twice as many after each that
    was right as a whole, until one was not. A wrong guess costs one, a right one brings one: with none
    left there are no more.
    """

    def __init__(self, prompt: Sequence[int]) -> None:
        self._tokens = list(prompt)
        self._after: dict[tuple[int, ...], int] = {}
        self._learn(_CONTEXT)
        self._prompt = len(prompt)
        self._guess: Sequence[int] = ()
        self._whole = 0
        self._credit = CREDIT

    def next(self, written: Sequence[int], allowed: Callable[[list[int]], int]) -> list[int]:
        """Return what followed the last tokens when they came before; nothing to guess nothing.

        ``written`` begins as it did in the last call. ``allowed`` says how many of some tokens, from
        the first on, may come: no others are guessed.
        """
        known = len(self._tokens)
        fresh = written[known - self._prompt :]
        self._judge(fresh)
        self._tokens += fresh
        self._learn(known)
        at = self._after.get(tuple(self._tokens[-_CONTEXT:])) if self._credit > 0 else None
        length = min(1 << max(self._whole - 1, 0), LONGEST)
        copied = [] if at is None else self._tokens[at : at + length]
        self._guess = copied[: allowed(copied)] if copied else ()
        return list(self._guess)

    def _judge(self, fresh: Sequence[int]) -> None:
        """See how much of the last guess was right."""
        if not self._guess:
            return
        right = fresh[:1] == self._guess[:1]
        self._credit += 1 if right else -1
        whole = list(fresh[: len(self._guess)]) == list(self._guess)
        self._whole = self._whole + 1 if whole else 0

    def _learn(self, begin: int) -> None:
        """Note where each token from ``begin`` on stands, by those before it."""
        tokens = self._tokens
        for at in range(max(begin, _CONTEXT), len(tokens)):
            self._after[tuple(tokens[at - _CONTEXT : at])] = at
