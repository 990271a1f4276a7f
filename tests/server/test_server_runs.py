"""Runs: their order, their end, their handles, and what is forgotten when."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from toolsrv.runs.queue import MAX_EVENTS, Run, Runs
from toolsrv_registry.errors import BusyError, DataError, NotFoundError
from toolsrv_runtime.outcome import BudgetEvent, Event, Limits, Outcome, Usage
from toolsrv_runtime.solve import SolveOptions
from toolsrv_runtime.stop import Stop

pytestmark = pytest.mark.anyio
OPTIONS = SolveOptions()


def outcome(task: str, status: Any = "answered") -> Outcome:
    return Outcome(
        task=task,
        status=status,
        answer=f"answer to {task}",
        reason="",
        evidence=(),
        candidates=(),
        tree=(),
        usage=Usage(calls=1),
        limits=Limits(),
        strategy="dfsdt",
        model="scripted",
        format="chat",
        seed=0,
        versions={},
    )


class Work:
    """Solves a task when the test lets it."""

    def __init__(self) -> None:
        self.doors: dict[str, asyncio.Event] = {}
        self.order: list[str] = []
        self.running = 0
        self.most = 0

    def door(self, task: str) -> asyncio.Event:
        return self.doors.setdefault(task, asyncio.Event())

    async def __call__(
        self, task: str, options: SolveOptions, on_event: Callable[[Event], None], stop: Stop
    ) -> Outcome:
        del options
        self.order.append(task)
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            if task == "broken":
                raise DataError("the model is damaged", hint="get another")
            if task == "crash":
                raise RuntimeError("boom")
            on_event(BudgetEvent(seconds=0.1, usage=Usage(calls=3), limits=Limits()))
            await self.door(task).wait()
            return outcome(task, "cancelled" if stop.is_set() else "answered")
        finally:
            self.running -= 1


async def until(run: Run, condition: Callable[[], bool]) -> None:
    while not condition():
        assert await run.changed(run.version, 5)


async def test_runs_beyond_the_places_wait_in_the_order_they_came() -> None:
    work = Work()
    runs = Runs(work, parallel=1)
    first, second, third = (runs.start(task, OPTIONS) for task in "abc")
    await until(first, lambda: first.status == "working" and first.event_count == 1)
    assert [runs.position(run) for run in (first, second, third)] == [0, 1, 2]
    assert second.status == "queued"
    assert first.usage.calls == 3
    for task in "abc":
        work.door(task).set()
    assert await third.wait(5)
    assert (work.order, work.most) == (["a", "b", "c"], 1)
    assert [run.status for run in (first, second, third)] == ["answered"] * 3
    assert third.outcome is not None
    assert third.outcome.answer == "answer to c"


async def test_so_many_runs_work_at_once_as_there_are_places() -> None:
    work = Work()
    runs = Runs(work, parallel=2)
    first, second, third, fourth = (runs.start(task, OPTIONS) for task in "abcd")
    await until(second, lambda: second.status == "working" and second.event_count == 1)
    assert [runs.position(run) for run in (first, second, third, fourth)] == [0, 0, 1, 2]
    work.door("b").set()
    await until(third, lambda: third.status == "working")
    assert (first.status, runs.position(fourth)) == ("working", 1)
    for task in "acd":
        work.door(task).set()
    assert await fourth.wait(5)
    assert (work.order, work.most) == (["a", "b", "c", "d"], 2)


async def test_twenty_runs_wait_in_line_and_each_knows_its_place() -> None:
    work = Work()
    runs = Runs(work, parallel=4)
    started = [runs.start(str(number), OPTIONS) for number in range(24)]
    await until(started[3], lambda: started[3].status == "working")
    assert [runs.position(run) for run in started] == [0] * 4 + list(range(1, 21))
    for number in range(24):
        work.door(str(number)).set()
    assert await started[-1].wait(5)
    assert (work.most, work.order) == (4, [str(number) for number in range(24)])


async def test_handles_cannot_be_guessed_and_unknown_ones_are_told() -> None:
    runs = Runs(Work())
    one, two = runs.start("a", OPTIONS), runs.start("b", OPTIONS)
    assert one.id != two.id
    assert one.id.startswith("run_")
    assert len(one.id) >= 26
    assert runs.get(one.id) is one
    with pytest.raises(NotFoundError, match="run_nope"):
        runs.get("run_nope")
    await runs.close()


async def test_waiting_ends_when_the_time_is_over() -> None:
    runs = Runs(Work())
    run = runs.start("a", OPTIONS)
    assert not await run.wait(0.05)
    assert run.live
    await runs.close()
    assert run.status == "cancelled"


async def test_a_cancelled_run_stops_and_a_waiting_one_never_begins() -> None:
    work = Work()
    runs = Runs(work, parallel=1)
    first, second, third = (runs.start(task, OPTIONS) for task in "abc")
    await until(first, lambda: first.status == "working")
    assert runs.cancel(second.id).status == "cancelled"
    assert runs.position(third) == 1
    runs.cancel(first.id)
    assert first.stop.is_set()
    work.door("a").set()
    work.door("c").set()
    assert await third.wait(5)
    assert first.status == "cancelled"
    assert work.order == ["a", "c"]
    assert runs.cancel(third.id).status == "answered"


async def test_a_run_that_has_ended_is_kept_although_the_server_ends() -> None:
    work, keeping, door, kept = Work(), asyncio.Event(), asyncio.Event(), []

    async def on_end(run: Run) -> None:
        keeping.set()
        await door.wait()
        kept.append(run)

    runs = Runs(work, on_end=on_end)
    ended, live = (runs.start(task, OPTIONS) for task in "ab")
    work.door("a").set()
    assert await ended.wait(5)
    await keeping.wait()
    closing = asyncio.ensure_future(runs.close())
    await until(live, lambda: not live.live)
    assert (live.status, closing.done()) == ("cancelled", False)
    door.set()
    await closing
    assert kept == [ended]


async def test_what_never_ends_does_not_keep_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolsrv.runs.queue.ON_END_S", 0.01)
    work, broken_off = Work(), asyncio.Event()

    async def on_end(_: Run) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            broken_off.set()

    runs = Runs(work, on_end=on_end)
    work.door("a").set()
    assert await runs.start("a", OPTIONS).wait(5)
    await runs.close()
    assert broken_off.is_set()


async def test_a_failure_is_told_and_the_next_run_goes_on() -> None:
    work = Work()
    runs = Runs(work, report=lambda error: f"told: {error}")
    broken, crash, good = (runs.start(task, OPTIONS) for task in ("broken", "crash", "good"))
    work.door("good").set()
    assert await good.wait(5)
    assert (broken.status, broken.error, broken.hint) == (
        "failed",
        "the model is damaged",
        "get another",
    )
    assert (crash.status, crash.error) == ("failed", "told: boom")
    assert good.status == "answered"


async def test_live_runs_are_bounded_and_ended_ones_forgotten() -> None:
    now = [0.0]
    work = Work()
    runs = Runs(work, max_live=2, keep_s=60, clock=lambda: now[0])
    first, second = runs.start("a", OPTIONS), runs.start("b", OPTIONS)
    await asyncio.sleep(0)  # they begin
    with pytest.raises(BusyError, match="busy: 2 runs") as unknown:
        runs.start("c", OPTIONS)
    assert "try again in about 15 seconds" in unknown.value.hint  # a minute, four at once
    now[0] = 40.0
    work.door("a").set()
    work.door("b").set()
    assert await second.wait(5)
    third, fourth = runs.start("c", OPTIONS), runs.start("d", OPTIONS)
    with pytest.raises(BusyError) as known:
        runs.start("e", OPTIONS)
    assert "try again in about 10 seconds" in known.value.hint
    for run in (third, fourth):
        runs.cancel(run.id)
        work.door(run.task).set()
    assert await fourth.wait(5)
    runs.start("f", OPTIONS)
    assert runs.get(first.id) is first
    now[0] = 101.0
    with pytest.raises(NotFoundError):
        runs.get(first.id)
    await runs.close()


async def test_a_change_between_looking_and_waiting_is_not_missed() -> None:
    run = Run("a", OPTIONS)
    seen = run.version
    run.touch()
    assert await run.changed(seen, 60)
    assert not await run.changed(run.version, 0.01)


async def test_events_are_bounded_and_all_counted() -> None:
    run = Run("a", OPTIONS)
    for number in range(MAX_EVENTS + 10):
        run.add_event(BudgetEvent(seconds=number, usage=Usage(), limits=Limits()))
    assert len(run.events) == MAX_EVENTS
    assert run.event_count == MAX_EVENTS + 10
    assert run.events[0].seconds == 10


class Written:
    """A journal that notes what becomes of it."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.end = ""

    def add(self, event: Event) -> None:
        self.events.append(event.kind)

    def discard(self) -> None:
        self.end = self.end or "discarded"

    def leave(self) -> None:
        self.end = self.end or "left"


async def test_a_journal_is_discarded_once_its_run_is_kept_and_left_where_it_is_not() -> None:
    work, written = Work(), dict[str, Written]()

    def journal(run: Run) -> Written:
        return written.setdefault(run.task, Written())

    async def on_end(run: Run) -> None:
        if run.task != "unkept":
            run.journal.discard()

    runs = Runs(work, on_end=on_end, journal=journal, parallel=3)
    started = [runs.start(task, OPTIONS) for task in ("kept", "unkept", "broken off", "dropped")]
    await until(started[2], lambda: started[2].event_count == 1)
    runs.cancel(started[3].id)
    assert written["dropped"].end == "discarded"
    for task in ("kept", "unkept"):
        work.door(task).set()
    assert await started[0].wait(5)
    assert await started[1].wait(5)
    await runs.close()  # the third goes on although it is asked to stop
    assert started[2].status == "cancelled"
    assert {task: one.end for task, one in written.items()} == {
        "kept": "discarded",
        "unkept": "left",
        "broken off": "left",
        "dropped": "discarded",
    }
    assert written["kept"].events == ["budget"]
