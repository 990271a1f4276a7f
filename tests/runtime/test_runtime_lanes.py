"""Calls on a small model: each in a cache of its own, on a share of the cores."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from toolsrv_runtime.contract.models import Completion, Piece
from toolsrv_runtime.engine.hardware import SharedCores
from toolsrv_runtime.engine.llama import LlamaEngine
from toolsrv_runtime.engine.pools import (
    MIN_COPIED_TOKENS,
    REEVALUATION_COST,
    CachePool,
    CachePools,
    pool_count,
)
from toolsrv_runtime.engine.scheduler import Scheduler
from toolsrv_runtime.gguf_models import SHIPPED_MODEL
from toolsrv_runtime.stop import Stop

HEAD = Piece("System:\n#1 capital_for_facts(country): Capital\n" * 8, special=True)
FREE = "start: /[a-z ]{300,400}/\n"
TEXTS = ("the capital of Peru", "weather in Oslo", "a prime number", "who made this")


class Knowing(Scheduler):
    """A scheduler that knows the beginnings of some prompts and has nothing to free."""

    def __init__(self, length: int = 0) -> None:
        self._turn = threading.Condition()
        self._calls = 0
        self.length = length

    def known(self, _: object) -> int:
        return self.length

    def known_state(self, _: object) -> tuple[int, bytes]:
        return 0, b""

    def wait_known(self, tokens: Sequence[int], given_up: Callable[[], bool]) -> None:
        while self.length < len(tokens) and not given_up():
            time.sleep(0.001)

    def close(self) -> None:
        return


def reply(engine: LlamaEngine, text: str) -> Completion:
    return engine.generate((HEAD, Piece(text)), grammar=FREE, max_tokens=60)


def test_threads_all_go_to_who_is_alone_and_are_shared_by_several() -> None:
    cores = SharedCores(5)
    with cores.lend() as alone:
        assert alone == 5
    cores.users = 2
    with cores.lend() as first, cores.lend() as second, cores.lend() as third:
        assert (first, second, third) == (2, 2, 1)
    cores.users = 9
    with cores.lend() as one:
        assert one == 1


class Processor:
    """Clocks of decodes on ``cores`` that are ours."""

    def __init__(self) -> None:
        self.wall = self.cpu = 0.0

    def decode(self, cores: SharedCores, ours: float) -> int:
        with cores.lend() as threads:
            self.wall += 0.01
            self.cpu += 0.01 * min(threads, ours)
        return threads


def test_who_loses_a_core_to_another_process_gets_fewer_threads_for_a_while() -> None:
    time_of = Processor()
    cores = SharedCores(4, clock=lambda: time_of.wall, cpu=lambda: time_of.cpu)
    assert {time_of.decode(cores, 4) for _ in range(50)} == {4}
    lent = [time_of.decode(cores, 2.8) for _ in range(500)]
    assert set(lent[50:]) == {4, 2}
    tries = [at for at, threads in enumerate(lent) if threads == 4]
    pauses = [late - early for early, late in itertools.pairwise(tries) if late > early + 1]
    assert pauses == sorted(pauses)  # ever longer
    assert pauses[-1] > 6 * pauses[0]
    assert [time_of.decode(cores, 4) for _ in range(500)][-1] == 4  # the core came back


def test_one_finding_is_not_enough_nor_is_a_small_share_of_many_cores() -> None:
    time_of = Processor()
    cores = SharedCores(4, clock=lambda: time_of.wall, cpu=lambda: time_of.cpu)
    assert {time_of.decode(cores, 2) for _ in range(6)} == {4}  # a file is read meanwhile
    assert {time_of.decode(cores, 4) for _ in range(50)} == {4}
    many = SharedCores(16, clock=lambda: time_of.wall, cpu=lambda: time_of.cpu)
    assert {time_of.decode(many, 15) for _ in range(100)} == {16}
    unwatched = SharedCores(4, watched=False, clock=lambda: time_of.wall, cpu=lambda: time_of.cpu)
    assert {time_of.decode(unwatched, 1) for _ in range(100)} == {4}


def test_no_decode_gets_more_threads_than_it_may_have() -> None:
    cores = SharedCores(4, most=1)
    cores.users = 4
    with cores.lend() as first, cores.lend() as second, cores.lend() as third:
        assert (first, second, third) == (1, 1, 1)
    cores.users = 1
    with cores.lend() as alone:
        assert alone == 1


def test_a_thread_alone_or_shared_cores_say_nothing_about_other_processes() -> None:
    time_of = Processor()
    one = SharedCores(1, clock=lambda: time_of.wall, cpu=lambda: time_of.cpu)
    assert {time_of.decode(one, 0.2) for _ in range(50)} == {1}
    shared = SharedCores(4, clock=lambda: time_of.wall, cpu=lambda: time_of.cpu)
    shared.users = 2
    assert {time_of.decode(shared, 0.5) for _ in range(50)} == {2}
    shared.users = 1
    assert time_of.decode(shared, 4) == 4


def test_never_more_threads_are_lent_than_there_are_and_all_get_theirs() -> None:
    cores, busy, most = SharedCores(3), [0], [0]
    lock = threading.Lock()
    cores.users = 2

    def decode(_: int) -> None:
        with cores.lend() as threads:
            with lock:
                busy[0] += threads
                most[0] = max(most[0], busy[0])
            time.sleep(0.001)
            with lock:
                busy[0] -= threads

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(decode, range(200)))
    assert busy == [0]
    assert most[0] <= 3
    with cores.lend() as again:
        assert again == 1


def test_calls_at_once_write_what_each_writes_alone_each_in_its_own_cache() -> None:
    engine = LlamaEngine(SHIPPED_MODEL, context=1024, threads=2)
    alone = [reply(engine, text).text for text in TEXTS]
    evaluated = engine.counts.tokens
    engine.close()
    engine = LlamaEngine(SHIPPED_MODEL, context=1024, threads=2, lanes=len(TEXTS))
    start = threading.Barrier(len(TEXTS))

    def work(text: str) -> str:
        start.wait(60)
        return reply(engine, text).text

    with ThreadPoolExecutor(len(TEXTS)) as pool:
        assert list(pool.map(work, TEXTS)) == alone
    assert engine.counts.shared_steps == 0
    assert engine.counts.tokens <= evaluated + 8 * len(TEXTS)  # the head was read once
    assert engine.counts.steps > engine.scheduler.counts.steps  # others decoded too
    engine.close()


def test_calls_share_lanes_where_there_are_more_of_them_than_cores() -> None:
    assert [pool_count(threads) for threads in (1, 2, 3, 4, 16)] == [2, 2, 3, 4, 4]
    engine = LlamaEngine(SHIPPED_MODEL, context=1024, threads=2)
    with ThreadPoolExecutor(len(TEXTS)) as pool:
        list(pool.map(reply, [engine] * len(TEXTS), TEXTS))
    assert engine.counts.shared_steps > 0
    assert engine.counts.steps > engine.scheduler.counts.steps
    engine.close()


def test_a_call_need_not_wait_for_the_rest_of_a_prompt_that_begins_as_its_own() -> None:
    engine = LlamaEngine(SHIPPED_MODEL, context=4096, threads=1, batch=64)
    order: list[str] = []
    reading = threading.Event()
    engine.scheduler.on_step = lambda _: reading.set()

    def read(name: str, text: str) -> None:
        engine.generate((HEAD, Piece(text)), grammar="start: /[a-z]/", max_tokens=1)
        order.append(name)

    long = threading.Thread(target=read, args=("long", "the capital of Peru and so on " * 150))
    long.start()
    assert reading.wait(60)
    read("short", "weather in Oslo")
    long.join(60)
    assert order == ["short", "long"]
    engine.close()


def test_calls_one_after_the_other_need_one_lane() -> None:
    engine = LlamaEngine(SHIPPED_MODEL, context=1024, threads=1)
    first = reply(engine, TEXTS[0])
    second = reply(engine, TEXTS[1])
    assert second.evaluated < first.evaluated  # the head was there
    assert engine.counts == engine.scheduler.counts
    engine.close()


def test_a_model_with_flash_attention_or_one_lane_decodes_for_all_together() -> None:
    for given in ({"flash_attention": True}, {"lanes": 1}, {"most_lanes": 1}):
        engine = LlamaEngine(SHIPPED_MODEL, context=1024, threads=1, **given)
        with ThreadPoolExecutor(len(TEXTS)) as pool:
            list(pool.map(reply, [engine] * len(TEXTS), TEXTS))
        assert engine.counts.shared_steps > 10
        engine.close()


def test_a_call_goes_where_its_prompt_is_known_unless_others_are_there() -> None:
    known = [REEVALUATION_COST // 2, 3 * REEVALUATION_COST // 2, 0, 10]
    lanes = CachePools(
        lambda number: CachePool(Knowing(known[number]), None), SharedCores(2), count=4
    )
    with ExitStack() as calls:
        lent = [calls.enter_context(lanes.lend([1])) for _ in range(6)]
        # The second knows so much that it is shared before a third is made.
        assert [lanes.made.index(lane) for lane in lent] == [0, 1, 1, 2, 3, 0]
    with lanes.lend([1]) as lane:
        assert lane is lanes.made[1]  # all are free again


def test_a_call_waits_without_a_core_for_what_an_earlier_one_reads_and_no_longer() -> None:
    cores, shared = SharedCores(2), list(range(2 * MIN_COPIED_TOKENS))
    lanes = CachePools(lambda _: CachePool(Knowing(), None), cores, count=3)
    stop = Stop()
    begun: list[str] = []

    def later(name: str, given: Stop | None) -> None:
        with lanes.lend([*shared, 9], given):
            begun.append(name)

    with lanes.lend([*shared, 7]):
        stopped = threading.Thread(target=later, args=("stopped", stop))
        stopped.start()
        waiting = threading.Thread(target=later, args=("waiting", None))
        time.sleep(0.02)
        waiting.start()
        time.sleep(0.05)
        assert begun == []
        assert cores.users == 1
        stop.set()
        stopped.join(10)
        with lanes.lend([5]):
            assert cores.users == 2  # a prompt with another beginning waits for nobody
    waiting.join(10)  # who read has ended and left nothing
    assert sorted(begun) == ["stopped", "waiting"]
    assert cores.users == 0


def test_without_memory_for_another_lane_calls_share_what_there_is() -> None:
    def make(number: int) -> CachePool:
        if number:
            raise MemoryError
        return CachePool(Knowing(), None)

    lanes = CachePools(make, SharedCores(2), count=4)
    with lanes.lend([1]) as first, lanes.lend([2]) as second:
        assert first is second is lanes.made[0]

    def none(_: int) -> CachePool:
        raise MemoryError

    with pytest.raises(MemoryError):
        CachePools(none, SharedCores(2), count=4)


def test_closing_waits_for_who_is_inside() -> None:
    lanes = CachePools(lambda _: CachePool(Knowing(), None), SharedCores(1), count=1)
    closed = threading.Thread(target=lanes.close)
    with lanes.inside():
        closed.start()
        closed.join(0.05)
        assert closed.is_alive()
    closed.join(10)
    assert not closed.is_alive()
