"""Token sampling: grammar mask and temperature, prompt-lookup drafts, and excluded replies.

Prompt lookup proposes the tokens that followed the last ones before, as values are copied from the
task and from responses. Exclusion: a search excludes complete replies, the calls that a path has
made. Masking only the last token would give a near-duplicate, so the reply is written first; if it
is excluded, writing restarts with the likeliest other token at a place where the reply has a real
choice. Remaining places stay known for the next attempt. Knows no model and no grammar.
"""

from __future__ import annotations

import dataclasses
import heapq
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolsrv_runtime.contract.models import Completion, Sampling
from toolsrv_runtime.errors import GrammarError

Logits = NDArray[np.float32]
"""One row, (vocabulary,)."""


def sample_token(
    logits: Logits, allowed: NDArray[np.bool_], sampling: Sampling, rng: np.random.Generator
) -> int:
    """Return an allowed token: the likeliest, or one drawn at the sampling's temperature."""
    masked = np.where(allowed, logits, -np.inf)
    if sampling.temperature <= 0:
        return int(masked.argmax())
    scaled = (masked - masked.max()) / sampling.temperature
    weights = np.exp(scaled.astype(np.float64))
    weights /= weights.sum()
    if sampling.top_p < 1:
        order = np.argsort(-weights, kind="stable")
        keep = int(np.searchsorted(np.cumsum(weights[order]), sampling.top_p)) + 1
        weights[order[keep:]] = 0
        weights /= weights.sum()
    return int(rng.choice(len(weights), p=weights))


def log_softmax(logits: Logits) -> NDArray[np.float64]:
    """Return natural-log probabilities, (vocabulary,)."""
    row = logits.astype(np.float64)
    top = float(row.max())
    result: NDArray[np.float64] = row - top - math.log(float(np.exp(row - top).sum()))
    return result


MOST_MISSES = 4
"""Guesses that may be wrong in one reply before the first is right."""

MOST_DRAFT_TOKENS = 8
"""Tokens of a guess at most: each is evaluated, and costs something where it is wrong."""

_CONTEXT = 2
"""Tokens that have to be the same as before."""


class PromptLookup:
    """Guesses the tokens behind a prompt and what was written so far; used for one reply.

    A guess is one token. After two that were right it may have two, and twice as many after each
    that was right as a whole, until one was not. A wrong guess costs one, a right one brings one:
    with none left there are no more.
    """

    def __init__(self, prompt: Sequence[int]) -> None:
        self._tokens = list(prompt)
        self._after: dict[tuple[int, ...], int] = {}
        self._learn(_CONTEXT)
        self._prompt = len(prompt)
        self._guess: Sequence[int] = ()
        self._whole = 0
        self._credit = MOST_MISSES

    def next(self, written: Sequence[int], allowed: Callable[[list[int]], int]) -> list[int]:
        """Return what followed the last tokens when they came before; nothing to guess nothing.

        ``written`` begins as it did in the last call. ``allowed`` says how many of some tokens,
        from the first on, may come: no others are guessed.
        """
        known = len(self._tokens)
        fresh = written[known - self._prompt :]
        self._judge(fresh)
        self._tokens += fresh
        self._learn(known)
        at = self._after.get(tuple(self._tokens[-_CONTEXT:])) if self._credit > 0 else None
        length = min(1 << max(self._whole - 1, 0), MOST_DRAFT_TOKENS)
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


MOST_ALTERNATIVES = 64
"""So many allowed tokens at most are alternatives that a grammar lists, and no free text."""

_MOST_KEPT = 64
"""Alternatives that are remembered of one place."""

_TRIES = 4
"""Replies that are tried for each excluded text: other tokens may bring the same one."""

_VALUES = re.compile(
    rb'"(?P<text>(?:[^"\\]|\\.)*)"(?P<key>\s*:)?'
    rb"|(?<![\w.])(?P<bare>-?\d[\d.eE+-]*|true|false|null|True|False|None)(?!\w)"
)
"""Strings, and numbers and constants outside them, as JSON and calls of Python write them."""


@dataclass(frozen=True, slots=True)
class TokenChoice:
    """A drawn token, by its index ``at`` in the reply, and the ``others`` that were allowed.

    ``likely`` and those of ``others`` are natural-log probabilities among the ``allowed`` tokens;
    ``others`` are the likeliest ones, falling.
    """

    at: int
    likely: float
    others: tuple[tuple[int, float], ...]
    allowed: int


@dataclass(frozen=True, slots=True)
class ReplyPrefix:
    """Tokens to begin a reply with, and their natural-log probability."""

    tokens: tuple[int, ...]
    likely: float


@dataclass(frozen=True, slots=True)
class Draft:
    """A reply, and the choices behind what it was to begin with."""

    reply: Completion
    choices: Sequence[TokenChoice]


def generate_permitted(
    write: Callable[[ReplyPrefix], Draft],
    excluded: Sequence[str],
    spell: Callable[[list[int]], bytes],
) -> Completion:
    """Return the likeliest reply whose text is none of ``excluded``; ``evaluated`` counts all.

    Blanks around a text do not make it another.
    ``write`` writes one that begins with a turn's tokens; ``spell`` returns the bytes of tokens.

    Raises:
        GrammarError: all that was found is excluded.
    """
    turn, turns, evaluated = ReplyPrefix((), 0.0), AlternativePrefixes(spell), 0
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


def token_choice(row: Logits, allowed: NDArray[np.bool_], token: int, at: int) -> TokenChoice:
    """Return the choice that drawing ``token`` from a row of logits was."""
    places = np.flatnonzero(allowed)
    likely = log_softmax(row[places])
    top = np.argsort(-likely, kind="stable")[: _MOST_KEPT + 1]
    found = [(int(places[one]), float(likely[one])) for one in top]
    own = float(likely[np.searchsorted(places, token)])
    others = tuple((other, value) for other, value in found if other != token)
    return TokenChoice(at, own, others, len(places))


class AlternativePrefixes:
    """The ways to leave excluded replies, likeliest first; used for one reply."""

    def __init__(self, spell: Callable[[list[int]], bytes]) -> None:
        """``spell`` returns the bytes of tokens."""
        self._spell = spell
        self._real: list[tuple[float, int, ReplyPrefix]] = []
        self._other: list[tuple[float, int, ReplyPrefix]] = []
        self._count = 0

    def add(
        self, begun: ReplyPrefix, written: Sequence[int], choices: Sequence[TokenChoice]
    ) -> None:
        """Note the ways to leave an excluded reply; ``choices`` were made behind ``begun``."""
        text = self._spell(list(written))
        places = ValuePlaces(text)
        likely = begun.likely
        drawn = {one.at for one in choices}
        for one in choices:
            if one.at > len(written):  # a stop text was cut off
                break
            begin = len(self._spell(list(written[: one.at])))
            end = len(self._spell(list(written[: one.at + 1])))
            free = places.free(
                begin, end, forced=one.at - 1 not in drawn, few=one.allowed <= MOST_ALTERNATIVES
            )
            for token, value in one.others:
                piece = self._spell([token])
                if text[begin:].startswith(piece) and piece:
                    continue  # the same text in other tokens
                turn = ReplyPrefix((*written[: one.at], token), likely + value)
                real = free is not None and free(piece)
                self._count += 1
                heapq.heappush(
                    self._real if real else self._other, (-turn.likely, self._count, turn)
                )
            likely += one.likely

    def next(self) -> ReplyPrefix | None:
        """Return the likeliest way that was not taken yet; None where there is none."""
        ways = self._real or self._other
        return heapq.heappop(ways)[2] if ways else None


class ValuePlaces:
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
