"""Guesses of the next token: what a text repeats, and no trace of a wrong one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsrv_runtime.contract.models import Piece, Sampling
from toolsrv_runtime.engine import sampling as guessing
from toolsrv_runtime.engine.llama import LlamaEngine
from toolsrv_runtime.engine.sampling import MOST_DRAFT_TOKENS, MOST_MISSES, PromptLookup
from toolsrv_runtime.gguf_models import SHIPPED_MODEL

TOKENS = st.lists(st.integers(0, 2), max_size=30)


def followed(tokens: list[int]) -> list[int]:
    """What came behind the last two tokens when they came before."""
    for at in range(len(tokens) - 3, -1, -1):
        if tokens[at : at + 2] == tokens[-2:]:
            return tokens[at + 2 :]
    return []


@given(TOKENS, TOKENS, st.integers(0, 30))
def test_the_guess_is_what_followed_the_same_two_tokens(
    prompt: list[int], written: list[int], cut: int
) -> None:
    one = PromptLookup(prompt)
    if (first := written[:cut]) != written:
        one.next(first, lambda _: 0)
    expected = followed(prompt + written) if len(prompt) + len(written) >= 2 else []
    assert one.next(written, len) == expected[:1]


def test_wrong_guesses_end_the_guessing_and_right_ones_prolong_it() -> None:
    for right, guesses in ((False, MOST_MISSES), (True, 40)):
        one, written, made = PromptLookup([1, 1, 2, 2, 1, 1]), list[int](), 0
        for _ in range(40):
            guess = one.next(written, len)
            made += bool(guess)
            written += guess if right and guess else [3 - (guess[0] if guess else 1)]
        assert made == guesses


def test_guesses_grow_while_all_of_them_is_right_and_begin_anew_where_it_is_not() -> None:
    text = list(range(50))
    one, written, lengths = PromptLookup([*text, 0, 1]), list[int](), list[int]()
    while len(written) < 32:
        guess = one.next(written, len)
        lengths.append(len(guess))
        written += guess
    assert lengths == [1, 1, 2, 4, MOST_DRAFT_TOKENS, MOST_DRAFT_TOKENS, MOST_DRAFT_TOKENS]
    one.next([*written, 0, 0, 1], len)
    assert one.next([*written, 0, 0, 1, 2, 3], len) == [4]


def test_what_the_grammar_does_not_allow_is_not_guessed() -> None:
    assert PromptLookup([1, 2, 3, 1, 2]).next([], lambda _: 0) == []
    assert PromptLookup([1, 2, 3, 1, 2]).next([], len) == [3]
    one = PromptLookup([*range(20), 0, 1])
    one.next([], len)
    one.next([2], len)
    assert one.next([2, 3], lambda tokens: tokens.index(5)) == [4]


@pytest.fixture
def engines() -> Iterator[list[LlamaEngine]]:
    opened: list[LlamaEngine] = []
    yield opened
    for engine in opened:
        engine.close()


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(0.5, 0.9, 5)])
def test_guesses_spare_decodes_and_change_no_text(
    engines: list[LlamaEngine], monkeypatch: pytest.MonkeyPatch, sampling: Sampling
) -> None:
    prompt = (Piece("User: the capital of Peru and the capital of Chile\nAssistant:\n"),)
    found = []
    for credit in (0, MOST_MISSES):
        monkeypatch.setattr(guessing, "MOST_MISSES", credit)
        engine = LlamaEngine(SHIPPED_MODEL, context=512, threads=1)
        engines.append(engine)
        texts = [
            engine.generate(
                prompt, grammar="start: /[a-z ]{300,400}/\n", max_tokens=count, sampling=sampling
            ).text
            for count in (60, 20)
        ]
        found.append((texts, engine.counts))
    (plain, without), (guessed, with_guesses) = found
    assert guessed == plain
    assert with_guesses.steps < without.steps
    assert with_guesses.tokens - with_guesses.missed <= without.tokens
