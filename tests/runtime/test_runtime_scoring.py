"""Scores of alternatives: looked at together, as likely as one after the other."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsrv_runtime.contract.models import Piece, Prompt
from toolsrv_runtime.engine.generation import branches, tree_nodes
from toolsrv_runtime.engine.llama import LlamaEngine
from toolsrv_runtime.engine.sampling import log_softmax
from toolsrv_runtime.engine.scheduler import BRANCH_SEQUENCES
from toolsrv_runtime.gguf_models import SHIPPED_MODEL
from toolsrv_runtime.profiles import KvType

HEAD = Piece("System:\n#1 capital_for_facts(country): Capital\n" * 8, special=True)
WORDS = [
    "capital",
    "of",
    "Peru",
    "Oslo",
    "weather",
    "tomorrow",
    "20",
    "km",
    "miles",
    "to",
    "and",
    "what",
    "is",
    "the",
    "Zürich",
    "a",
]


@pytest.fixture
def engine() -> Iterator[LlamaEngine]:
    engine = LlamaEngine(SHIPPED_MODEL, context=1024, threads=1)
    yield engine
    engine.close()


def one_by_one(engine: LlamaEngine, prompt: Prompt, options: Sequence[str]) -> list[float]:
    """Return the scores, every token of every option evaluated by itself."""
    tokens, values = engine.vocabulary.prompt(prompt), []
    for option in options:
        total, before = 0.0, list(tokens)
        for token in engine.vocabulary.text(option, special=True):
            with engine.scheduler.seat(before, reserve=1, stop=None) as seat:
                assert seat is not None
                work = engine.scheduler.evaluate(seat, before[seat.keep :], None)
            assert work.row is not None
            total += float(log_softmax(work.row)[token])
            before.append(token)
        values.append(total)
    return values


def phrases(chance: random.Random, count: int) -> list[str]:
    return [" ".join(chance.choices(WORDS, k=chance.randint(1, 6))) + '"' for _ in range(count)]


def test_options_are_as_likely_together_as_one_by_one(tiny_llama: Path) -> None:
    engine = LlamaEngine(tiny_llama, context=512, threads=1)
    chance = random.Random(7)
    for _ in range(20):
        prompt = (HEAD, Piece(" ".join(chance.choices(WORDS, k=12))))
        options = phrases(chance, chance.randint(1, 24))
        together = engine.score(prompt, options).values
        apart = one_by_one(engine, prompt, options)
        assert together == pytest.approx(apart, abs=1e-3)
        assert together.index(max(together)) == apart.index(max(apart))
    engine.close()


@pytest.mark.parametrize(
    ("kv_type", "flash_attention", "largest"), [("f32", False, 0.5), ("f16", None, 1.0)]
)
def test_the_shipped_model_chooses_alike_together_and_one_by_one(
    kv_type: KvType, flash_attention: bool | None, largest: float
) -> None:
    """Its 8-bit activations round a last bit up to something: in any batch of another size."""
    engine = LlamaEngine(
        SHIPPED_MODEL, context=1024, threads=1, kv_type=kv_type, flash_attention=flash_attention
    )
    chance, off = random.Random(7), []
    for _ in range(6):
        prompt = (HEAD, Piece(" ".join(chance.choices(WORDS, k=12))))
        options = phrases(chance, chance.randint(2, 12))
        engine.score(prompt, options)  # what follows begins with the same cells
        together = engine.score(prompt, options).values
        apart = one_by_one(engine, prompt, options)
        off.append(max(abs(one - other) for one, other in zip(together, apart, strict=True)))
        assert together.index(max(together)) == apart.index(max(apart))
    assert max(off) < largest
    engine.close()


def test_twenty_four_values_cost_two_decodes_and_each_token_once(engine: LlamaEngine) -> None:
    options = list(dict.fromkeys(phrases(random.Random(1), 24)))
    spelled = [engine.vocabulary.text(option, special=True) for option in options]
    distinct = {one[:end] for one in spelled for end in range(1, len(one))}
    engine.count((HEAD,))
    counts = engine.scheduler.counts
    engine.score((HEAD,), options)
    before = counts.steps, counts.tokens
    found = engine.score((HEAD,), options)
    assert counts.steps - before[0] == 2
    assert counts.tokens - before[1] == found.evaluated == len(distinct) + 1
    assert len(distinct) > 40


def test_functions_that_differ_in_their_last_token_cost_one_decode(engine: LlamaEngine) -> None:
    options = [f" use #{number}" for number in range(1, 10)]
    assert len(engine.vocabulary.text(options[0], special=True)) == 1
    engine.score((HEAD,), options)
    before = engine.counts.steps
    engine.score((HEAD,), options)
    assert engine.counts.steps - before == 1


def test_more_options_than_sequences_take_turns(engine: LlamaEngine) -> None:
    options = list(dict.fromkeys(phrases(random.Random(2), 2 * BRANCH_SEQUENCES + 9)))
    assert len(options) > 2 * BRANCH_SEQUENCES
    prompt = (HEAD, Piece("the capital"))
    together = engine.score(prompt, options).values
    apart = one_by_one(engine, prompt, options)
    assert together == pytest.approx(apart, abs=1.0)
    assert together.index(max(together)) == apart.index(max(apart))


def test_scores_from_several_threads_share_the_sequences(engine: LlamaEngine) -> None:
    options = phrases(random.Random(4), 24)
    prompts = [(HEAD, Piece(f"{word} and the capital")) for word in WORDS[:4]]
    alone = [engine.score(prompt, options).values for prompt in prompts]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda prompt: engine.score(prompt, options).values, prompts))
    for one, other in zip(alone, found, strict=True):
        assert one == pytest.approx(other, abs=1.0)


def test_a_score_leaves_the_prompt_resident_and_no_branch(engine: LlamaEngine) -> None:
    prompt = (HEAD, Piece("the capital"))
    first = engine.score(prompt, phrases(random.Random(5), 24))
    assert first.evaluated >= first.prompt_tokens
    reply = engine.generate(prompt, grammar='start: "Alpha" | "Beta"\n', max_tokens=20)
    assert reply.evaluated <= 1 + len(reply.tokens)


@given(st.lists(st.lists(st.integers(1, 3), min_size=1, max_size=5).map(tuple), min_size=1))
def test_every_head_of_an_option_is_one_node_held_by_its_paths(
    options: list[tuple[int, ...]],
) -> None:
    paths = branches(options)
    found = list(tree_nodes(paths, range(len(paths))))
    heads = [head for head, _ in found]
    assert set(heads) == {one[:end] for one in options for end in range(1, len(one))}
    assert len(heads) == len(set(heads))
    for head, sequences in found:
        assert sequences == [at for at, path in enumerate(paths) if path[: len(head)] == head]
        assert len(head) == 1 or head[:-1] in heads[: heads.index(head)]
