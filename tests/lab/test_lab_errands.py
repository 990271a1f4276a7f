"""The errands that come with the laboratory: words and values stand in their tasks, calls answer."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from pathlib import Path

import pytest

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_lab.instructions.errands import Errand, errands, read_errand, swapped
from toolsrv_lab.solving import read_tasks
from toolsrv_registry.api import Api
from toolsrv_runtime.calls.caller import Caller, default_caller
from toolsrv_runtime.formats import facts

TASKS = Path(__file__).parents[1] / "runtime" / "data"


@pytest.fixture(scope="module")
def apis() -> Mapping[str, Api]:
    return {api.id: api for api in load_offline_catalog().apis}


async def served(errand: Errand, apis: Mapping[str, Api], caller: Caller) -> str:
    """Return what keeps an errand from being served, "" if nothing does."""
    seen: dict[str, str] = {}
    for step in errand.steps:
        if not step.api:
            continue
        missing = [v.key for v in step.arguments.values() if v.key and v.key not in seen]
        if missing:
            return f"no earlier answer has {missing}"
        arguments = {n: seen[v.key] if v.key else v.value for n, v in step.arguments.items()}
        result = await caller.call(apis[step.api], arguments)
        if not result.ok:
            return f"{step.api}: {result.error}"
        seen |= facts.facts(result.response, limit=320)
    return ""


def test_every_errand_is_served_by_its_calls(apis: Mapping[str, Api]) -> None:
    async def serve() -> list[str]:
        async with default_caller() as caller:
            found = [(errand.task, await served(errand, apis, caller)) for errand in errands()]
        return [f"{task}: {why}" for task, why in found if why]

    assert asyncio.run(serve()) == []


def test_words_and_values_of_every_errand_stand_in_its_task(apis: Mapping[str, Api]) -> None:
    for errand in errands():
        for step in errand.steps:
            assert step.words in errand.task, errand
            assert 1 <= len(step.words.split()) <= 30, errand
            listed = {p.name for p in apis[step.api].parameters if p.enum} if step.api else set()
            for name, value in step.arguments.items():
                assert value.key or name in listed or value.said in errand.task, errand


def test_errands_are_many_different_and_none_is_a_task_that_judges() -> None:
    tasks = [errand.task.lower() for errand in errands()]
    assert len(set(tasks)) == len(tasks) > 2_900
    judged = {task.task.lower() for path in TASKS.glob("tasks*.jsonl") for task in read_tasks(path)}
    assert not judged & set(tasks)
    called = {step.api for errand in errands() for step in errand.steps if step.api}
    assert called == {api.id for api in load_offline_catalog().apis}


def test_a_swap_changes_task_words_and_every_call_that_has_the_value() -> None:
    errand = read_errand(
        '{"task": "Sun and day length in Lima on 3 May, please", "steps": ['
        '["Sun and day length in Lima", "a/b/sun", {"city": "Lima", "date": "2026-05-03|3 May"}],'
        '["day length in Lima", "a/b/day", {"city": "Lima"}]]}'
    )
    pools = {("a/b/sun", "city"): [("Quito", "old Quito")]}
    other = swapped(errand, pools, 1.0, random.Random(0))
    assert other.task == "Sun and day length in old Quito on 3 May, please"
    assert [step.words for step in other.steps] == [
        "Sun and day length in old Quito",
        "day length in old Quito",
    ]
    assert [step.arguments["city"].value for step in other.steps] == ["Quito", "Quito"]
    assert other.steps[0].arguments["date"].value == "2026-05-03"


def test_a_value_that_is_said_twice_stays() -> None:
    errand = read_errand('{"task": "5 or 15, no, 5", "steps": [["5", "a/b/c", {"n": "5"}]]}')
    assert swapped(errand, {("a/b/c", "n"): [("7", "7")]}, 1.0, random.Random(0)) == errand
