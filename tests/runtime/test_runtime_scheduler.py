"""Calls from several threads on one engine: shared decodes, fair shares, one evaluation of a head."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsrv_runtime.contract.models import Completion, Piece
from toolsrv_runtime.engine.llama import LlamaEngine
from toolsrv_runtime.engine.scheduler import PREFILL_CHUNK, SHORT_REQUEST, divide_batch
from toolsrv_runtime.gguf_models import SHIPPED_MODEL
from toolsrv_runtime.stop import Stop

T = TypeVar("T")

HEAD = Piece("System:\n#1 capital_for_facts(country): Capital\n" * 8, special=True)
FREE = "start: /[a-z ]{300,400}/\n"


@pytest.fixture
def engine() -> Iterator[LlamaEngine]:
    engine = LlamaEngine(SHIPPED_MODEL, context=1024, threads=1, lanes=1)
    yield engine
    engine.close()


def at_once(jobs: Sequence[Callable[[], T]]) -> list[T]:
    """Run every job in a thread of its own, all starting together."""
    start = threading.Barrier(len(jobs))

    def work(job: Callable[[], T]) -> T:
        start.wait(60)
        return job()

    with ThreadPoolExecutor(len(jobs)) as pool:
        return list(pool.map(work, jobs))


def writer(engine: LlamaEngine, text: str, tokens: int = 30) -> Callable[[], Completion]:
    return lambda: engine.generate((HEAD, Piece(text)), grammar=FREE, max_tokens=tokens)


@given(st.lists(st.integers(1, 2000), min_size=1, max_size=16), st.integers(64, 512), st.booleans())
def test_a_batch_is_shared_fairly(wanted: list[int], capacity: int, others: bool) -> None:
    given_ = divide_batch(wanted, capacity, others=others)
    assert sum(given_) <= capacity
    assert all(0 <= got <= want for got, want in zip(given_, wanted, strict=True))
    assert sum(given_) > 0
    short = [want for want in wanted if want <= SHORT_REQUEST]
    prompts = [got for got, want in zip(given_, wanted, strict=True) if want > SHORT_REQUEST]
    if sum(short) + len(prompts) <= capacity:
        assert sum(given_) - sum(prompts) == sum(short)
        assert all(prompts)
    if others or (short and prompts):
        assert sum(prompts) <= PREFILL_CHUNK
    elif len(wanted) == 1:
        assert given_ == [min(wanted[0], capacity)]


def test_calls_at_once_write_what_each_writes_alone(engine: LlamaEngine) -> None:
    texts = ["the capital of Peru", "weather in Oslo", "a prime number", "who made this"]
    alone = [writer(engine, text)().text for text in texts]
    again = LlamaEngine(SHIPPED_MODEL, context=1024, threads=1, lanes=1)
    together = at_once([writer(again, text) for text in texts])
    assert [reply.text for reply in together] == alone
    assert again.scheduler.counts.shared_steps > 10
    again.close()


def test_a_call_alone_gives_the_same_bits_every_time() -> None:
    options = [" use #1", " use #2", " none of it"]
    found = []
    for _ in range(2):
        engine = LlamaEngine(SHIPPED_MODEL, context=1024, threads=1, lanes=1)
        writer(engine, "a branch")()
        found.append(engine.score((HEAD, Piece("the capital")), options).values)
        engine.close()
    assert found[0] == found[1]


def test_a_long_prompt_does_not_stall_the_tokens_of_others(engine: LlamaEngine) -> None:
    steps: list[list[int]] = []
    writing = threading.Event()

    def on_step(counts: object) -> None:
        assert isinstance(counts, list)
        steps.append(counts)
        if len(steps) == 10:
            writing.set()

    engine.scheduler.on_step = on_step
    long = (Piece("word after word " * 60),)

    def read() -> Completion:
        assert writing.wait(60)
        return engine.generate(long, grammar=FREE, max_tokens=2)

    reading, _ = at_once([read, writer(engine, "go on", tokens=90)])
    assert reading.evaluated > 5 * PREFILL_CHUNK
    # While both work no step is longer than a chunk and the other's token.
    assert max(sum(counts) for counts in steps[10:]) <= PREFILL_CHUNK + SHORT_REQUEST
    pieces = [counts for counts in steps[10:] if max(counts) > SHORT_REQUEST]
    assert sum(len(counts) > 1 for counts in pieces) >= len(pieces) // 2


def test_a_head_that_calls_have_in_common_is_evaluated_once(engine: LlamaEngine) -> None:
    head = engine.count((HEAD,))
    replies = at_once([writer(engine, text, tokens=2) for text in ("a b", "c d", "e f", "g h")])
    assert head > 100
    assert sum(reply.evaluated for reply in replies) < 1.5 * head


def test_calls_wait_for_cells_and_all_get_them() -> None:
    engine = LlamaEngine(SHIPPED_MODEL, context=512, threads=1, cells=512, lanes=1)
    texts = [f"{name} " * 100 for name in ("alpha", "beta", "gamma", "delta", "eta", "theta")]
    jobs = [partial(engine.generate, (Piece(text),), grammar=FREE, max_tokens=20) for text in texts]
    replies = at_once(jobs)
    assert [len(reply.tokens) for reply in replies] == [20] * 6
    engine.close()


def test_a_call_that_waits_for_cells_can_be_stopped() -> None:
    engine = LlamaEngine(SHIPPED_MODEL, context=512, threads=1, cells=512, lanes=1)
    stop, begun = Stop(), threading.Event()

    def on_step(counts: object) -> None:
        del counts
        begun.set()

    engine.scheduler.on_step = on_step

    def wait() -> Completion:
        assert begun.wait(60)
        stop.set()
        return engine.generate((Piece("b " * 200),), grammar=FREE, max_tokens=300, stop=stop)

    _, waited = at_once(
        [lambda: engine.generate((Piece("a " * 200),), grammar=FREE, max_tokens=60), wait]
    )
    assert waited.finish == "stopped"
    assert waited.evaluated == 0
    engine.close()
