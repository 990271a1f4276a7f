"""The errands that come with the laboratory: words and values stand in their tasks, calls answer."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Mapping
from pathlib import Path

import pytest

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_lab.instructions.errands import Errand, Value, errands, read_errand, sources, swapped
from toolsrv_lab.solving import read_tasks
from toolsrv_registry.api import Api
from toolsrv_runtime.calls.caller import Caller
from toolsrv_runtime.calls.transports import offline_transports
from toolsrv_runtime.values import facts

TASKS = Path(__file__).parents[1] / "runtime" / "data"


@pytest.fixture(scope="module")
def apis() -> Mapping[str, Api]:
    return {api.id: api for api in load_offline_catalog().apis}


async def served(errand: Errand, apis: Mapping[str, Api], caller: Caller) -> str:
    """Return what keeps an errand from being served, "" if nothing does."""
    seen: list[facts.Fact] = []
    for step in errand.steps:
        if not step.api:
            continue
        arguments = {name: one.value for name, one in step.arguments.items() if not one.key}
        taken = sources(step.arguments, [name for name, _ in seen])
        arguments |= {name: seen[at][1] for name, at in taken.items()}
        if missing := step.arguments.keys() - arguments.keys():
            return f"no earlier answer for {missing}"
        result = await caller.call(apis[step.api], arguments)
        if not result.ok:
            return f"{step.api}: {result.error}"
        seen = [*facts.facts(result.response, limit=320), *seen]
    return ""


def test_a_key_twice_means_the_last_two_answers_in_their_order() -> None:
    capital, flag = Value("", "", "capital"), Value("", "", "flag")
    both = {"from": capital, "to": capital, "unit": Value("km", "km"), "sign": flag}
    names = ["capital", "area", "capital", "flag", "capital"]  # last first
    assert sources(both, names) == {"from": 2, "to": 0, "sign": 3}
    assert sources({"city": capital}, names) == {"city": 0}
    assert sources(both, names[:2]) == {"from": 0, "to": 0}
    assert sources(both, []) == {}


@pytest.mark.nightly
def test_every_errand_is_served_by_its_calls(apis: Mapping[str, Api]) -> None:
    async def serve() -> list[str]:
        # No call's time is judged here: other processes have their share of it.
        async with Caller(transports=offline_transports(), timeout=300) as caller:
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
    rows = (TASKS / "missing_values.jsonl").read_text(encoding="utf-8").splitlines()
    judged |= {json.loads(row)["task"].lower() for row in rows}
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
