"""Tasks and verdicts: what a file of tasks may hold, and what counts as solved."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_lab.solving import FaultyCaller, GoldCall, Task, Verdict, judge, read_tasks, solve_one
from toolsrv_registry.errors import DataError, NotFoundError
from toolsrv_runtime.calls.transports import offline_transports
from toolsrv_runtime.outcome import Evidence, Limits, Outcome, Status, Usage
from toolsrv_runtime.solve import SolveOptions, Solver

API = "Geography/atlas/capital"
OTHER = "Geography/atlas/river"
LIMA = {"capital": "Lima", "country": "Peru"}
AMAZON = {"river": "Amazon", "length_km": 6400}
TASK = Task(
    id="t1",
    kind="two",
    task="What is the capital of Peru, and its longest river?",
    calls=(
        GoldCall(api=API, arguments={"country": "Peru"}, answer=("capital",)),
        GoldCall(api=OTHER, arguments={"country": "Peru"}, answer=("river",)),
    ),
)


OUTCOME = Outcome(
    task=TASK.task,
    status="answered",
    answer="",
    reason="",
    evidence=(),
    candidates=(API, OTHER),
    tree=(),
    usage=Usage(seconds=1.5),
    limits=Limits(),
    strategy="dfsdt",
    model="m",
    format="compact",
    seed=0,
    versions={},
)


def evidence(api_id: str, response: Any, status: int = 200) -> Evidence:
    return Evidence(
        node=1,
        api_id=api_id,
        function="f",
        arguments={"country": "Peru"},
        status=status,
        response=response,
        source="offline",
        seconds=0.0,
        used=True,
    )


def verdict(
    *made: Evidence,
    answer: str = "Lima; Amazon",
    status: Status = "answered",
    candidates: tuple[str, ...] = (API, OTHER),
) -> Verdict:
    """Judge an outcome whose APIs answered LIMA and AMAZON to the task's own calls."""
    outcome = OUTCOME.model_copy(
        update={"evidence": made, "answer": answer, "status": status, "candidates": candidates}
    )
    return judge(TASK, [LIMA, AMAZON], outcome)


BOTH = (evidence(API, LIMA), evidence(OTHER, AMAZON))


def test_a_task_is_solved_by_its_calls_and_an_answer_that_states_their_fields() -> None:
    found = verdict(*BOTH, answer="The capital is Lima and the longest river the Amazon.")
    assert found.right_calls
    assert found.right_answer
    assert found.offered
    assert (found.id, found.kind, found.status, found.usage.seconds) == (
        "t1",
        "two",
        "answered",
        1.5,
    )


def test_the_order_of_calls_and_further_calls_do_not_matter() -> None:
    assert verdict(BOTH[1], evidence("X/y/z", {}), BOTH[0]).right_calls


@pytest.mark.parametrize(
    "made",
    [
        (),
        (BOTH[0],),
        (BOTH[0], evidence(OTHER, {"river": "Ucayali", "length_km": 1})),
        (BOTH[0], evidence("X/y/z", AMAZON)),
        (BOTH[0], evidence(OTHER, AMAZON, status=404)),
    ],
    ids=["none", "one missing", "another response", "another API", "failed"],
)
def test_calls_are_wrong_when_one_of_them_is(made: tuple[Evidence, ...]) -> None:
    assert not verdict(*made).right_calls


@pytest.mark.parametrize(
    ("written", "result", "right"),
    [
        ("1480*1.19", 1761.2, True),
        ("1480 * (1 + 19 / 100)", 1761.2, True),
        ("1480 * 19 / 100", 281.2, False),
        ("1761.2", 1761.2, False),
        ("one thousand", 1761.2, False),
    ],
)
def test_an_expression_may_be_written_otherwise_if_it_comes_to_the_same(
    written: str, result: float, right: bool
) -> None:
    task = Task(
        id="t2",
        kind="single",
        task="What is 1480 with 19 percent more?",
        calls=(GoldCall(api=API, arguments={"expression": "1480*1.19"}, answer=("result",)),),
    )
    made = evidence(API, {"expression": written, "result": result})
    made = made.model_copy(update={"arguments": {"expression": written}})
    response = {"expression": "1480*1.19", "result": 1761.2}
    outcome = OUTCOME.model_copy(update={"evidence": (made,), "answer": f"result is {result}"})
    assert judge(task, [response], outcome).right_calls is right


@pytest.mark.parametrize(
    ("first", "second", "wanted", "right"),
    [
        ("Oslo", "Rome", 2008, True),
        ("Rome", "Oslo", 2008, True),
        ("Rome", "Oslo", -2008, False),  # an order that matters
        ("Rome", "Lima", 2008, False),
    ],
)
def test_two_values_may_stand_the_other_way_round_if_what_is_wanted_is_the_same(
    first: str, second: str, wanted: int, right: bool
) -> None:
    gold = GoldCall(api=API, arguments={"a": "Oslo", "b": "Rome"}, answer=("km",))
    task = Task(id="t3", kind="single", task="How far is Rome from Oslo?", calls=(gold,))
    made = evidence(API, {"a": first, "b": second, "km": wanted})
    made = made.model_copy(update={"arguments": {"a": first, "b": second}})
    outcome = OUTCOME.model_copy(update={"evidence": (made,), "answer": f"km is {wanted}"})
    response = {"a": "Oslo", "b": "Rome", "km": 2008}
    assert judge(task, [response], outcome).right_calls is right


def test_an_answer_is_wrong_when_it_leaves_out_a_wanted_value() -> None:
    assert not verdict(*BOTH, answer="The capital is Lima.").right_answer


@pytest.mark.parametrize("status", ["partial", "gave_up", "cancelled"])
def test_only_a_finished_solve_has_a_right_answer(status: Status) -> None:
    found = verdict(*BOTH, status=status)
    assert not found.right_answer
    assert found.right_calls


def test_what_nothing_serves_is_solved_by_giving_up() -> None:
    nothing = Task(id="n1", kind="none", task="Order a pizza.", calls=())
    expected: tuple[tuple[Status, bool], ...] = (
        ("gave_up", True),
        ("answered", False),
        ("partial", False),
    )
    for status, right in expected:
        outcome = Outcome(
            task=nothing.task, status=status, answer="", reason="", evidence=(), candidates=(),
            tree=(), usage=Usage(), limits=Limits(), strategy="dfsdt", model="m",
            format="compact", seed=0, versions={},
        )  # fmt: skip
        assert judge(nothing, [], outcome).right_answer is right


def test_an_api_that_is_down_answers_with_503_and_the_others_as_ever() -> None:
    async def check() -> None:
        apis = {api.id: api for api in load_offline_catalog().apis}
        capital, currency = (
            apis["Data/country_facts/capital_city"],
            apis["Data/country_facts/national_currency"],
        )
        async with FaultyCaller(transports=offline_transports()) as caller:
            caller.down = frozenset({capital.id})
            down = await caller.call(capital, {"country": "Peru"})
            assert (down.status, down.ok, down.error) == (503, False, "HTTP status 503")
            assert (await caller.call(currency, {"country": "Peru"})).ok
            assert (await caller.call(capital, {"river": "Amazon"})).kind == "bad_arguments"
            caller.down = frozenset()
            assert (await caller.call(capital, {"country": "Peru"})).ok

    asyncio.run(check())


class Recorded:
    """A solver that returns an outcome that is known."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome

    async def solve(self, *_: object) -> Outcome:
        return self.outcome


@pytest.mark.parametrize(
    ("arguments", "stated", "right"),
    [
        ({}, True, (True, True)),
        ({"length": 16}, True, (True, True)),
        ({"length": 12}, True, (False, False)),
        ({}, False, (True, False)),
    ],
    ids=["its arguments", "a default spelt", "other arguments", "another value stated"],
)
def test_what_is_drawn_by_lot_counts_by_its_arguments(
    arguments: dict[str, int], stated: bool, right: tuple[bool, bool]
) -> None:
    named = "Cybersecurity/password_lab/generate_password"
    api = {one.id: one for one in load_offline_catalog().apis}[named]
    task = Task(
        id="t3",
        kind="single",
        task="A password, please.",
        calls=(GoldCall(api=api.id, answer=("password",)),),
    )

    async def check() -> Verdict:
        async with FaultyCaller(transports=offline_transports()) as caller:
            drawn = await caller.call(api, arguments)
            assert isinstance(drawn.response, dict)
            made = evidence(api.id, drawn.response).model_copy(update={"arguments": arguments})
            answer = f"password is {drawn.response['password'] if stated else 'secret'}"
            outcome = OUTCOME.model_copy(update={"evidence": (made,), "answer": answer})
            solver = cast("Solver", Recorded(outcome))
            apis, options = {api.id: api}, SolveOptions()
            return await solve_one(task, solver=solver, caller=caller, apis=apis, options=options)

    found = asyncio.run(check())
    assert (found.right_calls, found.right_answer) == right


def test_a_task_is_offered_only_with_all_its_apis() -> None:
    assert not verdict(*BOTH, candidates=(API,)).offered


def write(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def test_tasks_come_back_as_they_were_written(tmp_path: Path) -> None:
    path = write(tmp_path / "tasks.jsonl", TASK.model_dump_json(), TASK.model_dump_json())
    assert read_tasks(path) == [TASK, TASK]


words = st.text(st.characters(exclude_categories=["C", "Z"]) | st.just(" "), min_size=1)
values = st.none() | st.booleans() | st.integers() | words | st.lists(st.integers(), max_size=3)
tasks = st.builds(
    Task,
    id=words,
    kind=st.sampled_from(["single", "two", "three"]),
    chained=st.booleans(),
    task=words,
    calls=st.lists(
        st.builds(
            GoldCall,
            api=words,
            arguments=st.dictionaries(words, values, max_size=3),
            answer=st.lists(words, max_size=3).map(tuple),
        ),
        max_size=3,
    ).map(tuple),
)


@given(st.lists(tasks, max_size=4))
def test_any_tasks_survive_the_file(
    tmp_path_factory: pytest.TempPathFactory, given_tasks: list[Task]
) -> None:
    path = tmp_path_factory.mktemp("tasks") / "tasks.jsonl"
    lines = [json.dumps(task.model_dump(mode="json")) for task in given_tasks]
    assert read_tasks(write(path, *lines)) == given_tasks


@pytest.mark.parametrize(
    "line",
    [
        "",
        "not json",
        "[]",
        '{"id": "a"}',
        '{"id": "a", "kind": "five", "task": "x", "calls": []}',
        '{"id": "a", "kind": "two", "task": "x", "calls": [{"arguments": {}}]}',
        '{"id": "a", "kind": "two", "task": "x", "calls": [{"api": "x", "answer": "y"}]}',
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str) -> None:
    path = write(tmp_path / "tasks.jsonl", TASK.model_dump_json(), line)
    with pytest.raises(DataError) as raised:
        read_tasks(path)
    assert "line 2" in raised.value.message
    assert raised.value.hint


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    for path in (tmp_path / "nothing.jsonl", tmp_path):
        with pytest.raises((DataError, NotFoundError)) as raised:
            read_tasks(path)
        assert str(path) in raised.value.message


@pytest.mark.parametrize(
    ("fails", "response", "arguments", "right"),
    [
        ((API,), {"found": "Lima", "country": "Peru"}, {}, True),
        ((), {"found": "Lima", "country": "Peru"}, {}, False),
        ((API,), {"found": "Lima region"}, {}, False),
        ((API,), {"city": "Lima"}, {"city": "Lima"}, False),
    ],
    ids=["told by another", "nothing was down", "another value", "given, not told"],
)
def test_what_another_api_tells_counts_where_the_obvious_one_is_down(
    fails: tuple[str, ...], response: dict[str, str], arguments: dict[str, str], right: bool
) -> None:
    task = TASK.model_copy(update={"fails": fails})
    other = evidence("X/y/z", response).model_copy(update={"arguments": arguments})
    made = (other, BOTH[1])
    outcome = OUTCOME.model_copy(update={"evidence": made, "answer": "Lima; Amazon"})
    found = judge(task, [LIMA, AMAZON], outcome)
    assert not found.right_calls
    assert (found.another_way, found.solved) == (right, right)


def test_yes_and_no_are_told_by_anything_and_so_by_nothing() -> None:
    gold = GoldCall(api=API, arguments={}, answer=("valid",))
    task = Task(id="t3", kind="single", task="Is it?", calls=(gold,), fails=(API,))
    made = (evidence("X/y/z", {"open": True}),)
    outcome = OUTCOME.model_copy(update={"evidence": made, "answer": "open is true"})
    assert not judge(task, [{"valid": True}], outcome).solved
