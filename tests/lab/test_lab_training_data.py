"""Answer files as training instances, one by one and by the folder, against the reference's."""

from __future__ import annotations

import copy
import hashlib
import json
import tarfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.full_disk import full_disk

from toolsrv_lab.training_data import convert as module
from toolsrv_lab.training_data.convert import ONLY_THINKS, PARALLEL, Instance, convert, instances_of
from toolsrv_registry.errors import DataError, NotFoundError, UsageError
from toolsrv_runtime.toolbench.answer_files import parse_answer, read_answer

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT.parent / "shared" / "data" / "toolbench" / "examples.tar.gz"
VECTORS = ROOT / "tests" / "runtime" / "data" / "answer_vectors.json"
GROUPS = json.loads(VECTORS.read_text("utf-8"))["groups"]
DFS_CASE = GROUPS["answer_file_example"]["cases"][0]
COT_CASE = GROUPS["cot_answer_file_example"]["cases"][0]
DFS_FILE, COT_FILE = DFS_CASE["answer_file"], COT_CASE["answer_file"]


@pytest.fixture(scope="session")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not EXAMPLES.exists():
        pytest.skip("ToolBench's example answers are not here")
    folder = tmp_path_factory.mktemp("examples")
    with tarfile.open(EXAMPLES) as archive:
        archive.extractall(folder, filter="data")
    return folder / "answer"


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    """Two good files, a search without an answer, and files that are no answers."""
    folder = tmp_path / "answers"
    put(folder / "G1" / "2_DFS_woFilter_w2.json", DFS_FILE)
    put(folder / "G1" / "10_CoT@1.json", COT_FILE)
    put(folder / "G2" / "3_DFS_woFilter_w2.json", failed())
    put(folder / "G2" / "queries.json", [{"query": "Q"}])
    (folder / "G2" / "4_DFS_woFilter_w2.json").write_text(json.dumps(DFS_FILE, indent=2)[:2000])
    (folder / "readme.txt").write_text("not JSON")
    (folder / ".5_DFS.json.new").write_text("not JSON")
    return folder


def put(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def failed() -> dict[str, Any]:
    value: dict[str, Any] = copy.deepcopy(DFS_FILE)
    value["answer_generation"] |= {"valid_data": False, "final_answer": ""}
    del value["answer_generation"]["train_messages"]
    return value


def instances(value: dict[str, Any]) -> tuple[list[Instance], Counter[str]]:
    skipped: Counter[str] = Counter()
    return list(instances_of(parse_answer(value, "here"), skipped)), skipped


# Training instances


def test_an_answer_file_gives_the_reference_s_instances() -> None:
    found, skipped = instances(DFS_FILE)
    assert found == DFS_CASE["training_instances"]
    assert skipped == {ONLY_THINKS: 1}


@pytest.mark.parametrize(
    "case", GROUPS["released_examples_training"]["cases"], ids=lambda case: case["file"]
)
def test_a_released_file_gives_the_reference_s_instances(
    case: dict[str, Any], released: Path
) -> None:
    answer = read_answer(released / case["file"])
    generation = answer.answer_generation
    lists = generation.train_messages or ()
    assert generation.valid_data == case["valid_data"]
    assert len(lists) == case["train_message_lists"]
    found = list(instances_of(answer, Counter()))
    assert len(found) == case["instances"]
    assert [one["id"].partition(":")[0] for one in found] == case["ids"]
    turns = [one["conversations"] for one in found]
    roles = ["".join(turn["from"][0].upper() for turn in one) for one in turns]
    assert roles == case["turn_roles_per_instance"]
    targets = [one[-1]["value"] for one in turns]
    silent = sum(text.startswith("\nThought: \nAction: ") for text in targets)
    assert silent == case["targets_with_empty_thought"]
    digest = hashlib.sha256(json.dumps(turns).encode()).hexdigest()
    assert digest == case["sha256_of_conversations_json"]


def test_text_beside_a_call_is_lost_and_text_alone_becomes_the_next_thought() -> None:
    found, _ = instances(COT_FILE)
    values = [turn["value"] for turn in found[-1]["conversations"] if turn["from"] == "assistant"]
    assert values[0] == "\nThought: \nAction: f_for_t\nAction Input: {}"
    value = copy.deepcopy(COT_FILE)
    messages = value["answer_generation"]["train_messages"][-1]
    messages.insert(2, {"role": "assistant", "content": "so to say"})
    found, _ = instances(value)
    (turn,) = [t for t in found[-1]["conversations"] if t["value"].startswith("\nThought: so")]
    assert turn["value"] == "\nThought: so to say\nAction: f_for_t\nAction Input: {}"
    assert found[-1]["id"] == "Step 5: Q"


def test_the_text_beside_a_call_is_kept_where_that_is_asked_for(tmp_path: Path) -> None:
    source = put(tmp_path / "1_CoT@1.json", COT_FILE)
    convert(source, tmp_path / "train.json", thoughts=True)
    (_, last) = json.loads((tmp_path / "train.json").read_text("utf-8"))
    said = [turn["value"] for turn in last["conversations"] if turn["from"] == "assistant"]
    assert said[0] == "\nThought: t\nAction: f_for_t\nAction Input: {}"


def test_stabletoolbench_s_messages_are_turns_too_and_parallel_calls_are_passed_over() -> None:
    value = copy.deepcopy(COT_FILE)
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    start = value["answer_generation"]["train_messages"][0][:2]
    single: dict[str, Any] = {"role": "assistant", "tool_calls": [call]}
    seen = {"role": "tool", "tool_call_id": "1", "name": "f", "content": "{}"}
    value["answer_generation"]["train_messages"] = [
        [*start, single, seen, single],
        [*start, single | {"tool_calls": [call, call]}],
    ]
    found, skipped = instances(value)
    roles = [turn["from"] for turn in found[0]["conversations"]]
    assert roles == ["system", "user", "assistant", "function", "assistant"]
    assert skipped == {PARALLEL: 1}


# Whole folders


def test_a_folder_is_converted_in_the_order_of_its_paths(answers: Path, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    out = tmp_path / "train.json"
    report = convert(answers, out, progress=lambda done, total: told.append((done, total)))
    found = json.loads(out.read_text("utf-8"))
    assert found == [*instances(COT_FILE)[0], *DFS_CASE["training_instances"]]
    assert (report.files, report.taken, report.instances, report.give_ups) == (5, 2, 4, 0)
    assert report.skipped == {ONLY_THINKS: 1}
    reasons = {one.file: one.reason for one in report.left_out}
    assert list(reasons) == [
        "G2/3_DFS_woFilter_w2.json",
        "G2/4_DFS_woFilter_w2.json",
        "G2/queries.json",
    ]
    assert "valid_data" in reasons["G2/3_DFS_woFilter_w2.json"]
    assert "line " in reasons["G2/4_DFS_woFilter_w2.json"]
    assert "answer_generation" in reasons["G2/queries.json"]
    assert told[-1] == (5, 5)


def test_a_second_conversion_is_the_same_byte_for_byte_and_does_not_read_the_first(
    answers: Path,
) -> None:
    out = answers / "a_train.json"
    first = convert(answers, out)
    content = out.read_bytes()
    assert convert(answers, out) == first
    assert out.read_bytes() == content


def test_only_files_of_a_method_are_taken_where_one_is_named(answers: Path, tmp_path: Path) -> None:
    report = convert(answers, tmp_path / "train.json", method="DFS_woFilter_w2")
    assert (report.taken, report.instances) == (1, 2)
    assert "DFS_woFilter_w2" in report.left_out[0].reason


def test_give_ups_are_taken_as_the_reference_takes_them_or_left_out_as_the_paper_says(
    answers: Path, tmp_path: Path
) -> None:
    value = copy.deepcopy(DFS_FILE)
    value["answer_generation"]["finish_type"] = "give_up"
    put(answers / "G1" / "2_DFS_woFilter_w2.json", value)
    assert convert(answers, tmp_path / "train.json").give_ups == 1
    report = convert(answers, tmp_path / "train.json", give_ups=False)
    assert (report.taken, report.give_ups) == (1, 0)


def test_released_files_are_converted_together(released: Path, tmp_path: Path) -> None:
    out = tmp_path / "train.json"
    report = convert(released, out)
    assert (report.files, report.taken, report.give_ups) == (15, 13, 4)
    assert {one.file for one in report.left_out} == {
        "G1_answer/69_ChatGPT_DFS_woFilter_w2.json",
        "G3_answer/8_ChatGPT_DFS_woFilter_w2.json",
    }
    found = json.loads(out.read_text("utf-8"))
    assert len(found) == report.instances == 50
    assert out.read_text("utf-8") == json.dumps(found, ensure_ascii=False, indent=4)


@given(st.lists(st.text(max_size=9), max_size=4))
def test_the_list_is_written_as_a_dump_of_the_whole_would_be(
    tmp_path_factory: pytest.TempPathFactory, values: list[str]
) -> None:
    path = tmp_path_factory.getbasetemp() / "list.json"
    rows = [Instance(id="é\n", conversations=[{"from": "x", "value": one}]) for one in values]
    with path.open("w", encoding="utf-8", newline="\n") as file:
        listed = module._JsonList(file)
        for row in rows:
            listed.add(row)
        listed.close()
    assert path.read_bytes().decode() == json.dumps(rows, ensure_ascii=False, indent=4)


def test_half_a_surrogate_pair_is_replaced(tmp_path: Path) -> None:
    value = copy.deepcopy(DFS_FILE)
    value["answer_generation"]["query"] = "half \ud800"
    convert(put(tmp_path / "1_DFS.json", value), tmp_path / "train.json")
    first = json.loads((tmp_path / "train.json").read_text("utf-8"))[0]
    assert first["id"] == "Step 3: half \ufffd"


# What cannot be converted


def test_a_missing_folder_and_an_empty_one_are_told(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="does not exist"):
        convert(tmp_path / "none", tmp_path / "train.json")
    (tmp_path / "empty").mkdir()
    with pytest.raises(NotFoundError, match=r"no \.json file"):
        convert(tmp_path / "empty", tmp_path / "train.json")


def test_nothing_is_written_where_no_file_gives_an_instance(tmp_path: Path) -> None:
    out = tmp_path / "train.json"
    source = tmp_path / "answers"
    put(source / "1_DFS.json", failed())
    put(source / "2_DFS.json", failed())
    with pytest.raises(DataError, match=r"none of the 2 files.*valid_data"):
        convert(source, out)
    with pytest.raises(DataError, match="valid_data"):
        convert(source / "1_DFS.json", out)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["answers"]


def test_a_file_whose_system_message_is_another_s_is_left_out_with_the_reason(
    answers: Path, tmp_path: Path
) -> None:
    value = copy.deepcopy(DFS_FILE)
    for conversation in value["answer_generation"]["train_messages"]:
        conversation[0]["content"] = "You are a helpful assistant."
    put(answers / "G1" / "2_DFS_woFilter_w2.json", value)
    report = convert(answers, tmp_path / "train.json")
    assert report.taken == 1
    assert "system message" in report.left_out[0].reason


def test_the_target_is_looked_at_before_the_work(answers: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is a folder"):
        convert(answers, tmp_path)
    with pytest.raises(UsageError, match="does not exist"):
        convert(answers, tmp_path / "none" / "train.json")


def test_a_full_disk_leaves_the_old_file_and_nothing_else(answers: Path, tmp_path: Path) -> None:
    out = tmp_path / "train.json"
    out.write_text("old")
    with full_disk(1000), pytest.raises(DataError, match="cannot write"):
        convert(answers, out)
    assert out.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["answers", "train.json"]
