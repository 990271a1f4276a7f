"""Calls on a small model: each in a cache of its own, on a share of the cores."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from toolsrv_runtime.engine.base import Piece, Reply
from toolsrv_runtime.engine.cores import Cores
from toolsrv_runtime.engine.lanes import LANES, WORTH_MOVING, Lane, Lanes
from toolsrv_runtime.engine.llama import LlamaEngine
from toolsrv_runtime.engine.scheduler import Scheduler
from toolsrv_runtime.models import SHIPPED_MODEL

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

    def close(self) -> None:
        return


def reply(engine: LlamaEngine, text: str) -> Reply:
    return engine.generate((HEAD, Piece(text)), grammar=FREE, max_tokens=60)


def test_threads_all_go_to_who_is_alone_and_are_shared_by_several() -> None:
    cores = Cores(5)
    with cores.lend() as alone:
        assert alone == 5
    cores.users = 2
    with cores.lend() as first, cores.lend() as second, cores.lend() as third:
        assert (first, second, third) == (2, 2, 1)
    cores.users = 9
    with cores.lend() as one:
        assert one == 1


def test_never_more_threads_are_lent_than_there_are_and_all_get_theirs() -> None:
    cores, busy, most = Cores(3), [0], [0]
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
    engine.close()
    engine = LlamaEngine(SHIPPED_MODEL, context=1024, threads=2)
    start = threading.Barrier(len(TEXTS))

    def work(text: str) -> str:
        start.wait(60)
        return reply(engine, text).text

    with ThreadPoolExecutor(len(TEXTS)) as pool:
        assert list(pool.map(work, TEXTS)) == alone
    assert engine.counts.shared_steps == 0
    assert engine.counts.steps > engine.scheduler.counts.steps  # others decoded too
    engine.close()


def test_calls_one_after_the_other_need_one_lane() -> None:
    engine = LlamaEngine(SHIPPED_MODEL, context=1024, threads=1)
    first = reply(engine, TEXTS[0])
    second = reply(engine, TEXTS[1])
    assert second.evaluated < first.evaluated  # the head was there
    assert engine.counts == engine.scheduler.counts
    engine.close()


def test_a_model_with_flash_attention_or_one_lane_decodes_for_all_together() -> None:
    for given in ({"flash_attention": True}, {"lanes": 1}):
        engine = LlamaEngine(SHIPPED_MODEL, context=1024, threads=1, **given)
        with ThreadPoolExecutor(len(TEXTS)) as pool:
            list(pool.map(reply, [engine] * len(TEXTS), TEXTS))
        assert engine.counts.shared_steps > 10
        engine.close()


def test_a_call_goes_where_its_prompt_is_known_unless_others_are_there() -> None:
    known = [WORTH_MOVING // 2, 3 * WORTH_MOVING // 2, 0, 10]
    lanes = Lanes(lambda number: Lane(Knowing(known[number]), None), Cores(2), count=4)
    with ExitStack() as calls:
        lent = [calls.enter_context(lanes.lend([1])) for _ in range(6)]
        # The second knows so much that it is shared before a third is made.
        assert [lanes.made.index(lane) for lane in lent] == [0, 1, 1, 2, 3, 0]
    assert all(lane.calls == 0 for lane in lanes.made)


def test_without_memory_for_another_lane_calls_share_what_there_is() -> None:
    def make(number: int) -> Lane:
        if number:
            raise MemoryError
        return Lane(Knowing(), None)

    lanes = Lanes(make, Cores(2), count=LANES)
    with lanes.lend([1]) as first, lanes.lend([2]) as second:
        assert first is second is lanes.made[0]

    def none(_: int) -> Lane:
        raise MemoryError

    with pytest.raises(MemoryError):
        Lanes(none, Cores(2), count=LANES)


def test_closing_waits_for_who_is_inside() -> None:
    lanes = Lanes(lambda _: Lane(Knowing(), None), Cores(1), count=1)
    closed = threading.Thread(target=lanes.close)
    with lanes.inside():
        closed.start()
        closed.join(0.05)
        assert closed.is_alive()
    closed.join(10)
    assert not closed.is_alive()
