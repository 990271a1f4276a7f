"""Strategies side by side and first choices: the statistics, and the commands with the real model."""

from __future__ import annotations

import asyncio
import json
import math
import resource
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st
from tests.cells import run_cells
from tests.toolllama_replies import TOOLLLAMA, answer, call

from toolsrv.cli.main import cli
from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_lab.evaluation.cells import Cell, CellLog
from toolsrv_lab.evaluation.first_calls import ChoiceRequest, by_set, choose, first_call, usable
from toolsrv_lab.evaluation.result_log import ResultLog
from toolsrv_lab.evaluation.statistics import (
    mean,
    mean_difference,
    mean_in_unit,
    share,
    share_difference,
)
from toolsrv_lab.evaluation.strategies import by_kind, compare
from toolsrv_lab.retrieval.evaluation import estimate
from toolsrv_lab.retrieval.queries import Named, Query
from toolsrv_lab.solving import FaultyCaller, GoldCall, Task, Verdict, solve_one
from toolsrv_registry.api import Api
from toolsrv_registry.errors import BusyError, DataError, UsageError
from toolsrv_registry.functions import FunctionList
from toolsrv_registry.registry import Registry
from toolsrv_runtime.calls.transports import offline_transports
from toolsrv_runtime.contract.models import Engine
from toolsrv_runtime.engine.scripted import ScriptedEngine
from toolsrv_runtime.outcome import Usage
from toolsrv_runtime.solve import SolveOptions, Solver
from toolsrv_runtime.toolbench.toolllama import ToolllamaFormat

TASKS = Path(__file__).parents[1] / "runtime" / "data" / "tasks.jsonl"
CAPITAL = "Data/country_facts/capital_city"
CURRENCY = "Data/country_facts/national_currency"
APIS: Mapping[str, Api] = {api.id: api for api in load_offline_catalog().apis}
PERU, KENYA = (
    Task(
        id=country,
        kind="single",
        task=f"What is the capital of {country}?",
        calls=(GoldCall(api=CAPITAL, arguments={"country": country}, answer=("capital",)),),
    )
    for country in ("Peru", "Kenya")
)
Run = Callable[..., Result]


@pytest.fixture
def run(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("TOOLSRV_DATA_DIR", str(data_dir))
    return lambda *words: CliRunner().invoke(cli, ["lab", "eval", *words])


def verdict(
    name: str = "t",
    *,
    kind: str = "single",
    status: str = "answered",
    functions: bool = True,
    calls: bool = True,
    answer: bool = True,
    fails: bool = False,
    seconds: float = 1.0,
) -> Verdict:
    return Verdict(
        id=name,
        kind=kind,
        status=status,
        offered=True,
        right_functions=functions,
        right_calls=calls,
        right_answer=answer,
        answer="",
        calls=(),
        fails=fails,
        usage=Usage(seconds=seconds, model_calls=2, calls=1, generated_tokens=30),
    )


# ---------------------------------------------------------------- statistics
def test_a_paired_difference_is_newcombe_s() -> None:
    """36, 12, 2, 0 in his table II (1998): 0.2, 0.0569 to 0.3404."""
    pairs = [(True, True)] * 36 + [(True, False)] * 12 + [(False, True)] * 2
    found = share_difference(pairs)
    assert (found.pairs, found.value, found.low, found.high) == (50, 0.2, 0.0569, 0.3404)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40))
def test_a_paired_difference_turns_round_with_its_pairs(pairs: list[tuple[bool, bool]]) -> None:
    one = share_difference(pairs)
    other = share_difference([(b, a) for a, b in pairs])
    assert one.low is not None
    assert one.value is not None
    assert one.high is not None
    assert -1.0001 <= one.low <= one.value <= one.high <= 1.0001
    assert (other.value, other.low, other.high) == pytest.approx(
        (-one.value, -one.high, -one.low), abs=2e-4
    )


@given(st.lists(st.floats(0, 1000), min_size=2, max_size=30))
def test_a_mean_lies_in_its_interval(values: list[float]) -> None:
    found = mean(values)
    assert found.mean is not None
    assert found.low is not None
    assert found.high is not None
    slack = 1e-3 * max(values) + 1e-9
    assert found.low - slack <= found.mean <= found.high + slack
    assert found == mean(values)


@pytest.mark.parametrize("value", [0.0, 0.5, 1.0])
def test_equal_values_in_the_unit_interval_are_no_certainty(value: float) -> None:
    few, many = mean_in_unit([value] * 3), mean_in_unit([value] * 300)
    widths = []
    for one in (few, many):
        assert one.low is not None
        assert one.high is not None
        assert one.low <= value <= one.high
        widths.append(one.high - one.low)
    assert widths[0] > 0.5 > 10 * widths[1] / 3
    assert mean_in_unit([0.0, 1.0, 1.0]) == mean([0.0, 1.0, 1.0])
    assert estimate([value] * 3).low < 100 * value + 1e-9 < estimate([value] * 3).high + 1e-8


def test_nothing_has_no_figures_and_one_value_no_interval() -> None:
    assert mean([]).mean is None
    assert share_difference([]).value is None
    assert mean_difference([]).value is None
    assert math.isnan(share([]).rate)
    one = mean([3.0])
    assert (one.mean, one.low, one.high, one.p95) == (3.0, None, None, 3.0)
    assert mean_difference([(3.0, 1.0)]).value == 2.0


def test_verdicts_are_told_by_kind() -> None:
    found = by_kind(
        [
            verdict("a"),
            verdict("b", calls=False, answer=False),
            verdict("c", kind="two", functions=False, calls=False, answer=False, fails=True),
            verdict("d", kind="none", status="gave_up"),
            verdict("e", kind="none", answer=False),
        ]
    )
    assert list(found) == ["single", "two", "fails", "none", "all"]
    every = found["all"]
    shares = (every.right_functions, every.right_arguments, every.right_answer, every.solved)
    assert [(one.count, one.of) for one in shares] == [(2, 3), (1, 2), (2, 5), (2, 5)]
    assert (every.gave_up.count, every.gave_up.of) == (1, 2)
    assert (every.wrong_claims.count, every.wrong_claims.of) == (3, 5)
    assert (every.seconds.mean, every.tokens.p95, every.replies.mean) == (1.0, 30.0, 2.0)
    assert found["two"].seconds.low is None


def test_strategies_are_compared_on_the_tasks_that_both_have() -> None:
    found = compare(
        {
            "dfsdt": [verdict("a", seconds=3), verdict("b", seconds=3), verdict("c")],
            "react": [verdict("b"), verdict("a", answer=False)],
        }
    )
    by_measure = {one.measure: one.difference for one in found}
    assert (by_measure["solved"].pairs, by_measure["solved"].value) == (2, 0.5)
    assert (by_measure["wrong_claims"].value, by_measure["seconds"].value) == (-0.5, 2.0)
    assert compare({"dfsdt": [verdict()]}) == []


# ---------------------------------------------------------------- the log of verdicts
REACT, COT = (Cell("m", "hash", name) for name in ("react", "cot"))


@contextmanager
def opened(path: Path | None, settings: dict[str, Any]) -> Iterator[CellLog[Verdict]]:
    with ResultLog(path, settings) as log:
        yield CellLog(log, Verdict)


def test_what_a_kill_cut_off_is_dropped_and_the_rest_kept(tmp_path: Path) -> None:
    path = tmp_path / "verdicts.jsonl"
    with opened(path, {"seed": 1}) as log:
        log.add(COT, "a", verdict("a"))
    with path.open("ab") as file:
        file.write(b'{"strategy": "cot", "verd')
    with opened(path, {"seed": 1}) as log:
        assert len(log) == 1
        log.add(REACT, "a", verdict("a", answer=False))
    with opened(path, {"seed": 1}) as log:
        assert log.get(COT, "a") == verdict("a")
        assert log.of(REACT, ["b", "a"]) == [verdict("a", answer=False)]


def test_a_log_of_other_settings_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "verdicts.jsonl"
    ResultLog(path, {"seed": 1, "model": "x"}).close()
    with pytest.raises(DataError, match="seed"):
        ResultLog(path, {"seed": 2, "model": "x"})


def test_only_one_evaluation_writes_a_log(tmp_path: Path) -> None:
    with ResultLog(tmp_path / "v.jsonl", {}), pytest.raises(BusyError):
        ResultLog(tmp_path / "v.jsonl", {})


@pytest.mark.parametrize(
    "text",
    [
        "[]\n",
        "no\n",
        '{"a": 1}\n',
        '{"settings": {}}\n{"strategy": "x"}\n',
        '{"settings": {}}\n' + json.dumps({"result": verdict("a").model_dump()}) + "\n",
    ],
    ids=["list", "no JSON", "no settings", "no result", "no cell"],
)
def test_another_file_is_no_log_and_stays(tmp_path: Path, text: str) -> None:
    path = tmp_path / "other.jsonl"
    path.write_text(text)
    with pytest.raises(DataError, match=r"other\.jsonl"), opened(path, {}):
        pass
    assert path.read_text() == text


def test_a_log_needs_a_place(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        ResultLog(tmp_path / "none" / "v.jsonl", {})
    with pytest.raises(UsageError):
        ResultLog(tmp_path, {})


# ---------------------------------------------------------------- an engine that fails
def solve(registry: Registry, engine: Engine, tasks: Sequence[Task], log: CellLog[Verdict]) -> None:
    async def main() -> None:
        async with FaultyCaller(transports=offline_transports()) as caller:
            solver = Solver(
                retriever=registry.retriever, engine=engine, profile=TOOLLLAMA, caller=caller
            )

            async def one(task: Task, options: SolveOptions) -> Verdict:
                return await solve_one(
                    task, solver=solver, caller=caller, apis=APIS, options=options
                )

            cells = {
                REACT: SolveOptions(strategy="react"),
                COT: SolveOptions(strategy="cot"),
            }
            await run_cells({task.id: task for task in tasks}, cells, log, one)

    asyncio.run(main())


def test_an_engine_that_fails_leaves_what_was_judged_and_another_goes_on(
    registry: Registry, tmp_path: Path
) -> None:
    path = tmp_path / "verdicts.jsonl"
    script = [call("Peru"), answer("Lima")] * 2 + [call("Kenya")]
    with opened(path, {}) as log, pytest.raises(DataError, match="Kenya") as caught:
        solve(registry, ScriptedEngine(script), [PERU, KENYA], log)
    assert "2 results are kept" in caught.value.hint
    with opened(path, {}) as log:
        engine = ScriptedEngine([call("Kenya"), answer("Nairobi")] * 2)
        solve(registry, engine, [PERU, KENYA], log)
        assert len(engine.prompts) == 4
        for cell in (REACT, COT):
            assert all(one.solved for one in log.of(cell, ["Peru", "Kenya"]))


def test_arguments_that_no_api_takes_are_the_task_s_fault(registry: Registry) -> None:
    wrong = PERU.model_copy(update={"calls": (GoldCall(api=CAPITAL, arguments={"planet": "x"}),)})
    with opened(None, {}) as log, pytest.raises(DataError, match="planet"):
        solve(registry, ScriptedEngine([]), [wrong], log)


def test_a_disk_that_is_full_in_the_middle_ends_the_run_and_it_goes_on_later(
    tmp_path: Path,
) -> None:
    path, solved = tmp_path / "v.jsonl", list[str]()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    async def one(task: Task, _options: SolveOptions) -> Verdict:
        solved.append(task.id)
        if task.id == "c":
            resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 20, before[1]))
        return verdict(task.id)

    tasks = {name: PERU.model_copy(update={"id": name}) for name in "abcd"}
    cells = {REACT: SolveOptions(strategy="react")}
    try:
        with opened(path, {}) as log, pytest.raises(DataError, match=r"v\.jsonl") as caught:
            asyncio.run(run_cells(tasks, cells, log, one))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "free some space; the same command goes on" in caught.value.hint
    assert solved == ["a", "b", "c"]
    with opened(path, {}) as log:
        asyncio.run(run_cells({name: tasks[name] for name in "abd"}, cells, log, one))
        assert [one.id for one in log.of(REACT, "abcd")] == ["a", "b", "d"]
    assert solved == ["a", "b", "c", "d"]


# ---------------------------------------------------------------- lab eval solve
def test_strategies_are_shown_side_by_side_and_kept(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "verdicts.jsonl"
    words = ["solve", "--tasks", str(TASKS), "--limit", "2", "--out", str(out), "--threads", "1"]
    shown = run(*words)
    assert shown.exit_code == 0, shown.output
    for word in ("dfsdt", "react", "cot", "functions", "wrong claim", "dfsdt - react", "seconds"):
        assert word in shown.stdout
    assert max(len(line.rstrip()) for line in shown.stdout.splitlines()) <= 120
    lines = out.read_text("utf-8").splitlines()
    assert len(lines) == 1 + 2 * 3

    out.write_text("".join(f"{line}\n" for line in lines[:4]), "utf-8")
    again = run(*words, "--json")
    assert again.exit_code == 0, again.output
    found: dict[str, Any] = json.loads(again.stdout)
    assert (found["tasks"], list(found["strategies"])) == (2, ["dfsdt", "react", "cot"])
    every = found["strategies"]["cot"]["all"]
    assert every["tasks"] == 2
    assert 0 <= every["solved"]["low"] <= every["solved"]["high"] <= 1
    assert {one["measure"] for one in found["differences"]} >= {"solved", "tokens", "seconds"}
    assert out.read_text("utf-8").splitlines()[:4] == lines[:4]

    other = run(*words, "--seed", "7")
    assert other.exit_code == 1
    assert "other settings: seed" in other.stderr


def test_a_calculator_is_found_for_a_function_that_is_down(run: Run, tmp_path: Path) -> None:
    task = Task(
        id="share",
        kind="two",
        task="How much is 35 percent of 460, and what is the capital of Peru?",
        calls=(
            GoldCall(
                api="Education/math_desk/calculate", arguments={"expression": "460 * 35 / 100"}
            ),
            GoldCall(api=CAPITAL, arguments={"country": "Peru"}),
        ),
        fails=("Education/math_desk/percentage_of_number",),
    )
    path = tmp_path / "tasks.jsonl"
    path.write_text(task.model_dump_json() + "\n", "utf-8")
    shown = run("solve", "--tasks", str(path), "--strategy", "dfsdt", "--threads", "1", "--json")
    assert shown.exit_code == 0, shown.output
    found = json.loads(shown.stdout)["strategies"]["dfsdt"]["all"]
    assert found["solved"]["count"] == 1


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "no tasks"),
        ("{}\n", "line 1"),
        ('{"id": "x", "kind": "single", "task": "x", "calls": [{"api": "A/b/c"}]}\n', "A/b/c"),
        ('{"id": "x", "kind": "none", "task": "x", "calls": []}\n' * 2, "two tasks"),
    ],
    ids=["empty", "bad line", "unknown API", "twice"],
)
def test_a_file_that_holds_no_usable_tasks_is_refused(
    run: Run, tmp_path: Path, text: str, word: str
) -> None:
    path = tmp_path / "tasks.jsonl"
    path.write_text(text)
    refused = run("solve", "--tasks", str(path))
    assert refused.exit_code in (1, 2)
    assert word in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_file_that_is_not_there_is_named(run: Run, tmp_path: Path) -> None:
    refused = run("solve", "--tasks", str(tmp_path / "none.jsonl"))
    assert refused.exit_code == 2
    assert "none.jsonl" in refused.stderr


# ---------------------------------------------------------------- lab eval choice
def asked(text: str, listed: Sequence[str], relevant: Sequence[str]) -> Query:
    return Query(
        query_id=text,
        query=text,
        relevant=tuple(Named(id=one) for one in relevant),
        candidates=tuple(Named(id=one) for one in listed),
    )


def test_queries_that_cannot_be_asked_are_counted_with_the_reason() -> None:
    queries = [
        asked("a", [CAPITAL, CURRENCY, "X/y/z"], [CAPITAL]),
        asked("b", [], [CAPITAL]),
        asked("c", [CURRENCY, "X/y/z"], ["X/y/z"]),
    ]
    found, left_out = usable(queries, APIS)
    assert [[api.id for api in one.listed] for one in found] == [[CAPITAL, CURRENCY]]
    assert list(left_out.values()) == [1, 1]


def test_the_first_call_of_a_reply_counts_and_a_finish_is_none() -> None:
    apis = [APIS[CURRENCY], APIS[CAPITAL]]
    assert (
        first_call(ToolllamaFormat(ScriptedEngine([call("Peru")]), TOOLLLAMA), "x", apis) == CAPITAL
    )
    assert first_call(ToolllamaFormat(ScriptedEngine([answer("Lima")]), TOOLLLAMA), "x", apis) == ""
    assert first_call(ToolllamaFormat(ScriptedEngine(["Thought: x"]), TOOLLLAMA), "x", apis) == ""


def test_a_long_list_is_cut_by_the_retriever_and_nothing_is_added() -> None:
    listed = tuple(APIS.values())[:12]
    one = ChoiceRequest(asked("q", [], []), listed, frozenset({listed[11].id}))
    engine = ScriptedEngine([answer("Lima")], loop=True)
    form = ToolllamaFormat(engine, TOOLLLAMA)
    found = choose(
        [one], helped=form, alone=form, rank=lambda _text, _pool: [(a.id, 1.0) for a in listed]
    )
    assert (found[0].listed, found[0].offered, found[0].first) == (12, 9, listed[0].id)
    names = [function.name for function in FunctionList(listed)]
    assert [name in engine.prompts[0] for name in (names[8], names[11])] == [True, False]
    figures = by_set(found)
    assert figures["all sets"].chance.mean == pytest.approx(1 / 12, abs=1e-4)
    assert figures["all sets"].quiet_alone.count == 1


def test_choices_are_counted_with_the_model_that_ships(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "queries.jsonl"
    listed = [CAPITAL, CURRENCY, "Science/unit_converter/convert_units"]
    queries = [
        asked("What is the capital of Peru?", listed, [CAPITAL]),
        asked("Which money do they use in Kenya?", listed, [CURRENCY]),
        asked("Anything", [], [CAPITAL]),
    ]
    path.write_text("".join(f"{one.model_dump_json()}\n" for one in queries))
    shown = run("choice", "--queries", str(path), "--threads", "1")
    assert shown.exit_code == 0, shown.output
    assert "model alone" in shown.stdout
    assert "1 of 3" in shown.stderr
    found = json.loads(run("choice", "--queries", str(path), "--limit", "1", "--json").stdout)
    every = found["sets"]["all sets"]
    assert (every["queries"], every["retriever"]["of"]) == (1, 1)
    assert every["chance"]["mean"] == pytest.approx(1 / 3, abs=1e-3)
    assert found["choices"][0]["first"] in listed


def test_queries_of_a_catalog_that_is_not_there_are_refused(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "queries.jsonl"
    path.write_text(asked("x", ["X/y/z"], ["X/y/z"]).model_dump_json())
    refused = run("choice", "--queries", str(path))
    assert refused.exit_code == 2
    assert "enable" in refused.stderr


@pytest.mark.parametrize("name", ["solve", "choice"])
def test_each_evaluation_shows_an_example(run: Run, name: str) -> None:
    assert f"toolsrv lab eval {name} --" in run(name, "--help").stdout
