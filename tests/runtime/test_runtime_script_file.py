"""Scripts of replies in files: solves without a model, for demos and tests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from toolsrv_registry.errors import DataError, NotFoundError
from toolsrv_runtime.engine.base import Piece
from toolsrv_runtime.models.scripted import load_script

FINISH = {"function": "Finish", "arguments": {"return_type": "give_up_and_restart"}}


def written(folder: Path, text: str, name: str = "script.json") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def replies(path: Path, count: int) -> list[str]:
    engine, profile = load_script(path)
    assert (engine.name, profile.format) == ("scripted", "chat")
    return [engine.generate((Piece("hello"),), grammar="", max_tokens=9).text for _ in range(count)]


def test_a_call_and_a_text_are_said_in_their_order(tmp_path: Path) -> None:
    script = {"replies": [FINISH, "Thought: x"], "loop": True}
    first, second, third = replies(written(tmp_path, json.dumps(script)), 3)
    assert first.splitlines()[1] == "Action: Finish"
    assert json.loads(first.rpartition("Action Input: ")[2]) == FINISH["arguments"]
    assert second == third == "Thought: x"


def test_toml_says_the_same(tmp_path: Path) -> None:
    text = '[[replies]]\nfunction = "f"\nthought = "a\\nb"\n[replies.arguments]\nx = 1\n'
    (said,) = replies(written(tmp_path, text, "script.toml"), 1)
    assert said == 'Thought: a b\nAction: f\nAction Input: {"x": 1}'


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", "{}", '{"replies": []}', '{"replies": [3]}', '{"replies": [{}]}',
        '{"replies": ["x"], "colour": "red"}', '{"replies": ["x"], "seconds": -1}', "[" * 100_000,
    ],
)  # fmt: skip
def test_what_is_no_script_is_refused_with_its_place(text: str, tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        load_script(written(tmp_path, text))
    assert "script.json" in caught.value.message
    assert caught.value.hint


def test_bytes_that_are_no_text_and_folders_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "script.json"
    path.write_bytes(b"\xff\xfe\x00")
    for place in (path, tmp_path):
        with pytest.raises(DataError):
            load_script(place)
    with pytest.raises(NotFoundError):
        load_script(tmp_path / "absent.json")
