"""Training files are read piece by piece, and a bad entry is named with its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsrv_lab.finetune import examples
from toolsrv_lab.finetune.examples import layout, read_conversations
from toolsrv_registry.errors import DataError, NotFoundError

ENTRY = {
    "id": "Step 2: what?",
    "conversations": [
        {"from": "system", "value": "S"},
        {"from": "user", "value": "U"},
        {"from": "assistant", "value": "\nThought: a\nAction: f\nAction Input: {}"},
        {"from": "function", "value": "O"},
        {"from": "assistant", "value": "\nThought: b\nAction: Finish\nAction Input: {}"},
    ],
}


def entry(*turns: tuple[str, str]) -> dict[str, Any]:
    return {"id": "x", "conversations": [{"from": role, "value": text} for role, text in turns]}


def test_the_text_is_toolbenchs_and_the_target_its_last_reply(tmp_path: Path) -> None:
    path = tmp_path / "train.json"
    path.write_text(json.dumps([ENTRY], indent=4))
    (one,) = read_conversations(path)
    text, start = layout(one)
    assert text == (
        "System: S\nUser: U\nAssistant: \nThought: a\nAction: f\nAction Input: {}\n"
        "Function: O\nAssistant: \nThought: b\nAction: Finish\nAction Input: {}"
    )
    assert text[start:] == " \nThought: b\nAction: Finish\nAction Input: {}"


values = st.text(min_size=1).filter(str.strip)
entries = st.lists(
    st.builds(lambda asked, said: entry(("user", asked), ("assistant", said)), values, values),
    max_size=8,
)


@given(some=entries, chunk=st.integers(1, 200), indent=st.sampled_from([None, 4]))
def test_a_list_and_lines_give_the_same_in_whatever_pieces(
    tmp_path_factory: pytest.TempPathFactory, some: list[Any], chunk: int, indent: int | None
) -> None:
    folder = tmp_path_factory.mktemp("data")
    listed, lines = folder / "listed.json", folder / "lines.jsonl"
    listed.write_text(json.dumps(some, indent=indent, ensure_ascii=False), "utf-8", newline="")
    lines.write_text("".join(json.dumps(one) + "\n" for one in some), "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(examples, "_CHUNK", chunk)
        found = list(read_conversations(listed))
    assert [one.model_dump(by_alias=True, mode="json") for one in found] == some
    assert list(read_conversations(lines)) == found


GOOD = json.dumps(entry(("user", "u"), ("assistant", "a")))

BAD = [
    ("{", "is not JSON"),
    ("3", "valid dictionary"),
    ("{}", "conversations"),
    (json.dumps({"conversations": "none"}), "conversations"),
    (json.dumps(entry(("user", "u"))), "conversations"),
    (json.dumps(entry(("robot", "u"), ("assistant", "a"))), "conversations.0.from"),
    (json.dumps({"conversations": [{"from": "user"}, {"from": "assistant"}]}), "0.value"),
    (json.dumps(entry(("user", "u"), ("function", "a"))), "'function'.*nothing to learn"),
    (json.dumps(entry(("user", "u"), ("assistant", " \n"))), "empty"),
    ("[" * 100_000, "JSON|nested"),
]


@pytest.mark.parametrize(("bad", "words"), BAD)
def test_a_bad_line_or_entry_is_refused_with_its_number(
    tmp_path: Path, bad: str, words: str
) -> None:
    path = tmp_path / "train.json"
    path.write_text(f"{GOOD}\n{GOOD}\n{bad}\n{GOOD}\n")
    with pytest.raises(DataError, match=rf"'train.json', line 3.*({words})"):
        list(read_conversations(path))
    path.write_text(f"[{GOOD}, {GOOD},\n{bad}, {GOOD}]")
    with pytest.raises(DataError, match=rf"'train.json', entry 3.*({words}|not JSON)"):
        list(read_conversations(path))


@pytest.mark.parametrize("share", [0.3, 0.5, 0.99])
def test_a_list_that_ends_in_the_middle_is_refused(tmp_path: Path, share: float) -> None:
    path = tmp_path / "train.json"
    text = json.dumps([json.loads(GOOD)] * 3, indent=4)
    path.write_text(text[: int(len(text) * share)])
    with pytest.raises(DataError, match=r"entry .*ends in the middle"):
        list(read_conversations(path))


def test_a_file_that_is_missing_or_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="there is no file"):
        list(read_conversations(tmp_path / "none.json"))
    path = tmp_path / "bytes.json"
    path.write_bytes(b"[\xff\xfe")
    with pytest.raises(DataError, match="UTF-8"):
        list(read_conversations(path))
    path.write_bytes(b"\n")
    assert list(read_conversations(path)) == []
