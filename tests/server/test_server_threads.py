"""Threads for blocking work: used again, one for each work, gone after a while."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
import weakref

import pytest

from toolsrv import threads
from toolsrv.threads import Workers, in_thread

pytestmark = pytest.mark.anyio


async def test_work_one_after_the_other_shares_a_thread_and_its_name_is_that_of_the_work() -> None:
    def who() -> tuple[threading.Thread, str]:
        return threading.current_thread(), threading.current_thread().name

    found = []
    names = [f"work {number}" for number in range(20)]
    for name in names:
        found.append(await in_thread(who, name=name))
        await asyncio.sleep(0.02)  # it waits for work again
    assert [name for _, name in found] == names
    assert len({thread for thread, _ in found}) < len(names)  # on a busy machine some start anew
    assert all(thread.daemon for thread, _ in found)


async def test_work_at_the_same_time_never_waits_for_each_other() -> None:
    count = threads.MOST_IDLE * 3
    together = threading.Barrier(count, timeout=20)
    for _ in range(3):
        done = await asyncio.gather(*(in_thread(together.wait) for _ in range(count)))
        assert sorted(done) == list(range(count))


async def test_an_error_reaches_the_waiting_task_and_the_thread_works_on() -> None:
    def fail() -> None:
        raise ValueError("no")

    for _ in range(3):
        with pytest.raises(ValueError, match="no"):
            await in_thread(fail)
    with pytest.raises(RuntimeError, match="StopIteration"):  # which no future takes
        await asyncio.wait_for(in_thread(lambda: next(iter(()))), 10)
    assert await in_thread(lambda: 42) == 42


async def test_nothing_of_a_work_is_held_once_it_is_done() -> None:
    class Large:
        pass

    large = Large()
    gone = weakref.ref(large)
    await in_thread(lambda held=large: held is not None)  # type: ignore[misc]
    del large
    for _ in range(100):
        gc.collect()
        if gone() is None:
            break
        await asyncio.sleep(0.01)
    assert gone() is None


def test_idle_threads_are_few_and_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "IDLE_S", 0.05)
    workers, started = Workers(), []
    together = threading.Barrier(threads.MOST_IDLE * 2, timeout=20)

    def work() -> None:
        started.append(threading.current_thread())
        together.wait()

    for _ in range(2):
        for _ in range(threads.MOST_IDLE * 2):
            workers.start(work, "w")
        deadline = time.monotonic() + 20
        while any(one.is_alive() for one in started) or len(started) % (threads.MOST_IDLE * 2):
            assert time.monotonic() < deadline
            time.sleep(0.01)
    assert len(started) == threads.MOST_IDLE * 4
