"""Answer files read: released ones, odd ones, and what is none."""

from __future__ import annotations

import copy
import json
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.full_disk import full_disk

from toolsrv_registry.errors import DataError, NotFoundError, ToolsrvError, UsageError
from toolsrv_runtime.toolbench import answer_files
from toolsrv_runtime.toolbench.answer_files import (
    CotAnswer,
    DfsAnswer,
    parse_answer,
    read_answer,
    tree_of,
)
from toolsrv_runtime.toolbench.answer_writer import write_answer

EXAMPLES = Path(__file__).parents[3] / "shared" / "data" / "toolbench" / "examples.tar.gz"
GROUPS = json.loads((Path(__file__).parent / "data" / "answer_vectors.json").read_text())["groups"]
DFS_FILE = GROUPS["answer_file_example"]["cases"][0]["answer_file"]
COT_FILE = GROUPS["cot_answer_file_example"]["cases"][0]["answer_file"]


def released() -> Iterator[tuple[str, dict[str, Any]]]:
    with tarfile.open(EXAMPLES) as archive:
        for member in archive:
            file = archive.extractfile(member) if member.name.startswith("answer/") else None
            if file is not None:
                yield member.name, json.load(file)


@pytest.mark.skipif(not EXAMPLES.exists(), reason="ToolBench's example answers are not here")
def test_released_files_are_read_and_written_without_a_change() -> None:
    count = 0
    for name, value in released():
        answer = parse_answer(value, name)
        assert isinstance(answer, DfsAnswer)
        assert answer.document() == value, name
        tree = tree_of(answer)
        calls = [node for node in tree if node.function]
        assert len({node.id for node in tree}) == len(tree)
        assert len(calls) == json.dumps(value["tree"]).count('"node_type": "Action Input"') - 1
        gave_answer = any(node.kind == "answer" for node in tree)
        assert gave_answer == answer.win
        count += 1
    assert count == 15


def test_the_tree_of_a_file_is_told_in_our_own_shape() -> None:
    root, first, gave_up, second, thought, done = tree_of(parse_answer(DFS_FILE, "here"))
    assert (root.kind, root.parent, root.order) == ("root", -1, 0)
    assert (first.thought, first.function, first.arguments) == ("think", "f_for_t", {})
    assert (gave_up.kind, gave_up.parent, gave_up.bare) == ("give_up", first.id, True)
    assert (second.arguments, second.parent, second.observation) == (
        {"k": 1},
        root.id,
        '{"error": "", "response": "ok"}',
    )
    assert (thought.kind, thought.thought, thought.function) == ("thought", "only thinking", "")
    assert (done.kind, done.parent, done.depth) == ("answer", thought.id, 3)


def test_the_tries_of_a_file_hang_below_one_root() -> None:
    value = copy.deepcopy(COT_FILE)
    value["trys"] = [value["trys"][0], {"chain": [], "win": False}, value["trys"][0]]
    tree = tree_of(parse_answer(value, "here"))
    assert [node.kind for node in tree] == ["root", "call", "answer", "call", "answer"]
    assert [node.parent for node in tree][1:] == [0, tree[1].id, 0, tree[3].id]


def changed(file: dict[str, Any], change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    value = copy.deepcopy(file)
    change(value)
    return value


@pytest.mark.parametrize(
    "change",
    [
        lambda v: v["answer_generation"].update(query=["Q", "another wording"]),
        lambda v: v["answer_generation"].pop("finish_type"),
        lambda v: v["answer_generation"].pop("train_messages"),
        lambda v: v["answer_generation"].update(chain=None),
        lambda v: v["answer_generation"].update(
            function=[{"type": "function", "function": {"name": "f_for_t"}}]
        ),
        lambda v: v.update(compare_candidates=None, forward_args=None),
        lambda v: v.pop("win"),
        lambda v: v["tree"]["tree"].update(description=None, matching_time=3, new_key=[1]),
        lambda v: v["tree"]["tree"]["children"][0].update(observation={"error": "x"}),
    ],
)
def test_oddities_are_read(change: Callable[[dict[str, Any]], object]) -> None:
    answer = parse_answer(changed(DFS_FILE, change), "here")
    assert answer.answer_generation.query == "Q"
    assert answer.answer_generation.function[0] == {"name": "f_for_t"}
    assert [node.kind for node in tree_of(answer)][-1] == "answer"


def test_stabletoolbench_s_calls_are_calls() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": {"a": 1}}}
    messages = [
        {"role": "assistant", "tool_calls": [call, call]},
        {"role": "tool", "tool_call_id": "1", "name": "f", "content": "{}"},
    ]
    value = changed(COT_FILE, lambda v: v["answer_generation"].update(train_messages=[messages]))
    answer = parse_answer(value, "here")
    assert isinstance(answer, CotAnswer)
    ((said, seen),) = answer.answer_generation.train_messages or ()
    assert [(one.name, one.arguments) for one in said.calls] == [("f", '{"a": 1}')] * 2
    assert (seen.tool_call_id, said.content) == ("1", None)


# What is no answer file


@pytest.mark.parametrize(
    ("content", "must_say"),
    [
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b"{", "line 1, column 2"),
        (json.dumps(DFS_FILE, indent=2).encode()[:3000], "cut off"),
        (b"\xff\xfe{}", "not UTF-8"),
        (b"[]", "answer_generation"),
        (b'{"query": "x"}', "answer_generation"),
        (b'{"answer_generation": {}}', "neither tree nor trys"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"tree": 1, "answer_generation": {"valid_data": true, "query": "q"}}', ", tree:"),
        (b'{"trys": [], "answer_generation": {"query": "q"}}', ", answer_generation.valid_data:"),
    ],
)
def test_what_is_no_answer_file_is_told_with_its_place(
    tmp_path: Path, content: bytes, must_say: str
) -> None:
    path = tmp_path / "1_DFS.json"
    path.write_bytes(content)
    with pytest.raises(DataError) as raised:
        read_answer(path)
    assert str(path) in raised.value.message
    assert must_say in raised.value.message
    assert raised.value.hint


def test_a_damaged_node_is_told_with_its_place() -> None:
    value = changed(DFS_FILE, lambda v: v["tree"]["tree"]["children"][1].update(node_type="Wish"))
    with pytest.raises(DataError, match=r"here, tree\.tree\.children\.1\.node_type: "):
        parse_answer(value, "here")


def test_a_tree_of_absurd_depth_is_refused() -> None:
    value = copy.deepcopy(DFS_FILE)
    node = value["tree"]["tree"]
    for _ in range(600):
        node["children"] = [{"node_type": "Thought", "children": []}]
        node = node["children"][0]
    with pytest.raises(DataError) as raised:
        parse_answer(value, "here")
    assert len(raised.value.message) < 300


def test_the_place_of_a_fault_far_down_is_told_by_its_ends() -> None:
    value = copy.deepcopy(DFS_FILE)
    node = value["tree"]["tree"]
    below = copy.deepcopy(node["children"][0])
    for _ in range(60):
        node["children"] = [copy.deepcopy(below)]
        node = node["children"][0]
    node["node_type"] = "Wish"
    with pytest.raises(DataError, match=r"\d+ more\)\.0\.children\.0\S*\.node_type: ") as raised:
        parse_answer(value, "here")
    assert len(raised.value.message) < 300


def test_a_missing_file_a_folder_and_a_huge_file_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(NotFoundError, match="does not exist"):
        read_answer(tmp_path / "none.json")
    with pytest.raises(DataError, match="cannot read"):
        read_answer(tmp_path)
    monkeypatch.setattr(answer_files, "MOST_ANSWER_BYTES", 1)
    path = tmp_path / "1_DFS.json"
    path.write_text(json.dumps(DFS_FILE))
    with pytest.raises(DataError, match="more than"):
        read_answer(path)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["tree", "children", "chain", "node_type", "query", "role"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=12,
)


@given(
    st.sampled_from([DFS_FILE, COT_FILE]),
    st.lists(st.sampled_from(["tree", "trys", "answer_generation", "win", "query"]), max_size=3),
    JSON,
)
def test_a_file_with_anything_in_it_is_read_or_refused_in_plain_words(
    file: dict[str, Any], path: list[str], anything: Any
) -> None:
    value: Any = copy.deepcopy(file)
    place = value
    for key in path[:-1]:
        place = (
            place[key] if isinstance(place, dict) and isinstance(place.get(key), dict) else place
        )
    if path:
        place[path[-1]] = anything
    else:
        value = anything
    said = "here"
    try:
        tree_of(parse_answer(value, "here"))
    except ToolsrvError as error:
        said = error.message
    assert said.startswith("here")


# Writing


def test_a_file_is_json_with_an_indent_and_escapes_as_the_reference_s(tmp_path: Path) -> None:
    value = changed(DFS_FILE, lambda v: v["answer_generation"].update(query="café \ud800"))
    path = tmp_path / "1_DFS.json"
    write_answer(path, parse_answer(value, "here"))
    text = path.read_text("ascii")
    assert text.startswith('{\n  "win": true,\n')
    assert json.loads(text) == value
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


def test_no_file_is_made_where_none_can_be(tmp_path: Path) -> None:
    answer = parse_answer(DFS_FILE, "here")
    with pytest.raises(UsageError, match="is a folder"):
        write_answer(tmp_path, answer)
    with pytest.raises(UsageError, match="does not exist"):
        write_answer(tmp_path / "none" / "1.json", answer)
    with pytest.raises(UsageError, match="cannot write"):
        write_answer(tmp_path / ("x" * 300), answer)
    with pytest.raises(UsageError, match="no ordinary file"):
        write_answer(Path("/dev/null"), answer)
    assert Path("/dev/null").is_char_device()


def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "1_DFS.json"
    path.write_text("old")
    with full_disk(1000), pytest.raises(DataError, match="cannot write") as raised:
        write_answer(path, parse_answer(DFS_FILE, "here"))
    assert "space" in raised.value.hint
    assert path.read_text() == "old"
    assert [one.name for one in tmp_path.iterdir()] == [path.name]
