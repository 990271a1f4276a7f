"""Crews: one thread for all decodes that follow each other, whoever asks for them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Queue
from typing import Any

import llama_cpp
import pytest

from toolsrv_runtime.contract.models import Piece
from toolsrv_runtime.engine import hardware as crews_module
from toolsrv_runtime.engine.hardware import DecodeThreads, SharedCores
from toolsrv_runtime.engine.llama import LlamaEngine
from toolsrv_runtime.gguf_models import SHIPPED_MODEL


class Jobs(Queue[Any]):
    """A queue whose methods can be replaced."""


def in_threads(work: Callable[[], object], count: int) -> None:
    """Do work in threads of its own, one after the other."""
    for _ in range(count):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()


def crew_threads() -> set[threading.Thread]:
    """Return those of all crews."""
    return {one for one in threading.enumerate() if one.name == "toolsrv-crew"}


def test_all_that_come_one_after_the_other_have_one_crew() -> None:
    crews, seen = DecodeThreads(), list[int]()
    in_threads(lambda: crews.run(lambda: seen.append(threading.get_ident()), alone=False), 5)
    assert len(seen) == 5
    assert len(set(seen)) == 1
    assert threading.get_ident() not in seen


def test_who_works_at_the_same_time_has_a_crew_each_until_somebody_works_alone() -> None:
    crews, before = DecodeThreads(), crew_threads()
    both = threading.Barrier(2)
    threads = [
        threading.Thread(target=crews.run, args=(both.wait,), kwargs={"alone": False})
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(crew_threads() - before) == 2
    assert crews.run(lambda: 7, alone=True) == 7
    assert len(crew_threads() - before) == 1


def test_what_work_raises_is_raised_and_the_crew_goes_on() -> None:
    crews = DecodeThreads()

    def fail() -> None:
        raise MemoryError("no room")

    for _ in range(2):
        with pytest.raises(MemoryError, match="no room"):
            crews.run(fail, alone=True)
    assert crews.run(threading.get_ident, alone=True) == crews.run(threading.get_ident, alone=True)


@pytest.mark.parametrize("called", ["put", "wait"])
@pytest.mark.parametrize("first", [True, False], ids=["before", "after"])
def test_an_interrupt_waits_for_the_end_of_the_work_which_is_done_once(
    monkeypatch: pytest.MonkeyPatch, called: str, first: bool
) -> None:
    done = list[int]()
    owner = {"put": Jobs, "wait": crews_module._Job}[called]
    whole, interrupts = getattr(owner, called), iter([True, True])

    def interrupted(*given: Any) -> None:
        come = next(interrupts, False)
        if come and first:
            raise KeyboardInterrupt
        whole(*given)
        if come:
            raise KeyboardInterrupt

    monkeypatch.setattr(crews_module, "SimpleQueue", Jobs)
    monkeypatch.setattr(owner, called, interrupted)
    crews = DecodeThreads()
    with pytest.raises(KeyboardInterrupt):
        crews.run(lambda: done.append(1), alone=True)
    assert done == [1]
    monkeypatch.undo()
    assert crews.run(lambda: 7, alone=True) == 7
    assert done == [1]


@pytest.mark.parametrize("threads", [1, 2])
def test_decodes_of_all_threads_are_one_crews_and_a_single_threads_its_own(
    monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    decode, callers, seen = llama_cpp.llama_decode, set[int](), set[int]()

    def seeing(*given: Any) -> Any:
        seen.add(threading.get_ident())
        return decode(*given)

    monkeypatch.setattr(
        SharedCores, "_measure", lambda *_: None
    )  # a busy machine would get one thread
    engine = LlamaEngine(SHIPPED_MODEL, context=256, threads=threads)
    monkeypatch.setattr(llama_cpp, "llama_decode", seeing)

    def call() -> None:
        callers.add(threading.get_ident())
        engine.generate((Piece("one"),), grammar="start: /[a-z ]{5,9}/", max_tokens=4)

    in_threads(call, 3)
    call()
    engine.close()
    assert (len(seen) == 1 and not seen & callers) if threads > 1 else seen <= callers
