"""Searches of a busy server: how many work at once, and which are in haste."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from toolsrv import operations
from toolsrv.mcp_server.search_places import BUSY, PATIENCE_S, SearchPlaces
from toolsrv.settings import load
from toolsrv.workbench import Workbench
from toolsrv_lab.bench.server_load import HASTY

pytestmark = pytest.mark.anyio


async def searches(count: int, seconds: float) -> tuple[list[str], int]:
    """Hold so many places for a time each; return who was in haste, and how many worked at once."""
    places, working, most, hastes = SearchPlaces(2), 0, 0, []

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
    hastes, _ = await searches(12, 0.0)
    assert BUSY in hastes[2:6]
    assert hastes[-1] == ""


def test_the_benchmark_recognises_a_search_in_haste() -> None:
    assert HASTY.decode() in BUSY


async def test_a_place_is_free_again_after_a_fault_or_a_cancellation() -> None:
    places = SearchPlaces(1)
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
