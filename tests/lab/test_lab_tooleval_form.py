"""Answer files in the form that ToolEval judges, against the reference's."""

from __future__ import annotations

import copy
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from toolsrv_lab.tooleval.answer_sets import tooleval_form
from toolsrv_runtime.toolbench.answer_files import parse_answer

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT.parent / "shared" / "data" / "toolbench" / "examples.tar.gz"
VECTORS = ROOT / "tests" / "runtime" / "data" / "answer_vectors.json"
GROUPS = json.loads(VECTORS.read_text("utf-8"))["groups"]
DFS_CASE = GROUPS["answer_file_example"]["cases"][0]
COT_CASE = GROUPS["cot_answer_file_example"]["cases"][0]


def failed() -> dict[str, Any]:
    """Return a tree search whose only reply was a failure of the model."""
    (case,) = GROUPS["invalid_data_conversion"]["cases"]
    value: dict[str, Any] = copy.deepcopy(DFS_CASE["answer_file"])
    value |= {"win": False, "tree": case["tree"], "compare_candidates": []}
    value["answer_generation"] |= {"valid_data": False, "final_answer": ""}
    del value["answer_generation"]["train_messages"]
    return value


def steps_of(form: dict[str, Any]) -> list[dict[str, Any]]:
    steps, details = [], form["answer"]["answer_details"]
    while details:
        (step,) = details
        steps.append(step)
        details = step["next"]
    return steps


@pytest.mark.parametrize(
    ("case", "method"), [(DFS_CASE, "DFS_woFilter_w2"), (COT_CASE, "CoT@1")], ids=["dfs", "cot"]
)
def test_an_answer_has_the_reference_s_form(case: dict[str, Any], method: str) -> None:
    answer = parse_answer(case["answer_file"], "here")
    assert tooleval_form(answer, method) == case["tooleval_form"]


def test_a_search_without_an_answer_has_the_reference_s_form() -> None:
    (case,) = GROUPS["invalid_data_conversion"]["cases"]
    answer = parse_answer(failed(), "here")
    assert tooleval_form(answer, "DFS_woFilter_w2") == case["tooleval_form"]


@pytest.mark.skipif(not EXAMPLES.exists(), reason="ToolBench's example answers are not here")
def test_released_answers_have_the_reference_s_steps() -> None:
    cases = {case["file"]: case for case in GROUPS["released_examples_conversion"]["cases"]}
    seen = 0
    with tarfile.open(EXAMPLES) as archive:
        for member in archive:
            case, file = cases.get(member.name), archive.extractfile(member)
            if case is None or file is None:
                continue
            form = tooleval_form(parse_answer(json.load(file), member.name), "DFS_woFilter_w2")
            steps = steps_of(form)
            assert form["answer"]["total_steps"] == len(steps)
            if not case["valid_data"]:
                continue  # a walk by chance, and the reference's is another
            assert [step["role"] for step in steps] == case["roles"]
            assert len(steps) == case["total_steps"]
            assert (steps[-1]["message"]["name"] == "Finish") == case["ends_in_finish"]
            assert form["answer"]["final_answer"] == steps[-1]["message"]["arguments"]
            seen += 1
    assert seen == 8


def test_the_walk_that_stands_for_a_failed_search_depends_on_the_seed_alone() -> None:
    value = copy.deepcopy(DFS_CASE["answer_file"])
    value["answer_generation"] |= {"valid_data": False}
    del value["answer_generation"]["train_messages"]
    answer = parse_answer(value, "here")
    forms = [tooleval_form(answer, "DFS", seed=seed) for seed in range(12)]
    assert forms == [tooleval_form(answer, "DFS", seed=seed) for seed in range(12)]
    walks = {json.dumps([step["role"] for step in steps_of(form)]) for form in forms}
    assert len(walks) == 2
    assert all(steps_of(form)[-1]["message"]["response"] == "" for form in forms)


def test_a_try_stands_for_chains_that_found_nothing() -> None:
    value = copy.deepcopy(COT_CASE["answer_file"])
    value["answer_generation"] |= {"valid_data": False, "final_answer": "", "train_messages": []}
    assert len(steps_of(tooleval_form(parse_answer(value, "here"), "CoT@1"))) == 6
    value["trys"] = []
    assert len(steps_of(tooleval_form(parse_answer(value, "here"), "CoT@1"))) == 2
