"""Models, strategies and aids side by side: cells, options, figures, queries, and the command."""

from __future__ import annotations

import asyncio
import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest
from click.testing import CliRunner, Result
from pydantic import BaseModel, Field
from tests.cells import run_cells

from toolsrv.cli.laboratory.evaluation import identity, listed
from toolsrv.cli.main import cli
from toolsrv.settings import load
from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_lab.evaluation.cells import Cell, CellLog, make_options
from toolsrv_lab.evaluation.result_log import ResultLog
from toolsrv_lab.evaluation.statistics import draw_shares, share
from toolsrv_lab.evaluation.strategies import by_stratum, failed_task
from toolsrv_lab.evaluation.toolbench_queries import by_set, judge_query, usable_queries
from toolsrv_lab.retrieval.queries import Named, Query
from toolsrv_lab.solving import Task, Verdict
from toolsrv_registry.errors import DataError, ToolsrvError, UsageError
from toolsrv_runtime.outcome import Evidence, Limits, Outcome, Usage
from toolsrv_runtime.solve import SolveOptions

TASKS = Path(__file__).parents[1] / "runtime" / "data" / "tasks.jsonl"
CAPITAL = "Data/country_facts/capital_city"
CURRENCY = "Data/country_facts/national_currency"
APIS = {api.id: api for api in load_offline_catalog().apis}
DFSDT, REACT = Cell("m", "hash", "dfsdt"), Cell("m", "hash", "react")
Run = Callable[..., Result]


def verdict(name: str = "t", *, unsupported: tuple[str, ...] = (), right: bool = True) -> Verdict:
    return Verdict(
        id=name,
        kind="single",
        status="answered",
        offered=True,
        right_calls=right,
        right_answer=right,
        answer="",
        calls=(),
        usage=Usage(seconds=2.0, model_calls=2, calls=1, generated_tokens=30, evaluated_tokens=90),
        unsupported=unsupported,
    )


def task(name: str) -> Task:
    return Task(id=name, kind="single", task="x", calls=())


# ---------------------------------------------------------------- cells
def test_a_killed_run_goes_on_with_what_is_missing(tmp_path: Path) -> None:
    path, solved = tmp_path / "results.jsonl", list[tuple[str, str]]()

    async def solve(one: Task, options: SolveOptions) -> Verdict:
        if one.id == "b" and options.strategy == "react" and len(solved) < 4:
            raise ToolsrvError("the engine is gone", hint="start it")
        solved.append((one.id, options.strategy))
        return verdict(one.id)

    def run(log: ResultLog) -> tuple[CellLog[Verdict], list[bool]]:
        kept, steps = CellLog(log, Verdict), list[bool]()
        cells = {DFSDT: SolveOptions(), REACT: SolveOptions(strategy="react")}
        tasks = {name: task(name) for name in "ab"}
        asyncio.run(run_cells(tasks, cells, kept, solve, progress=steps.append))
        return kept, steps

    with ResultLog(path, {}) as log, pytest.raises(DataError, match="'b' with react") as caught:
        run(log)
    assert "start it; 2 results are kept" in caught.value.hint
    assert solved == [("a", "dfsdt"), ("a", "react")]  # and at b react came first
    solved.extend([("", "")] * 2)
    with path.open("ab") as file:
        file.write(b'{"model": "m", "identi')
    with ResultLog(path, {}) as log:
        kept, steps = run(log)
    assert steps == [False, False, True, True]
    assert solved[4:] == [("b", "react"), ("b", "dfsdt")]
    assert [one.id for one in kept.of(REACT, ["b", "a", "c"])] == ["b", "a"]


def test_a_fault_may_count_as_a_failed_solve() -> None:
    async def solve(_one: Task, _options: SolveOptions) -> Verdict:
        raise ToolsrvError("too long")

    with ResultLog(None, {}) as log:
        kept = CellLog(log, Verdict)
        asyncio.run(
            run_cells({"a": task("a")}, {DFSDT: SolveOptions()}, kept, solve, on_fault=failed_task)
        )
        found = kept.get(DFSDT, "a")
    assert found is not None
    assert (found.status, found.answer, found.solved) == ("failed", "too long", False)


def test_another_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text('{"settings": {}}\n{"model": "m", "result": {}}\n', "utf-8")
    with ResultLog(path, {}) as log, pytest.raises(DataError, match="line 2: not a result"):
        CellLog(log, Verdict)


def test_a_text_with_unicode_line_ends_is_one_result(tmp_path: Path) -> None:
    path, entry = tmp_path / "results.jsonl", {"reply": "a\u2028b\x85c\u2029"}
    for kept in (1, 2):
        with ResultLog(path, {}) as log:
            log.add(entry)
            assert list(log) == [entry] * kept


# ---------------------------------------------------------------- options
class WithoutAids(BaseModel):
    strategy: Literal["dfsdt", "react"] = "dfsdt"
    width: int = Field(default=2, le=8)
    limits: Limits = Limits()


class WithAids(WithoutAids):
    aids: frozenset[str] = frozenset({"coverage"})


def test_any_option_of_a_solve_can_be_set() -> None:
    given = ["width=3", "limits.seconds=7.5", "category=Music", "verify=true"]
    found = make_options(SolveOptions(), "cot", given=given)
    assert (found.strategy, found.width, found.limits.seconds) == ("cot", 3, 7.5)
    assert (found.category, found.verify) == ("Music", True)


def test_aids_are_those_of_the_options_or_a_set() -> None:
    base = WithAids()
    found = [make_options(base, "react", aids) for aids in ("default", "none", "check+exclude")]
    assert [sorted(one.model_dump()["aids"]) for one in found] == [
        ["coverage"],
        [],
        ["check", "exclude"],
    ]


@pytest.mark.parametrize(
    ("strategy", "aids", "given", "word"),
    [
        ("bfs", "default", [], "strategy"),
        ("dfsdt", "coverage+none", [], "aids"),
        ("dfsdt", "default", ["width"], "nothing"),
        ("dfsdt", "default", ["girth=3"], "'girth'"),
        ("dfsdt", "default", ["width.x=3"], "no parts"),
        ("dfsdt", "default", ["limits.x=3"], "'x'"),
        ("dfsdt", "default", ["width=99"], "width"),
    ],
)
def test_what_no_option_takes_is_refused(
    strategy: str, aids: str, given: list[str], word: str
) -> None:
    with pytest.raises(UsageError, match=word):
        make_options(WithoutAids(), strategy, aids, given)


def test_names_are_listed_once() -> None:
    assert listed(["a,b", " b , c", ""]) == ["a", "b", "c"]
    assert listed([]) == []
    with pytest.raises(UsageError, match="names nothing"):
        listed([" ,"])


def test_a_model_is_known_by_its_file_s_content_or_its_address(tmp_path: Path) -> None:
    one, same = tmp_path / "one.gguf", tmp_path / "same.gguf"
    for path in (one, same):
        path.write_bytes(b"GGUF")
    names = [
        identity(load({"data_dir": str(tmp_path), "model": str(model)}).settings)
        for model in (one, same, "nano", "http://localhost:8000/v1")
    ]
    assert [name for name, _ in names] == ["one", "same", "nano", "http://localhost:8000/v1"]
    assert names[0][1] == names[1][1] != names[2][1]


# ---------------------------------------------------------------- figures
def test_verdicts_are_told_with_statuses_claims_and_costs() -> None:
    found = by_stratum([verdict("a", unsupported=("7",)), verdict("b", right=False)])["all"]
    assert (found.solved.count, found.wrong_claims.count, found.wrong_answers.count) == (1, 1, 1)
    assert found.statuses == {"answered": 2}
    assert (found.seconds.mean, found.generated.mean, found.evaluated.mean) == (2.0, 30.0, 90.0)


def test_shares_are_drawn(tmp_path: Path) -> None:
    shares = {"a": {"single": share([True, False]), "none": share([])}, "b": {"two": share([True])}}
    path = tmp_path / "solved.svg"
    if importlib.util.find_spec("matplotlib") is None:
        with pytest.raises(UsageError, match="matplotlib"):
            draw_shares(shares, path, title="t")
        return
    draw_shares(shares, path, title="t", marks={"two": 0.5})
    first = path.read_bytes()
    assert b"<svg" in first
    draw_shares(shares, path, title="t", marks={"two": 0.5})
    assert path.read_bytes() == first


# ---------------------------------------------------------------- queries
def query(name: str, *needed: str, text: str = "The capital of Peru, please") -> Query:
    return Query(
        query_id=name, query=text, set="s", relevant=tuple(Named(id=one) for one in needed)
    )


def called(api: str, response: Any, status: int = 200, **arguments: Any) -> Evidence:
    return Evidence(
        node=1,
        api_id=api,
        function="f",
        arguments=arguments,
        status=status,
        response=response,
        source="simulated",
        seconds=0.0,
        used=True,
    )


def outcome(*evidence: Evidence) -> Outcome:
    return Outcome(
        task="t",
        status="answered",
        answer="a",
        reason="",
        evidence=evidence,
        candidates=(CAPITAL, CURRENCY),
        tree=(),
        usage=Usage(seconds=1.0),
        limits=Limits(),
        strategy="dfsdt",
        model="m",
        format="chat",
        seed=0,
        versions={},
    )


def test_values_of_the_query_and_of_earlier_results_are_not_invented() -> None:
    made = [
        called(CAPITAL, {"continent": "Asia", "n": 12}, country="peru"),
        called(CURRENCY, {}, country="Asia", flag=True, none=None, count=["12", "Kenya"]),
    ]
    found = judge_query(query("q", CAPITAL, CURRENCY), outcome(*made), APIS)
    assert (found.arguments, found.invented) == (4, ("Kenya",))
    assert found.needed_called
    assert found.first_relevant
    later = judge_query(query("q", CAPITAL, CURRENCY), outcome(*reversed(made)), APIS)
    assert later.invented == ("Asia", "12", "Kenya")


def test_needed_apis_must_answer_and_the_first_call_is_one_of_them() -> None:
    bad = called(CAPITAL, {}, status=500, country="Peru")
    found = judge_query(query("q", CAPITAL), outcome(called(CURRENCY, {}), bad), APIS)
    assert not found.needed_called
    assert not found.first_relevant
    figures = by_set([found, judge_query(query("r", CAPITAL), outcome(), APIS)])["all"]
    assert (figures.needed_called.of, figures.with_invented.of, figures.finished.count) == (2, 1, 2)


def test_queries_without_known_apis_are_left_out_and_counted() -> None:
    found, out = usable_queries(
        [query("a", CAPITAL), query("b"), query("c", CAPITAL, "X/y/z")], APIS
    )
    assert [one.query_id for one in found] == ["a"]
    assert list(out.values()) == [1, 1]


# ---------------------------------------------------------------- the command
@pytest.fixture
def run(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("TOOLSRV_DATA_DIR", str(data_dir))
    words = ["lab", "eval", "models", "--threads", "1"]
    return lambda *more: CliRunner().invoke(cli, [*words, *map(str, more)])


def test_cells_are_shown_kept_and_gone_on_with(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ["--tasks", TASKS, "--strategies", "dfsdt,react", "--limit", "2", "--out", out]
    shown = run(*words)
    assert shown.exit_code == 0, shown.output
    for text in ("nano", "react", "solved", "unsupported", "answered", "nano: dfsdt"):
        assert text in shown.stdout
    assert "left" in shown.stderr or "4 of 4" in shown.stderr
    log = out / "results.jsonl"
    lines = log.read_text("utf-8").splitlines()
    assert len(lines) == 1 + 2 * 2
    log.write_text("".join(f"{line}\n" for line in lines[:4]), "utf-8")
    again = run(*words, "--json")
    assert again.exit_code == 0, again.output
    report = json.loads(again.stdout)
    assert report == json.loads((out / "report.json").read_text("utf-8"))
    assert [cell["strata"]["all"]["tasks"] for cell in report["cells"]] == [2, 2]
    assert log.read_text("utf-8").splitlines()[:4] == lines[:4]
    other = run(*words, "--set", "width=3")
    assert other.exit_code == 1
    assert "other settings" in other.stderr


def test_queries_get_simulated_responses(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "queries.jsonl"
    rows = [query("1", CAPITAL, text="What is the capital of Peru?"), query("2", "X/y/z")]
    path.write_text("".join(f"{one.model_dump_json()}\n" for one in rows), "utf-8")
    shown = run("--tasks", path, "--json")
    assert shown.exit_code == 0, shown.output
    report = json.loads(shown.stdout)
    assert (report["count"], list(report["left_out"].values())) == (1, [1])
    assert report["settings"]["simulate"] == "schema"
    figures = report["cells"][0]["sets"]["all"]
    assert (figures["needed_called"]["count"], figures["first_relevant"]["count"]) == (1, 1)
    assert figures["invented_arguments"]["count"] == 0


PAYMENTS = {
    "openapi": "3.0.0",
    "info": {"title": "Payments", "version": "1"},
    "servers": [{"url": "https://pay.example"}],
    "paths": {
        "/payments": {
            "post": {
                "operationId": "send_payment",
                "summary": "Send a payment of an amount of money to a person",
                "parameters": [
                    {"name": name, "in": "query", "required": True, "schema": {"type": "string"}}
                    for name in ("amount", "person")
                ],
                "responses": {"200": {"description": "sent"}},
            }
        }
    },
}


def test_queries_may_be_served_by_what_changes_something(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLSRV_DATA_DIR", str(tmp_path / "data"))
    document, script = tmp_path / "payments.json", tmp_path / "script.json"
    document.write_text(json.dumps(PAYMENTS), "utf-8")
    imported = CliRunner().invoke(cli, ["catalog", "import", str(document), "--no-index", "--json"])
    assert imported.exit_code == 0, imported.output
    shown = CliRunner().invoke(cli, ["search", "send a payment", "--json"])
    api = json.loads(shown.stdout)["hits"][0]["id"]
    call = {
        "thought": "",
        "function": "send_payment_for_payments",
        "arguments": {"amount": "20", "person": "Ana"},
    }
    script.write_text(json.dumps({"replies": [call, "Sent."], "loop": True}), "utf-8")
    path = tmp_path / "queries.jsonl"
    path.write_text(query("1", api, text="Send a payment of 20 to Ana").model_dump_json(), "utf-8")
    words = [
        "lab",
        "eval",
        "models",
        "--models",
        f"scripted:{script}",
        "--tasks",
        str(path),
        "--json",
    ]
    shown = CliRunner().invoke(cli, words)
    assert shown.exit_code == 0, shown.output
    figures = json.loads(shown.stdout)["cells"][0]["sets"]["all"]
    assert figures["needed_called"]["count"] == 1


@pytest.mark.parametrize(
    ("words", "word"),
    [
        (["--models", "nano", "--models", "nano,nano"], ""),
        (["--strategies", "bfs"], "strategy"),
        (["--set", "girth=1"], "girth"),
        (["--models", "none.gguf"], "none.gguf"),
    ],
)
def test_what_cannot_be_evaluated_is_refused_at_once(run: Run, words: list[str], word: str) -> None:
    refused = run("--tasks", TASKS, "--limit", "1", *words)
    assert refused.exit_code in ((0,) if not word else (1, 2)), refused.output
    assert word in refused.stderr
