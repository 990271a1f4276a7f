"""Scripts of replies in files: solves without a model, for demos and tests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from toolsrv_registry.errors import DataError, NotFoundError
from toolsrv_runtime.agent.prompts import NO_FUNCTION_FITS, no_function_fits_tool
from toolsrv_runtime.contract.models import ChatReply, ChatRequest, ReplyConstraints, UserMessage
from toolsrv_runtime.errors import ModelError
from toolsrv_runtime.models.scripted import load_script
from toolsrv_runtime.stop import Stop

FINISH = {"function": "Finish", "arguments": {"return_type": "give_up_and_restart"}}


def written(folder: Path, text: str, name: str = "script.json") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


REQUEST = ChatRequest(
    (UserMessage("hello"),), (no_function_fits_tool(),), ReplyConstraints(names=(NO_FUNCTION_FITS,))
)
BARE = ChatRequest((UserMessage("hello"),))


def replies(path: Path, *requests: ChatRequest) -> list[ChatReply]:
    model, profile = load_script(path)
    assert (model.name, profile.name) == ("scripted", "scripted")
    said = [model.reply(one, stop=Stop()) for one in requests]
    return [one for one in said if one is not None]


def test_a_give_up_and_a_text_are_said_in_their_order(tmp_path: Path) -> None:
    script = {"replies": [FINISH, "words"], "loop": True}
    path = written(tmp_path, json.dumps(script))
    first, second, third = replies(path, REQUEST, REQUEST, REQUEST)
    assert first.calls[0].name == NO_FUNCTION_FITS
    assert second.text == third.text == "words"


def test_an_answer_is_said_again_where_the_agent_writes_it(tmp_path: Path) -> None:
    said = {"return_type": "give_answer", "final_answer": "Lima"}
    script = {"replies": [{"function": "Finish", "arguments": said}]}
    path = written(tmp_path, json.dumps(script))
    assert [one.text for one in replies(path, REQUEST, BARE, BARE)] == ["Lima"] * 3
    with pytest.raises(ModelError, match="script is over"):
        replies(path, REQUEST, REQUEST)


def test_toml_says_the_same(tmp_path: Path) -> None:
    text = '[[replies]]\nfunction = "f"\nthought = "a"\n[replies.arguments]\nx = 1\n'
    (said,) = replies(written(tmp_path, text, "script.toml"), REQUEST)
    assert (said.text, said.calls[0].name, said.calls[0].arguments) == ("a", "f", {"x": 1})


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
