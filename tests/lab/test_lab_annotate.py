"""Solution paths: the oracle and a model in the real search, and what is refused."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st
from tests.annotation import (
    APIS,
    CAPITAL,
    METHOD,
    OPTIONS,
    TASKS,
    asked,
    files,
    oracle,
    solve,
    tree,
)
from tests.model_server import GIVE_UP, ModelServer
from tests.toolllama_replies import TOOLLLAMA, answer, call

from toolsrv.cli.main import cli
from toolsrv_lab.annotation.annotators import TOO_DEEP, EngineAnnotator
from toolsrv_lab.annotation.assignments import (
    ELSEWHERE,
    Assignment,
    from_errands,
    from_needs,
    read_assignments,
)
from toolsrv_lab.annotation.oracle import draw_mistakes, mistake_rounds, needed_rounds
from toolsrv_lab.annotation.pipeline import AnswerFolder, Workplace, annotate, fitting_assignments
from toolsrv_lab.execution import LocalPool
from toolsrv_lab.instructions.errands import ErrandStep, Value
from toolsrv_lab.instructions.writer import write_instructions
from toolsrv_registry.api import Api, Parameter
from toolsrv_registry.errors import DataError, UsageError
from toolsrv_registry.registry import Registry
from toolsrv_runtime.engine.scripted import ScriptedEngine
from toolsrv_runtime.outcome import TreeNode
from toolsrv_runtime.solve import SolveOptions
from toolsrv_runtime.toolbench.answer_files import read_answer

CURRENCY = "Data/country_facts/national_currency"
Run = Callable[..., Result]


def test_a_task_without_mistakes_is_one_straight_path(registry: Registry, tmp_path: Path) -> None:
    report = solve(registry, tmp_path, [asked("Peru")], oracle())
    assert (report.tasks, report.solved, report.gave_up, report.failed) == (1, 1, 0, 0)
    call, end = tree(tmp_path, "Peru")[1:]
    assert call.thought.startswith("the capital of Peru use #")
    assert (call.function, call.arguments) == (
        "capital_city_for_country_facts",
        {"country": "Peru"},
    )
    assert end.kind == "answer"
    assert "Lima" in end.text
    answer = read_answer(tmp_path / f"Peru_{METHOD}.json").answer_generation
    assert answer.valid_data
    assert len(answer.function) == 10


def test_with_mistakes_the_trees_have_branches_that_failed(
    registry: Registry, tmp_path: Path
) -> None:
    assignments = list(islice(from_errands(APIS.keys(), 0), 40))
    annotator = oracle(1.0)
    report = solve(registry, tmp_path, assignments, annotator)
    assert report.done == 40
    assert report.solved >= 25
    nodes = [(one, node) for one in assignments for node in tree(tmp_path, one.id)]
    assert any("is missing" in node.observation for _, node in nodes)
    assert any(node.code == 12 and '"HTTP status 503"' in node.observation for _, node in nodes)
    functions = {one.id: {APIS[api].name for api in one.apis} for one in assignments}
    assert any(
        node.kind == "call" and not node.function.startswith(tuple(_names(functions[one.id])))
        for one, node in nodes
    )
    left = [one.id for one, node in nodes if node.kind == "give_up"]
    assert any(node.kind == "answer" and one.id in left for one, node in nodes)
    for one in assignments:
        _mended_where_it_can_be(one, tree(tmp_path, one.id))


def _names(names: set[str]) -> set[str]:
    return {name.lower().replace(" ", "_")[:12] for name in names}


def _mended_where_it_can_be(one: Assignment, nodes: Sequence[TreeNode]) -> None:
    rng = random.Random(f"0/{one.id}/{one.task}")
    slips = draw_mistakes(one.steps, APIS, 1.0, width=2, depth=12, rng=rng)
    hopeless = any(
        (slip.kind == "failing" and not slip.twin) or slip.kind == "unoffered"
        for slip in slips.values()
    )
    served = any(step.api for step in one.steps)
    if served and not hopeless:
        assert any(node.kind == "answer" for node in nodes), one


@given(
    st.lists(st.booleans(), min_size=1, max_size=5),
    st.integers(1, 3),
    st.integers(3, 30),
    st.integers(0, 999),
)
def test_mistakes_leave_room_to_be_mended(
    served: list[bool], width: int, depth: int, seed: int
) -> None:
    value = {"country": Value("Peru", "Peru")}
    steps = [ErrandStep("w", CAPITAL if one else "", value if one else {}) for one in served]
    slips = draw_mistakes(steps, APIS, 1.0, width=width, depth=depth, rng=random.Random(seed))
    loud = [slip for slip in slips.values() if slip.kind != "unoffered"]
    stays = sum(not slip.quits for slip in loud)
    assert not stays or needed_rounds(steps) + stays <= mistake_rounds(depth)
    assert width > 1 or not any(slip.quits for slip in loud)
    assert all(served[at] for at in slips)


def test_an_api_that_is_down_without_another_is_given_up(
    registry: Registry, tmp_path: Path
) -> None:
    report = solve(registry, tmp_path, [asked("Peru", fails=True)], oracle())
    assert report.gave_up == 1
    answer = read_answer(tmp_path / f"Peru_{METHOD}.json")
    assert (answer.win, answer.answer_generation.finish_type) == (False, "give_up")
    assert answer.answer_generation.valid_data
    assert any("give up" in node.thought for node in tree(tmp_path, "Peru"))


def test_a_task_that_nothing_serves_is_given_up_with_its_words(
    registry: Registry, tmp_path: Path
) -> None:
    step = ErrandStep("book a table for two", "", {})
    report = solve(registry, tmp_path, [Assignment("t", "Book a table for two", (step,))], oracle())
    assert report.gave_up == 1
    assert tree(tmp_path, "t")[1].thought == "book a table for two use nothing"


def test_apis_of_other_catalogs_are_played(registry: Registry, tmp_path: Path) -> None:
    orders = Api(
        id="Commerce/shop/order_status",
        category="Commerce",
        tool="Shop",
        name="Order Status",
        method="POST",
        required=(Parameter(name="order"),),
    )
    trains = orders.model_copy(
        update={"id": "Travel/rail/train", "tool": "Rail", "name": "Train", "category": "Travel"}
    )
    steps = (
        ErrandStep("where order 77 is", orders.id, {"order": Value("77", "77")}),
        ErrandStep("which train it is on", trains.id, {"order": Value("", "", "train_number")}),
    )
    found = []
    for name in ("a", "b"):
        one = Assignment("t", "Where is order 77 and which train is it on?", steps)
        report = solve(
            registry,
            tmp_path / name,
            [one],
            oracle(),
            {**APIS, orders.id: orders, trains.id: trains},
        )
        assert report.solved == 1
        first, second, end = tree(tmp_path / name, "t")[1:]
        assert "train_number" in first.observation
        assert str(second.arguments["order"]) in first.observation
        assert end.kind == "answer"
        found.append(files(tmp_path / name))
    assert found[0] == found[1]


def test_needs_become_tasks_over_every_api_in_turn() -> None:
    apis = [APIS[CAPITAL], APIS[CURRENCY]]
    found = list(islice(from_needs(apis, 3), 6))
    assert found == list(islice(from_needs(apis, 3), 6))
    assert len({one.id for one in found}) == 6
    assert {api for one in found[:2] for api in one.apis} == {CAPITAL, CURRENCY}
    assert list(from_needs([APIS[CAPITAL].model_copy(update={"id": "A/b/c"})], 0)) == []


def test_instructions_are_read_with_the_values_that_their_needs_state(tmp_path: Path) -> None:
    path = tmp_path / "instructions.jsonl"
    write_instructions(tuple(APIS.values()), path, rounds=1, seed=1)
    found = list(read_assignments(path, APIS))
    known = [one for one in found if not one.unknown]
    assert len(known) > len(found) / 3
    for one in known:
        for step in one.steps:
            required = {parameter.name for parameter in APIS[step.api].required}
            assert required <= step.arguments.keys()
    assert {one.unknown for one in read_assignments(path, {})} == {ELSEWHERE}


def test_tasks_with_their_calls_are_solved(registry: Registry, tmp_path: Path) -> None:
    assignments, left_out = fitting_assignments(read_assignments(TASKS, APIS), oracle(), 8)
    report = solve(registry, tmp_path, assignments, oracle())
    assert (report.solved, left_out) == (8, {})


def test_a_task_that_is_too_deep_is_left_out_with_the_reason() -> None:
    shallow = oracle(options=SolveOptions(width=2, depth=3))
    with pytest.raises(UsageError, match="depth"):
        fitting_assignments([asked("Peru")], shallow, None)
    assert shallow.unfit(asked("Peru")) == TOO_DEEP


def test_an_engine_that_fails_leaves_what_is_done_and_another_goes_on(
    registry: Registry, tmp_path: Path
) -> None:
    assignments = [asked("Peru"), asked("Kenya")]
    broken = EngineAnnotator(
        ScriptedEngine([call("Peru"), answer("Lima"), call("Kenya")]), TOOLLLAMA, OPTIONS
    )
    pool = LocalPool(Workplace(broken, registry, ["offline"], APIS).open, 1)
    with (
        pytest.raises(DataError, match="'Kenya'") as raised,
        AnswerFolder(tmp_path, METHOD, {"seed": 0}) as folder,
    ):
        asyncio.run(annotate(assignments, folder, broken.name, pool))
    assert "1 of 2 answers" in raised.value.message
    assert "goes on" in raised.value.hint
    before = files(tmp_path)
    assert list(before) == [f"Peru_{METHOD}.json"]
    whole = EngineAnnotator(ScriptedEngine([call("Kenya"), answer("Nairobi")]), TOOLLLAMA, OPTIONS)
    report = solve(registry, tmp_path, assignments, whole)
    assert (report.solved, report.there) == (2, 1)
    assert files(tmp_path).items() >= before.items()


def test_the_model_that_ships_annotates_and_says_what_it_gave_up(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "answers"
    words = ["annotate", "--tasks", TASKS, "--count", 3, "--teacher", "engine", "--out", out]
    done = run(*words, "--threads", "1", "--json")
    assert done.exit_code == 0, done.output
    told: dict[str, Any] = json.loads(done.stdout)
    assert told["solved"] + told["gave_up"] + told["failed"] == 3
    wins = [read_answer(path).win for path in out.glob("*.json")]
    assert (len(wins), sum(wins)) == (3, told["solved"])


def test_servers_annotate_several_tasks_at_once_and_may_be_others_after_a_stop(
    run: Run, tmp_path: Path
) -> None:
    out = tmp_path / "answers"
    words = ["annotate", "--errands", "--teacher", "engine", "--out", out, "--json"]
    with ModelServer([GIVE_UP]) as first, ModelServer([GIVE_UP]) as second:
        both = f"{first.url},{second.url}"
        done = run(*words, "--count", 6, "--workers", 6, "--model", both)
        assert done.exit_code == 0, done.output
        told: dict[str, Any] = json.loads(done.stdout)
        assert told["solved"] + told["gave_up"] + told["failed"] == told["tasks"] == 6
        assert first.requests
        assert second.requests
    with ModelServer([GIVE_UP]) as third:
        again = run(*words, "--count", 8, "--workers", 2, "--model", third.url)
        assert again.exit_code == 0, again.output
        assert json.loads(again.stdout)["there"] == 6
        assert third.requests


@pytest.mark.parametrize("text", ["[" * 100_000, '{"calls": ' + "[" * 100_000])
def test_tasks_that_are_nested_too_deeply_are_told(tmp_path: Path, text: str) -> None:
    path = tmp_path / "tasks.jsonl"
    path.write_text(text, "utf-8")
    with pytest.raises(DataError, match=r"tasks\.jsonl"):
        list(read_assignments(path, APIS))


def test_a_catalog_without_a_usable_api_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLSRV_DATA_DIR", str(tmp_path / "data"))
    call = CliRunner().invoke
    assert call(cli, ["catalog", "disable", "offline"]).exit_code == 0
    words = ["lab", "annotate", "--out", str(tmp_path / "answers")]
    refused = call(cli, words)
    assert refused.exit_code == 2
    assert "no enabled catalog" in refused.stderr
    unknown = call(cli, [*words, "--catalog", "nowhere"])
    assert unknown.exit_code == 2
    assert "nowhere" in unknown.stderr
    assert not (tmp_path / "answers").exists()


def test_tasks_that_no_api_here_serves_are_refused_with_the_reason(
    run: Run, tmp_path: Path
) -> None:
    path = tmp_path / "tasks.jsonl"
    path.write_text('{"query": "x", "relevant": ["A/b/c"], "needs": ["x"]}\n')
    refused = run("annotate", "--tasks", path, "--out", tmp_path / "answers")
    assert refused.exit_code == 2
    assert ELSEWHERE in refused.stderr


@pytest.mark.parametrize(
    ("words", "said_of"),
    [
        (("--tasks", "none.jsonl"), "none.jsonl"),
        (("--tasks", "none.jsonl", "--errands"), "--errands"),
        (("--teacher", "engine", "--workers", "2"), "one task at a time"),
        (("--model", "x.gguf"), "--teacher engine"),
        (("--errands", "--mistakes", "nan"), "--mistakes"),
        (("--errands", "--gpus", "inf"), "--gpus"),
    ],
)
def test_what_does_not_go_together_is_refused(
    run: Run, tmp_path: Path, words: tuple[str, ...], said_of: str
) -> None:
    refused = run("annotate", *words, "--out", tmp_path / "answers")
    assert refused.exit_code == 2
    assert said_of in refused.stderr
    assert "Traceback" not in refused.stderr


def test_annotating_shows_an_example(run: Run) -> None:
    assert "toolsrv lab annotate --" in run("annotate", "--help").stdout
