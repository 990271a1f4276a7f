"""Where a reply that must not be given again can be left for another one.

A search excludes replies that are complete texts: the calls that a path has made. To mask only the
last token of one brings a near-duplicate ("Tokyo " with a blank), so the reply is written first. Is
it excluded, writing goes back to the likeliest other token at a place where the reply has a real
choice: the first token of a value, a digit of a number, a name or another of few alternatives that
the grammar lists. Places and alternatives that are left stay known, so the next one is taken where
that ends in an excluded reply too. Knows neither grammar nor model.
"""

from __future__ import annotations

import dataclasses
import heapq
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolsrv_runtime.engine.base import Reply
from toolsrv_runtime.engine.drawing import Logits, log_softmax
from toolsrv_runtime.errors import GrammarError

FEW = 64
"""So many allowed tokens at most are alternatives that a grammar lists, and no free text."""

_KEPT = 64
"""Alternatives that are remembered of one place."""

_TRIES = 4
"""Replies that are tried for each excluded text: other tokens may bring the same one."""

_VALUES = re.compile(
    rb'"(?P<text>(?:[^"\\]|\\.)*)"(?P<key>\s*:)?'
    rb"|(?<![\w.])(?P<bare>-?\d[\d.eE+-]*|true|false|null|True|False|None)(?!\w)"
)
"""Strings, and numbers and constants outside them, as JSON and calls of Python write them."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A drawn token, by its index ``at`` in the reply, and the ``others`` that were allowed.

    ``likely`` and those of ``others`` are natural-log probabilities among the ``allowed`` tokens;
    ``others`` are the likeliest ones, falling.
    """

    at: int
    likely: float
    others: tuple[tuple[int, float], ...]
    allowed: int


@dataclass(frozen=True, slots=True)
class Turn:
    """Tokens to begin a reply with, and their natural-log probability."""

    tokens: tuple[int, ...]
    likely: float


@dataclass(frozen=True, slots=True)
class Draft:
    """A reply, and the choices behind what it was to begin with."""

    reply: Reply
    choices: Sequence[Choice]


def first_permitted(
    write: Callable[[Turn], Draft], excluded: Sequence[str], spell: Callable[[list[int]], bytes]
) -> Reply:
    """Return the likeliest reply whose text is none of ``excluded``; ``evaluated`` counts all.

    Blanks around a text do not make it another.
    ``write`` writes one that begins with a turn's tokens; ``spell`` returns the bytes of tokens.

    Raises:
        GrammarError: all that was found is excluded.
    """
    turn, turns, evaluated = Turn((), 0.0), Turns(spell), 0
    refused = {one.strip() for one in excluded}
    for _ in range(_TRIES + _TRIES * len(excluded)):
        draft = write(turn)
        reply = dataclasses.replace(draft.reply, evaluated=draft.reply.evaluated + evaluated)
        if reply.finish != "grammar" or reply.text.strip() not in refused:
            return reply
        evaluated = reply.evaluated
        turns.add(turn, reply.tokens, draft.choices)
        found = turns.next()
        if found is None:
            break
        turn = found
    raise GrammarError(
        f"no other text than those that are excluded ({len(excluded)}) fulfils the grammar",
        hint="offer one more function, or allow a reply without a call",
    )


def choice(row: Logits, allowed: NDArray[np.bool_], token: int, at: int) -> Choice:
    """Return the choice that drawing ``token`` from a row of logits was."""
    places = np.flatnonzero(allowed)
    likely = log_softmax(row[places])
    top = np.argsort(-likely, kind="stable")[: _KEPT + 1]
    found = [(int(places[one]), float(likely[one])) for one in top]
    own = float(likely[np.searchsorted(places, token)])
    others = tuple((other, value) for other, value in found if other != token)
    return Choice(at, own, others, len(places))


class Turns:
    """The ways to leave excluded replies, likeliest first; used for one reply."""

    def __init__(self, spell: Callable[[list[int]], bytes]) -> None:
        """``spell`` returns the bytes of tokens."""
        self._spell = spell
        self._real: list[tuple[float, int, Turn]] = []
        self._other: list[tuple[float, int, Turn]] = []
        self._count = 0

    def add(self, begun: Turn, written: Sequence[int], choices: Sequence[Choice]) -> None:
        """Note the ways to leave an excluded reply; ``choices`` were made behind ``begun``."""
        text = self._spell(list(written))
        places = Places(text)
        likely = begun.likely
        drawn = {one.at for one in choices}
        for one in choices:
            if one.at > len(written):  # a stop text was cut off
                break
            begin = len(self._spell(list(written[: one.at])))
            end = len(self._spell(list(written[: one.at + 1])))
            free = places.free(begin, end, forced=one.at - 1 not in drawn, few=one.allowed <= FEW)
            for token, value in one.others:
                piece = self._spell([token])
                if text[begin:].startswith(piece) and piece:
                    continue  # the same text in other tokens
                turn = Turn((*written[: one.at], token), likely + value)
                real = free is not None and free(piece)
                self._count += 1
                heapq.heappush(
                    self._real if real else self._other, (-turn.likely, self._count, turn)
                )
            likely += one.likely

    def next(self) -> Turn | None:
        """Return the likeliest way that was not taken yet; None where there is none."""
        ways = self._real or self._other
        return heapq.heappop(ways)[2] if ways else None


class Places:
    """The places of an excluded text where another one really differs from it."""

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._values = list(_values(text))
        opened = text.find(b"{")
        firsts = [begin for begin, _, _ in self._values] + ([opened] if opened >= 0 else [])
        self._body = min(firsts, default=len(text))

    def free(
        self, begin: int, end: int, *, forced: bool, few: bool
    ) -> Callable[[bytes], bool] | None:
        """Return what tells whether another token than that of bytes ``begin`` to ``end`` differs.

        None where none does. ``forced``: the token before left no choice; ``few``: the grammar
        allows only few tokens here.
        """
        for first, last, bare in self._values:
            if (begin < last and first < end) or begin <= first < end:
                inside = self._text[begin:last]
                if few and not bare:
                    return lambda _: True
                number = inside[:1].isdigit() or (bare and inside[:1] == b"-")
                if bare:
                    return _is_number if number else lambda _: True
                if begin > first:
                    return (lambda piece: piece[:1].isdigit()) if number else None
                return _differs(inside)
        if begin < self._body and (few or forced or begin == 0):
            rest = self._text[begin:]
            return (lambda _: True) if few else _differs(rest)
        return None


def _values(text: bytes) -> Iterator[tuple[int, int, bool]]:
    """Yield where values begin and end, strings without their quotes; and whether without any."""
    for found in _VALUES.finditer(text):
        if found["bare"] is not None:
            yield (*found.span("bare"), True)
        elif found["key"] is None:
            yield (*found.span("text"), False)


def _is_number(piece: bytes) -> bool:
    return piece[:1].isdigit() or piece[:1] == b"-"


def _differs(text: bytes) -> Callable[[bytes], bool]:
    """Return what tells whether a token begins another text: blanks, case and signs do not count."""
    own = _plain(text)

    def differs(piece: bytes) -> bool:
        other = _plain(piece)
        if not other:  # a part of a character is none yet
            return not piece.isascii() and not piece.decode("utf-8", errors="ignore").strip()
        return not own.startswith(other) and not (own and other.startswith(own))

    return differs


def _plain(text: bytes) -> str:
    said = text.decode("utf-8", errors="ignore").casefold()
    return "".join(sign for sign in said if sign.isalnum())
