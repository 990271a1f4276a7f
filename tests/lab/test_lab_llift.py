"""Use before initialisation: cases as a world, the tool loop, figures, the command."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from toolsrv.cli.main import cli
from toolsrv_lab.evaluation import llift
from toolsrv_lab.evaluation.llift import LliftResult
from toolsrv_lab.evaluation.llift_cases import Case, CaseWorld, read_cases, shipped_cases
from toolsrv_registry.errors import DataError, NotFoundError, UsageError
from toolsrv_runtime.contract.models import ChatRequest, ToolCall
from toolsrv_runtime.models.scripted import ScriptedChat, ScriptedReply, load_script
from toolsrv_runtime.options import SolveOptions
from toolsrv_runtime.outcome import Usage
from toolsrv_runtime.profiles import Profile
from toolsrv_runtime.solve import Solver

PROFILE = Profile(name="scripted", format="remote", context=8192)
CASE: dict[str, Any] = {
    "id": "x1",
    "function": "top",
    "variable": "n",
    "use": "return n;",
    "prelude": "int read_n(int *n);",
    "code": {
        "top": "int top(void)\n{\n\tint n;\n\n\tread_n(&n);\n\treturn n;\n}",
        "read_n": "int read_n(int *n)\n{\n\tif (closed)\n\t\treturn -1;\n\t*n = 3;\n\treturn 0;\n}",
    },
    "label": "before",
    "needs": ["read_n"],
}


class Analyst:
    """A scripted model that reads a source, answers and names the verdict of its answer."""

    def __init__(self, answer: str, verdict: str) -> None:
        self.chat = ScriptedChat(self._reply)
        self._answer, self._verdict = answer, verdict

    def _reply(self, request: ChatRequest) -> ScriptedReply:
        names = {one.name for one in request.tools}
        if names == {"verdict"}:
            return ToolCall("verdict", {"verdict": self._verdict})
        read = any("*n = 3" in one.text for one in request.messages)
        source = next((one for one in request.expected.names if "read_n" in one), "")
        return ToolCall(source) if source and not read else self._answer


def solved(analyst: Analyst, row: str = "simple") -> LliftResult:
    case = Case.model_validate(CASE)
    world = CaseWorld(case)
    solver = Solver(retriever=world, engine=analyst.chat, profile=PROFILE, caller=world)
    options = llift.options_of(SolveOptions(strategy="react"), row)
    return asyncio.run(
        llift.solve_case(case, 0, options, solver=solver, world=world, model=analyst.chat)
    )


def result(number: int, label: str, verdict: str, run: int = 0) -> LliftResult:
    return LliftResult.model_validate(
        {
            "id": f"c{number}",
            "run": run,
            "label": label,
            "verdict": verdict,
            "status": "answered",
            "answer": "",
            "asked": ("f",),
            "needs": ("f", "g"),
            "usage": Usage(),
        }
    )


def test_a_source_is_read_in_the_tool_loop_and_the_answer_has_a_verdict() -> None:
    analyst = Analyst("before: read_n stores nothing when it is closed.", "before")
    found = solved(analyst)
    assert (found.verdict, found.asked, found.status) == ("before", ("read_n",), "answered")
    assert found.right
    first = analyst.chat.requests[0]
    text = "\n".join(one.text for one in first.messages)
    assert "int top(void)" in text
    assert "*n = 3" not in text  # served on request alone


def test_an_answer_without_a_verdict_is_undecided() -> None:
    assert solved(Analyst("It depends.", "none")).verdict == "none"


def test_elements_are_added_one_by_one() -> None:
    rows = llift.rows([])
    assert rows[:3] == ["simple", "constraints", "constraints+progressive"]
    assert len(rows) == 6
    base = SolveOptions(seed=3)
    simple = llift.options_of(base, rows[0])
    assert (simple.switches, simple.votes, simple.aids) == (frozenset(), 1, frozenset())
    every = llift.options_of(base, rows[-1])
    assert sorted(every.switches or ()) == ["constraints", "plan", "progressive", "self-check"]
    assert every.votes == llift.VOTE_SIZE
    with pytest.raises(UsageError, match="no element 'luck'"):
        llift.rows(["constraints+luck"])
    with pytest.raises(UsageError):
        llift.rows(["simple+plan"])


def test_figures_count_the_first_run_and_equal_verdicts() -> None:
    first = [
        result(1, "before", "before"),
        result(2, "before", "safe"),
        result(3, "before", "none"),
        result(4, "safe", "safe"),
        result(5, "safe", "before"),
        result(6, "safe", "none"),
    ]
    again = [one.model_copy(update={"run": 1}) for one in first[:5]]
    again[3] = again[3].model_copy(update={"verdict": "before"})
    found = llift.figures([*first, *again])
    counts = found.true_positives, found.false_positives, found.true_negatives
    assert (*counts, found.false_negatives) == (1, 1, 1, 2)
    assert (found.precision.count, found.precision.of) == (1, 2)
    assert (found.recall.count, found.recall.of) == (1, 3)
    assert (found.accuracy.count, found.accuracy.of) == (2, 6)
    assert found.f1 == 0.4  # 2 * 1 / (2 + 3)
    assert (found.consistent.count, found.consistent.of) == (4, 5)
    assert found.undecided.count == 2
    assert found.needed_read.rate == 0.5


def test_the_shipped_cases_are_whole() -> None:
    cases = shipped_cases()
    assert len(cases) == 40
    assert sum(one.label == "before" for one in cases) == 13
    for one in cases:
        assert set(one.needs) <= {api.name for api in one.apis}
        assert len({api.id for api in one.apis}) == len(one.code) - 1
        assert one.asked([api.id for api in one.apis]) == tuple(api.name for api in one.apis)


def test_cases_of_ones_own_are_read_and_bad_ones_named(tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text(json.dumps(CASE) + "\n")
    assert [one.id for one in read_cases(path)] == ["x1"]
    path.write_text(json.dumps(CASE | {"needs": ["gone"]}) + "\n")
    with pytest.raises(DataError, match=r"line 1, the whole: .*lacks gone"):
        read_cases(path)
    path.write_text(json.dumps(CASE) + "\n" + json.dumps(CASE) + "\n")
    with pytest.raises(DataError, match="an id twice"):
        read_cases(path)
    path.write_text("{")
    with pytest.raises(DataError, match="not JSON"):
        read_cases(path)
    with pytest.raises(NotFoundError):
        read_cases(tmp_path / "nothing")


# ---------------------------------------------------------------- the command
def invoke(monkeypatch: pytest.MonkeyPatch, folder: Path, analyst: Analyst, *words: str) -> Result:
    monkeypatch.setenv("TOOLSRV_DATA_DIR", str(folder / "data"))
    monkeypatch.setattr("toolsrv.workbench.load_model", lambda _settings: (analyst.chat, PROFILE))
    (folder / "script.json").write_text('{"replies": ["x"]}')
    cases = folder / "cases.jsonl"
    safe = CASE | {"id": "x2", "label": "safe"}
    cases.write_text(json.dumps(CASE) + "\n" + json.dumps(safe) + "\n")
    given = ["--models", f"scripted:{folder / 'script.json'}", "--cases", str(cases)]
    return CliRunner().invoke(cli, ["lab", "eval", "llift", *given, *words])


def test_the_command_compares_elements_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["--elements", "simple,self-check", "--out", str(tmp_path / "out")]
    analyst = Analyst("before: read_n may store nothing.", "before")
    shown = invoke(monkeypatch, tmp_path, analyst, *words)
    assert shown.exit_code == 0, shown.output
    assert "self-check" in shown.stdout
    report = json.loads((tmp_path / "out" / "report.json").read_text("utf-8"))
    assert [one["elements"] for one in report["cells"]] == ["simple", "self-check"]
    for cell in report["cells"]:
        assert (cell["true_positives"], cell["false_positives"]) == (1, 1)
        assert cell["consistent"]["count"] == cell["consistent"]["of"] == 2
        assert cell["needed_read"]["count"] == 4
    silent = Analyst("", "")
    again = invoke(monkeypatch, tmp_path, silent, *words, "--json")
    assert again.exit_code == 0, again.output
    assert json.loads(again.stdout) == report
    assert silent.chat.requests == []
    other = invoke(monkeypatch, tmp_path, silent, *words, "--temperature", "0")
    assert other.exit_code != 0
    assert "other settings: temperature" in other.output


def test_a_failing_model_is_one_line_or_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "short.json"
    script.write_text('{"replies": [""]}')
    failing = Analyst("", "")
    failing.chat, _ = load_script(script)
    words = ["--elements", "simple", "--runs", "1"]
    shown = invoke(monkeypatch, tmp_path, failing, *words)
    assert shown.exit_code != 0
    assert "the evaluation stopped" in shown.output
    assert "Traceback" not in shown.output
    failing.chat, _ = load_script(script)
    counted = invoke(monkeypatch, tmp_path, failing, *words, "--keep-going", "--json")
    assert counted.exit_code == 0, counted.output
    assert json.loads(counted.stdout)["cells"][0]["undecided"]["count"] == 2


def test_a_model_without_conversations_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLSRV_DATA_DIR", str(tmp_path / "data"))
    shown = CliRunner().invoke(cli, ["lab", "eval", "llift", "--models", "nano", "--limit", "2"])
    assert shown.exit_code != 0
    assert "has no tool calls" in shown.output
