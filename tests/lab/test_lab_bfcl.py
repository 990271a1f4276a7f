"""BFCL: schemas, names, sampling, the checker in its package, and the command, on a tiny package."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.cells import run_cells

from toolsrv.cli.laboratory import evaluation
from toolsrv.cli.main import cli
from toolsrv_lab.evaluation.bfcl import CaseResult, Mode, ask, figures, official, request_of
from toolsrv_lab.evaluation.bfcl_data import Bfcl, Case, json_schema, open_package, original, tools
from toolsrv_lab.evaluation.cells import Cell, CellLog, in_thread
from toolsrv_lab.evaluation.result_log import ResultLog
from toolsrv_lab.evaluation.statistics import draw, draw_by_stratum
from toolsrv_registry.errors import DataError, UsageError
from toolsrv_runtime.agent.prompts import NO_FUNCTION_FITS
from toolsrv_runtime.contract.models import ChatReply, SystemMessage, ToolCall, UserMessage
from toolsrv_runtime.models.scripted import ScriptedChat, ScriptedReply
from toolsrv_runtime.stop import Stop

CHECKER = """
from bfcl_eval.constants.model_config import MODEL_CONFIG_MAPPING

assert not MODEL_CONFIG_MAPPING["toolsrv"].underscore_to_dot

def ast_checker(functions, made, answers, language, category, model):
    assert language == "python"
    valid = len(made) == len(answers) and all(
        name in answer and all(value in answer[name][key] for key, value in call[name].items())
        for call, answer in zip(made, answers) for name in call
    )
    return {"valid": valid, "error_type": "fake:wrong"}
"""
FACTORIAL = {
    "name": "math.factorial",
    "description": "Return n!",
    "parameters": {"type": "dict", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
}
MEAN = {
    "name": "stats.mean",
    "description": "Return the mean.",
    "parameters": {
        "type": "dict",
        "properties": {"values": {"type": "array", "items": {"type": "float"}}},
        "required": ["values"],
    },
}
NONE = ToolCall(NO_FUNCTION_FITS, {"reason": "nothing"})


def five(n: int = 5) -> ToolCall:
    return ToolCall("math_factorial", {"n": n})


def case(name: str, *functions: Any, system: str = "") -> dict[str, Any]:
    turns = [{"role": "user", "content": f"What of {name}?"}]
    if system:
        turns.insert(0, {"role": "system", "content": system})
    return {"id": name, "question": [turns], "function": list(functions)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a package of BFCL's layout; its list of models cannot be imported."""
    root = tmp_path / "package"
    package = root / "bfcl_eval"
    files = {
        "__init__.py": "",
        "constants/__init__.py": "",
        "constants/enums.py": "class Language:\n    PYTHON = 'python'\n",
        "constants/model_config.py": "raise ImportError('fifty clients')",
        "eval_checker/__init__.py": "",
        "eval_checker/ast_eval/__init__.py": "",
        "eval_checker/ast_eval/ast_checker.py": CHECKER,
    }
    rows = {
        "simple_python": [case(f"simple_python_{at}", FACTORIAL) for at in range(3)],
        "multiple": [case("multiple_0", FACTORIAL, MEAN, system="Be brief.")],
        "live_multiple": [case("live_multiple_0", FACTORIAL, MEAN)],
        "irrelevance": [case("irrelevance_0", FACTORIAL)],
    }
    truth: dict[str, list[dict[str, Any]]] = {
        "simple_python": [{"math.factorial": {"n": [5]}}],
        "multiple": [{"stats.mean": {"values": [[1.0, 2.5]]}}],
        "live_multiple": [{"stats.mean": {"values": [[1.0]]}}],
    }
    for category, entries in rows.items():
        lines = "".join(f"{json.dumps(one)}\n" for one in entries)
        files[f"data/BFCL_v4_{category}.json"] = lines
        if category in truth:
            files[f"data/possible_answer/BFCL_v4_{category}.json"] = "".join(
                json.dumps({"id": one["id"], "ground_truth": truth[category]}) + "\n"
                for one in entries
            )
    for name, text in files.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text, "utf-8")
    (root / "bfcl_eval-1.2.dist-info").mkdir()
    return root


@pytest.fixture
def bfcl(folder: Path) -> Bfcl:
    return open_package(folder)


def chat(*script: ScriptedReply) -> ScriptedChat:
    return ScriptedChat(list(script))


# ---------------------------------------------------------------- schemas and names
def test_python_types_become_a_closed_json_schema() -> None:
    found = json_schema(
        {
            "type": "dict",
            "properties": {
                "point": {"type": "tuple", "items": {"type": "float"}, "optional": True},
                "data": {"type": "any", "description": "d"},
                "size": {"type": "dict", "properties": {"w": {"type": "integer"}}},
                "metrics": {"type": "array", "items": {"type": "string"}, "enum": ["co2", "dust"]},
                "level": {"type": "integer", "enum": [1, 2, "x", True], "default": 1},
                "free": {"type": "dict"},
                "odd": {"description": "no type"},
            },
            "required": ["point", "gone"],
        }
    )
    assert found == {
        "type": "object",
        "properties": {
            "point": {"type": "array", "items": {"type": "number"}},
            "data": {"type": "string", "description": "d"},
            "size": {
                "type": "object",
                "properties": {"w": {"type": "integer"}},
                "required": [],
                "additionalProperties": False,
            },
            "metrics": {"type": "array", "items": {"type": "string", "enum": ["co2", "dust"]}},
            "level": {"type": "integer", "default": 1, "enum": [1, 2]},
            "free": {"type": "object"},
            "odd": {"type": "string", "description": "no type"},
        },
        "required": ["point"],
        "additionalProperties": False,
    }


def test_names_lose_their_dots_and_get_them_back() -> None:
    twin = {**FACTORIAL, "name": "math_factorial"}
    shown, originals = tools([FACTORIAL, twin, {**FACTORIAL, "name": "x" * 80}])
    assert [one.name for one in shown] == ["math_factorial", "math_factorial_2", "x" * 64]
    calls = original([five(), ToolCall("math_factorial_2", {})], originals, [FACTORIAL, twin])
    assert calls == [{"math.factorial": {"n": 5}}, {"math_factorial": {}}]


def test_whole_numbers_are_floats_where_the_schema_says_so() -> None:
    _, originals = tools([MEAN])
    calls = original([ToolCall("stats_mean", {"values": [1, 2.5, True]})], originals, [MEAN])
    assert repr(calls) == "[{'stats.mean': {'values': [1.0, 2.5, True]}}]"


# ---------------------------------------------------------------- the package
def test_a_package_is_read_without_its_dependencies(bfcl: Bfcl) -> None:
    assert bfcl.version == "1.2"
    assert [one.id for one in bfcl.cases("multiple")] == ["multiple_0"]  # and no live ones
    one = bfcl.cases("multiple")[0]
    assert one.messages == (SystemMessage("Be brief."), UserMessage("What of multiple_0?"))
    assert not any(name.startswith("bfcl_eval") for name in sys.modules)


@pytest.mark.parametrize("name", ["simple_java", "../multiple", ""])
def test_a_category_that_is_not_judged_is_refused(bfcl: Bfcl, name: str) -> None:
    with pytest.raises(UsageError, match="no category"):
        bfcl.cases(name)


def test_a_package_that_is_not_there_is_told_with_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        open_package(tmp_path)
    assert "pip install --no-deps" in caught.value.hint


def test_a_damaged_package_is_named(folder: Path) -> None:
    (folder / "bfcl_eval/data/BFCL_v4_multiple.json").write_text('{"id": 1}\n', "utf-8")
    with pytest.raises(DataError, match="KeyError"):
        open_package(folder).cases("multiple")
    (folder / "bfcl_eval/constants/enums.py").write_text("", "utf-8")
    with pytest.raises(DataError, match="AST checker"):
        open_package(folder)


# ---------------------------------------------------------------- requests and judging
def test_a_held_request_expects_one_call_and_a_free_one_anything(bfcl: Bfcl) -> None:
    one = bfcl.cases("multiple")[0]
    held, _ = request_of(one, "held")
    names = ("math_factorial", "stats_mean", NO_FUNCTION_FITS)
    assert (held.expected.names, held.expected.calls, held.expected.text) == (names, 1, False)
    free, _ = request_of(one, "free")
    assert free.expected.text
    assert [tool.name for tool in free.tools] == list(names[:2])


@pytest.mark.parametrize(
    ("category", "mode", "said", "valid"),
    [
        ("simple_python", "held", five(), True),
        ("simple_python", "held", five(6), False),
        ("simple_python", "held", NONE, False),
        ("simple_python", "free", "call math.factorial(5)", False),
        ("simple_python", "free", five(), True),
        ("multiple", "held", ToolCall("stats_mean", {"values": [1, 2.5]}), True),
        ("irrelevance", "held", NONE, True),
        ("irrelevance", "held", five(), False),
        ("irrelevance", "held", ChatReply(problem="broken"), False),
        ("irrelevance", "free", "None of them helps.", True),
    ],
)
def test_a_reply_is_judged(
    bfcl: Bfcl, category: str, mode: Any, said: ScriptedReply, valid: bool
) -> None:
    found = ask(chat(said), bfcl.cases(category)[0], mode, bfcl, stop=Stop())
    assert found is not None
    assert found.valid is valid
    assert bool(found.error) is not valid


HELD = Cell("m", "hash", "held")


def evaluate(model: ScriptedChat, cases: Sequence[Case], log: ResultLog, bfcl: Bfcl) -> None:
    async def solve(case: Case, mode: Mode) -> CaseResult:
        return await in_thread(lambda stop: ask(model, case, mode, bfcl, stop=stop))

    named = {one.id: one for one in cases}
    cells: dict[Cell, Mode] = {HELD: "held"}
    asyncio.run(run_cells(named, cells, CellLog(log, CaseResult), solve))


def test_a_run_goes_on_after_what_it_has(bfcl: Bfcl, tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    cases = bfcl.cases("simple_python")
    with ResultLog(path, {}) as log, pytest.raises(DataError, match="simple_python_2") as caught:
        evaluate(chat(five(), five(6)), cases, log, bfcl)
    assert "2 results are kept" in caught.value.hint
    with ResultLog(path, {}) as log:
        model = chat(five())
        evaluate(model, cases, log, bfcl)
        assert len(model.requests) == 1
    with ResultLog(path, {}) as log:
        kept = CellLog(log, CaseResult)
        right = figures(kept, [HELD], cases)["held"]["simple_python"].right
        assert (right.count, right.of) == (2, 3)
        assert figures(kept, [Cell("m", "another", "held")], cases) == {"held": {}}


def test_a_reply_that_is_cancelled_is_broken_off_and_no_result(bfcl: Bfcl) -> None:
    late, stops = ScriptedChat([five()], seconds=60), list[Stop]()
    case = bfcl.cases("simple_python")[0]

    def work(stop: Stop) -> CaseResult | None:
        stops.append(stop)
        return ask(late, case, "held", bfcl, stop=stop)

    with pytest.raises(TimeoutError):
        asyncio.run(asyncio.wait_for(in_thread(work), 0.3))
    assert stops[0].is_set()
    assert len(late.requests) == 1


def test_official_scores_are_of_the_same_family_and_size() -> None:
    assert official("qwen2.5-coder-0.5b-instruct-q4_k_m") == "Qwen2.5-0.5B-Instruct (prompt)"
    assert official("Qwen2.5-1.5B-Instruct") == "Qwen2.5-1.5B-Instruct (prompt)"
    assert official("qwen2.5-coder-32b") == ""


# ---------------------------------------------------------------- samples
def test_a_larger_sample_holds_a_smaller_one_and_keeps_the_order() -> None:
    items = [str(at) for at in range(50)]
    small, large = (draw(items, size, seed=3, key=str) for size in (5, 20))
    assert set(small) < set(large)
    assert large == sorted(large, key=int)
    assert small != draw(items, 5, seed=4, key=str)
    assert draw(items, None, seed=0, key=str) == items


def test_a_sample_has_every_stratum_in_proportion() -> None:
    items = [f"a{at}" for at in range(60)] + [f"b{at}" for at in range(30)] + ["c0"] * 1
    found = draw_by_stratum(items, 10, seed=0, key=str, stratum=lambda one: one[0])
    counts = [sum(one[0] == name for one in found) for name in "abc"]
    assert counts == [7, 3, 0]


# ---------------------------------------------------------------- the command
def invoke(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, models: Sequence[ScriptedChat], *words: str
) -> Result:
    monkeypatch.setenv("TOOLSRV_DATA_DIR", str(tmp_path / "data"))
    by_mode = dict(zip(("held", "free"), models, strict=False))
    monkeypatch.setattr(
        evaluation, "chat_model_of", lambda _bench, free: by_mode["free" if free else "held"]
    )
    return CliRunner().invoke(cli, ["lab", "eval", "bfcl", *words])


def test_the_command_shows_held_beside_free_and_keeps_both(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["--package", str(folder), "--categories", "simple_python,irrelevance", "--free"]
    words += ["--limit", "2", "--out", str(tmp_path / "out")]
    # The categories take turns.
    held, free = chat(five(), NONE, five()), chat("no", "no", five())
    shown = invoke(monkeypatch, tmp_path, [held, free], *words)
    assert shown.exit_code == 0, shown.output
    for text in ("2/2 = 100", "1/2 = 50", "held", "free", "irrelevance"):
        assert text in shown.stdout
    report = json.loads((tmp_path / "out" / "report.json").read_text("utf-8"))
    assert report["modes"]["free"]["simple_python"]["right"]["count"] == 1
    again = invoke(monkeypatch, tmp_path, [chat(), chat()], *words, "--json")  # asks nobody
    assert again.exit_code == 0, again.output
    assert json.loads(again.stdout) == report
