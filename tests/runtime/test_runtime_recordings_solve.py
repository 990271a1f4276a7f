"""A whole solve, recorded and replayed: the same tree, and nothing is asked of anybody."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from toolsrv_registry.api import Api
from toolsrv_registry.registry import Registry
from toolsrv_runtime.calls.caller import Caller, CallResult
from toolsrv_runtime.calls.recordings.callers import RecordingCaller, ReplayingCaller
from toolsrv_runtime.calls.recordings.storage import RECORDINGS_FILE, RecordingStore
from toolsrv_runtime.calls.transports import offline_transports
from toolsrv_runtime.gguf_models import load_engine
from toolsrv_runtime.outcome import Limits, Outcome
from toolsrv_runtime.solve import SolveOptions, Solver

TASK = "What is the complementary color of teal?"
OPTIONS = SolveOptions(seed=7, limits=Limits(seconds=1_800))
_SHUT: list[bool] = []


def _guard(event: str, arguments: tuple[Any, ...]) -> None:
    """Refuse every socket but the loop's own pair, while the guard is shut."""
    if not _SHUT or not event.startswith("socket."):
        return
    if event == "socket.__new__" and arguments[1] not in (2, 10):  # AF_INET, AF_INET6
        return
    raise AssertionError(f"a socket was used: {event} {arguments[1:]}")


@pytest.fixture
def shut() -> Iterator[None]:
    """Let no socket be opened in this process."""
    if not getattr(sys, "_toolsrv_guarded", False):
        sys.addaudithook(_guard)
        sys._toolsrv_guarded = True  # type: ignore[attr-defined]
    _SHUT.append(True)
    yield
    _SHUT.clear()


Work = Callable[[Caller], Outcome]


@pytest.fixture
def work(registry: Registry) -> Work:
    """Return a function that solves the task alone, on an engine of its own."""

    def solve(caller: Caller) -> Outcome:
        engine, profile = load_engine(threads=1)

        async def main() -> Outcome:
            async with caller:
                finder = registry.retriever
                solver = Solver(retriever=finder, engine=engine, profile=profile, caller=caller)
                return await solver.solve(TASK, OPTIONS)

        try:
            return asyncio.run(main())
        finally:
            engine.close()

    return solve


def told(outcome: Outcome) -> str:
    """Return an outcome as JSON without what differs from clock to clock."""
    times: dict[str, Any] = {
        "costs": {"__all__": {"seconds"}},
        "usage": {"seconds"},
        "evidence": {"__all__": {"seconds", "source"}},
    }
    return outcome.model_dump_json(exclude=times)


def test_a_solve_is_replayed_byte_for_byte(work: Work, tmp_path: Path, shut: None) -> None:
    del shut
    path = tmp_path / RECORDINGS_FILE
    recorded = work(RecordingCaller(RecordingStore.open(path), transports=offline_transports()))
    assert recorded.status == "answered"
    assert {one.source for one in recorded.evidence} == {"offline"}
    replayed = [work(ReplayingCaller(RecordingStore.open(path))) for _ in range(2)]
    assert recorded.model_dump_json(include={"tree"}) == replayed[0].model_dump_json(
        include={"tree"}
    )
    assert told(recorded) == told(replayed[0]) == told(replayed[1])
    assert {one.source for one in replayed[0].evidence} == {"recorded"}


def test_a_replay_without_recordings_ends_in_misses_not_in_calls(
    work: Work, tmp_path: Path, shut: None
) -> None:
    del shut
    outcome = work(ReplayingCaller(RecordingStore.open(tmp_path / RECORDINGS_FILE)))
    assert outcome.status != "answered"
    assert outcome.evidence
    assert all(one.status == 0 and one.source == "recorded" for one in outcome.evidence)


def test_an_offline_solve_opens_no_socket(work: Work, shut: None) -> None:
    del shut
    assert work(Caller(transports=offline_transports())).status == "answered"


def test_a_call_of_a_host_elsewhere_opens_no_socket(tmp_path: Path, shut: None) -> None:
    del shut
    api = Api(id="C/t/a", category="C", tool="t", name="a", url="https://example.com/a")
    replaying = ReplayingCaller(RecordingStore.open(tmp_path / RECORDINGS_FILE))
    worlds = {
        "replay_miss": replaying,
        "blocked_by_policy": Caller(transports=offline_transports()),
    }
    for kind, caller in worlds.items():

        async def main(caller: Caller = caller) -> CallResult:
            async with caller:
                return await caller.call(api, {})

        assert asyncio.run(main()).kind == kind


def test_the_guard_sees_sockets(shut: None) -> None:
    del shut
    for use in (socket.socket, lambda: socket.getaddrinfo("localhost", 80)):
        with pytest.raises(AssertionError):
            use()
