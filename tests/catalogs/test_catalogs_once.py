"""What the offline catalog loads on first use is loaded once, by however many threads."""

from __future__ import annotations

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from toolsrv_catalogs.offline.values.once import once


def test_threads_that_come_at_once_share_one_load() -> None:
    loads: list[int] = []
    together, second = threading.Barrier(8), threading.Barrier(2)

    @once
    def load() -> list[int]:
        loads.append(len(loads))
        with contextlib.suppress(threading.BrokenBarrierError):
            second.wait(timeout=0.1)  # for another thread that loads, which never comes
        return loads

    def come() -> list[int]:
        together.wait()
        return load()

    with ThreadPoolExecutor(8) as pool:
        found = [one.result() for one in [pool.submit(come) for _ in range(8)]]
    assert all(one is loads for one in found)
    assert loads == [0]


def test_a_load_that_fails_is_tried_again() -> None:
    tries: list[int] = []

    @once
    def load() -> int:
        tries.append(1)
        if len(tries) == 1:
            raise OSError
        return len(tries)

    with pytest.raises(OSError):  # noqa: PT011 - any will do
        load()
    assert (load(), load()) == (2, 2)
