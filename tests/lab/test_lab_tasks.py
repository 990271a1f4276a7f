"""The task files that judge solves, and the needs written for the catalog that ships: all can be
served by the calls that they name."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_lab.instructions.errands import arguments, written
from toolsrv_lab.solving import read_tasks
from toolsrv_registry.api import Api
from toolsrv_runtime.calls.caller import Caller, default_caller
from toolsrv_runtime.calls.transports import offline_transports
from toolsrv_runtime.values import facts

DATA = Path(__file__).parents[1] / "runtime" / "data"
CALLS = {"single": 1, "two": 2, "three": 3, "none": 0}


@pytest.fixture(scope="module")
def apis() -> Mapping[str, Api]:
    return {api.id: api for api in load_offline_catalog().apis}


@pytest.mark.parametrize(
    "name",
    [
        "tasks.jsonl",
        "tasks_dev.jsonl",
        "tasks_open.jsonl",
        "tasks_fresh.jsonl",
        "tasks_more.jsonl",
        "tasks_down.jsonl",
        "tasks_sealed.jsonl",
        "tasks_blind.jsonl",
    ],
)
def test_every_task_can_be_served_by_its_calls(name: str, apis: Mapping[str, Api]) -> None:
    tasks = read_tasks(DATA / name)
    assert len({task.id for task in tasks}) == len({task.task for task in tasks}) == len(tasks)

    async def serve() -> None:
        async with default_caller() as caller:
            for task in tasks:
                assert min(len(task.calls), 3) == CALLS[task.kind], task.id
                assert not {call.api for call in task.calls} & set(task.fails), task.id
                for call in task.calls:
                    result = await caller.call(apis[call.api], call.arguments)
                    assert result.ok, f"{task.id}: {result.error}"
                    missing = set(call.answer) - facts.whole(result.response).keys()
                    assert not missing, f"{task.id}: {missing}"

    asyncio.run(serve())


def test_what_is_said_to_toolsrv_itself_has_a_status_and_no_calls() -> None:
    lines = (DATA / "blind_talk.jsonl").read_text("utf-8").splitlines()
    talk = [json.loads(line) for line in lines]
    assert {one["status"] for one in talk} == {"replied", "needs_input"}
    named = {task.id for task in read_tasks(DATA / "tasks_blind.jsonl")}
    assert len(named | {one["id"] for one in talk}) == 188 + 12


def test_the_open_and_the_sealed_tasks_are_of_every_kind() -> None:
    for name in ("tasks_open.jsonl", "tasks_sealed.jsonl"):
        tasks = read_tasks(DATA / name)
        kinds: Counter[str] = Counter(task.kind for task in tasks)
        assert min(kinds[kind] for kind in CALLS) >= 20
        assert sum(task.chained for task in tasks) >= 28
        assert sum(bool(task.fails) for task in tasks) >= 12
        assert len({call.api for task in tasks for call in task.calls}) >= 120


@pytest.mark.nightly
def test_the_marked_values_of_the_needs_are_what_the_apis_take(apis: Mapping[str, Api]) -> None:
    needs = [(apis[one], need) for one in written() if one in apis for need in written()[one]]
    assert len(needs) > 4_700
    assert {api.id for api, _ in needs} == set(apis)

    async def serve() -> None:
        async with Caller(transports=offline_transports(), timeout=300) as caller:
            for api, need in needs:
                result = await caller.call(api, arguments(need))
                assert result.ok, f"{api.id}: {need}: {result.error}"

    asyncio.run(serve())
