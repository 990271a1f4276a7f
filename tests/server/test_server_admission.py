"""Admission: how many searches and calls work at once, which are in haste, and which are refused."""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from toolsrv import operations
from toolsrv.mcp_server import admission
from toolsrv.mcp_server.admission import BUSY, CROWD, PATIENCE_S, Admission
from toolsrv.settings import load
from toolsrv.workbench import Workbench
from toolsrv_lab.bench.server_load import HASTY, Replies
from toolsrv_registry.errors import BusyError
from toolsrv_runtime.calls.caller import Caller

pytestmark = pytest.mark.anyio
Connect = Callable[[], AbstractAsyncContextManager[Any]]


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """What blocking work waits for; open when the test ends."""
    event = threading.Event()
    yield event
    event.set()


async def searches(count: int, seconds: float) -> tuple[list[str], int]:
    """Hold so many places for a time each; return who was in haste, and how many worked at once."""
    places, working, most, hastes = Admission(2), 0, 0, []

    async def one() -> None:
        nonlocal working, most
        async with places.place() as haste:
            working += 1
            most = max(most, working)
            hastes.append(haste)
            await asyncio.sleep(seconds)
            working -= 1

    await asyncio.gather(*(one() for _ in range(count)))
    return hastes, most


async def test_no_more_work_at_once_than_there_are_places_and_few_have_their_time() -> None:
    assert await searches(5, 0.0) == ([""] * 5, 2)


async def test_a_search_that_waited_or_that_many_wait_for_is_in_haste() -> None:
    hastes, most = await searches(20, PATIENCE_S * 1.5)
    assert most == 2
    assert hastes[:2] == ["", ""]
    assert set(hastes[2:]) == {BUSY}
    hastes, _ = await searches(10, 0.0)
    assert BUSY in hastes[2:6]
    assert hastes[-1] == ""


async def test_in_a_crowd_half_of_the_places_are_left_to_searches_in_haste() -> None:
    calm, crowded = Admission(2), Admission(2)
    async with calm.place() as first, calm.place() as second:
        assert (first, second) == ("", "")
    for _ in range(2 * CROWD):
        async with crowded.place() as alone:
            assert alone == ""
    async with crowded.place() as first, crowded.place() as second:
        assert (first, second) == ("", BUSY)


def test_the_benchmark_recognises_a_search_in_haste() -> None:
    assert HASTY.decode() in BUSY


async def test_the_benchmark_recognises_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "MOST_WAIT_S", -1.0)
    with pytest.raises(BusyError) as refused:
        await Admission().place().__aenter__()
    told = {"isError": True, "text": refused.value.message}
    body = json.dumps(told, separators=(",", ":")).encode()
    assert Replies().check(200, body) == "busy"


async def test_a_place_is_free_again_after_a_fault_or_a_cancellation() -> None:
    places = Admission(1)
    with pytest.raises(RuntimeError):
        async with places.place():
            raise RuntimeError
    async with places.place():
        waiting = asyncio.ensure_future(places.place().__aenter__())
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    async with asyncio.timeout(5), places.place() as haste:
        assert haste == ""


async def test_a_search_in_haste_has_the_rankers_hits_and_says_so(ready_dir: Path) -> None:
    bench = Workbench(load({"data_dir": str(ready_dir)}).settings)
    try:
        text = "What is the capital of Peru?"
        calm, hasty = (
            operations.search(bench, text, without_matcher=reason) for reason in ("", BUSY)
        )
        assert (BUSY in hasty.notes, BUSY in calm.notes) == (True, False)
        assert hasty.hits[0].id == calm.hits[0].id == "Data/country_facts/capital_city"
        assert len(hasty.hits) == len(calm.hits)
        assert hasty.degraded == ""
    finally:
        await bench.aclose()


async def test_what_would_wait_too_long_is_refused_at_once_and_told_when_to_come_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(admission, "MOST_WAIT_S", 2.0)
    monkeypatch.setattr(admission, "_FIRST_S", 0.05)
    places, door = Admission(1, what="calls"), asyncio.Event()

    async def one() -> str:
        async with places.place():
            await door.wait()
        return "done"

    first = asyncio.ensure_future(one())
    await asyncio.sleep(0)
    waiting = [asyncio.ensure_future(one()) for _ in range(200)]
    began = time.monotonic()
    _, line = await asyncio.wait(waiting, timeout=0.2)
    refused = [task.exception() for task in waiting if task not in line]
    assert time.monotonic() - began < 1.0
    assert 30 < len(line) < 60  # two seconds of works that take 50 milliseconds each
    assert len(refused) == 200 - len(line)
    for error in refused:
        assert isinstance(error, BusyError)
        assert "busy with other calls" in error.message
        assert re.fullmatch(r"try again in about [2-4] seconds", error.hint)
    door.set()
    assert [await task for task in (first, *line)] == ["done"] * (1 + len(line))
    async with places.place() as haste:  # an empty line is open to anybody
        assert haste == ""


async def test_what_has_waited_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "MOST_WAIT_S", 0.1)
    places = Admission(1)
    async with places.place():
        async with asyncio.timeout(20):
            with pytest.raises(BusyError, match="busy with other searches"):
                async with places.place():
                    pass
    async with asyncio.timeout(20), places.place():
        pass


async def test_the_line_is_as_long_as_works_are_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "_FIRST_S", 1.0)
    slow, quick = Admission(1), Admission(1)
    for _ in range(40):
        async with quick.place():
            pass
    lengths = []
    for places in (slow, quick):
        async with places.place():
            waiting = [asyncio.ensure_future(places.place().__aenter__()) for _ in range(50)]
            await asyncio.sleep(0.05)
            lengths.append(sum(not task.done() for task in waiting))
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
    assert lengths == [9, 50]  # eight seconds, and the one that begins a ninth


async def test_a_storm_of_cancelled_searches_never_uses_more_threads_than_places(
    gate: threading.Event,
) -> None:
    places, lock = Admission(2), threading.Lock()
    working = most = 0

    def work(_haste: str) -> None:
        nonlocal working, most
        with lock:
            working += 1
            most = max(most, working)
        gate.wait(60)
        with lock:
            working -= 1

    for _ in range(20):
        storm = [asyncio.ensure_future(places.in_thread(work)) for _ in range(5)]
        await asyncio.sleep(0.01)
        for task in storm:
            task.cancel()
        await asyncio.gather(*storm, return_exceptions=True)
    assert (working, most) == (2, 2)
    gate.set()
    async with asyncio.timeout(60):
        await places.in_thread(work)
        await asyncio.gather(*(places.in_thread(work) for _ in range(4)))
    assert most == 2


async def test_the_line_is_foreseen_by_the_work_that_a_search_is_and_not_by_how_long_it_stands(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(admission, "MOST_WAIT_S", 1.0)
    places, busy = Admission(1), Admission(1)

    def work(_haste: str) -> None:
        end = time.thread_time() + 0.05
        while time.thread_time() < end:
            pass

    for _ in range(16):
        await places.in_thread(lambda _: time.sleep(0.02))
        await busy.in_thread(work)
    lengths = []
    for one in (places, busy):
        async with one.place():
            waiting = [asyncio.ensure_future(one.place().__aenter__()) for _ in range(200)]
            await asyncio.sleep(0.05)
            lengths.append(sum(not task.done() for task in waiting))
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
    assert lengths[0] == 200
    assert 5 <= lengths[1] <= 12  # a second, of works that take a tenth


async def test_an_error_in_the_thread_frees_the_place_and_reaches_who_waits() -> None:
    places = Admission(1)

    def fail(_haste: str) -> None:
        raise ValueError("no")

    for _ in range(3):
        async with asyncio.timeout(20):
            with pytest.raises(ValueError, match="no"):
                await places.in_thread(fail)


@pytest.mark.parametrize("transport", ["memory"])
@pytest.mark.parametrize("tool", ["search_apis", "call_api"])
async def test_an_overloaded_server_answers_everybody_and_refuses_most(
    connect: Connect, monkeypatch: pytest.MonkeyPatch, gate: threading.Event, tool: str
) -> None:
    arguments: dict[str, Any] = {"query": "time"}
    door = asyncio.Event()
    async with connect() as client:
        await client.call_tool("search_apis", arguments)  # everything is loaded
        monkeypatch.setattr(admission, "MOST_WAIT_S", 0.5)
        if tool == "search_apis":
            whole = Workbench.search

            def search(self: Workbench, *given: Any, **more: Any) -> Any:
                gate.wait(60)
                return whole(self, *given, **more)

            monkeypatch.setattr(Workbench, "search", search)
        else:
            called = Caller.call

            async def call(self: Caller, *given: Any, **more: Any) -> Any:
                await door.wait()
                return await called(self, *given, **more)

            monkeypatch.setattr(Caller, "call", call)
            city = "Data/country_facts/capital_city"
            arguments = {"id": city, "arguments": {"country": "Peru"}}
        asked = [asyncio.ensure_future(client.call_tool(tool, arguments)) for _ in range(300)]
        done, working = await asyncio.wait(asked, timeout=15)
        assert 0 < len(working) <= 100
        for task in done:
            result = task.result()
            assert result.is_error
            view = result.structured_content
            assert "the server is busy" in view["error"]
            assert re.fullmatch(r"try again in about \d seconds", view["hint"])
            assert view["hint"] in result.content[0].text
        gate.set()
        door.set()
        async with asyncio.timeout(60):
            late = await asyncio.gather(*working)
            assert [one.is_error for one in late] == [False] * len(working)
            again = await client.call_tool(tool, arguments)
        assert not again.is_error


@pytest.mark.parametrize("transport", ["memory"])
async def test_searches_behind_those_that_wait_for_the_index_are_answered_by_words(
    connect: Connect, monkeypatch: pytest.MonkeyPatch, gate: threading.Event
) -> None:
    monkeypatch.setattr(admission, "MOST_WAIT_S", 3.0)
    whole = Workbench.searchable

    def building(self: Workbench) -> Any:
        gate.wait(60)
        return whole(self)

    monkeypatch.setattr(Workbench, "searchable", building)
    async with connect() as client:
        asked = [
            asyncio.ensure_future(client.call_tool("search_apis", {"query": "time"}))
            for _ in range(20)
        ]
        done, waiting = await asyncio.wait(asked, timeout=11)
        assert 0 < len(waiting) < 20
        for task in done:
            result = task.result()
            assert not result.is_error
            assert "words only" in result.structured_content["degraded"]
        gate.set()
        async with asyncio.timeout(60):
            for result in await asyncio.gather(*waiting):
                assert not result.is_error
