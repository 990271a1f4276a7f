"""The scripted chat model: replies in order, by a function, from a file; judged as a server's."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from toolsrv_registry.errors import DataError, NotFoundError
from toolsrv_runtime.contract.models import (
    ChatModel,
    ChatReply,
    ChatRequest,
    ReplyConstraints,
    Tool,
    ToolCall,
    UserMessage,
)
from toolsrv_runtime.errors import ModelError
from toolsrv_runtime.models.scripted import ScriptedChat, ScriptedReply
from toolsrv_runtime.stop import Stop

ADD = Tool("add", "Adds.", {"type": "object", "properties": {"a": {"type": "number"}}})
REQUEST = ChatRequest((UserMessage("Add 1 and 2"),), (ADD,), ReplyConstraints(names=("add",)))
ONE = ToolCall("add", {"a": 1})


def ask(model: ScriptedChat, request: ChatRequest = REQUEST) -> ChatReply:
    reply = model.reply(request, stop=Stop())
    assert reply is not None
    return reply


def test_replies_come_in_order_and_requests_are_kept() -> None:
    model = ScriptedChat([ONE, [ONE, ONE], "It is 3.", ChatReply(text="so", calls=(ONE,))])
    assert isinstance(model, ChatModel)
    replies = [ask(model) for _ in range(4)]
    assert [[call.name for call in one.calls] for one in replies] == [
        ["add"], ["add", "add"], [], ["add"],
    ]  # fmt: skip
    assert [one.text for one in replies] == ["", "", "It is 3.", "so"]
    ids = [call.id for call in replies[1].calls]
    assert len(set(ids)) == 2
    assert all(len(one) == 9 and one.isalnum() for one in ids)
    assert model.requests == [REQUEST] * 4
    assert (replies[2].prompt_tokens, replies[2].generated) == (4, 3)
    with pytest.raises(ModelError, match="script is over"):
        ask(model)


def test_the_last_reply_of_a_loop_comes_again() -> None:
    model = ScriptedChat(["a", "b"], loop=True)
    assert [ask(model).text for _ in range(4)] == ["a", "b", "b", "b"]


def test_a_function_may_choose_the_reply() -> None:
    def script(request: ChatRequest) -> ScriptedReply:
        return ONE if len(request.messages) == 1 else "done"

    model = ScriptedChat(script)
    assert ask(model).calls[0].name == "add"
    longer = ChatRequest((*REQUEST.messages, UserMessage("more")), (ADD,))
    assert ask(model, longer).text == "done"


def test_a_reply_that_was_not_expected_has_its_problem() -> None:
    must = ChatRequest(REQUEST.messages, (ADD,), ReplyConstraints(names=("add",), text=False))
    model = ScriptedChat(["words", ToolCall("sub"), ChatReply(text="x", problem="as scripted")])
    assert [ask(model, must).problem for _ in range(3)] == [
        "The reply calls no function", "There is no tool 'sub'", "as scripted",
    ]  # fmt: skip


def test_stop_ends_a_slow_reply() -> None:
    model = ScriptedChat(["late"], seconds=30)
    started = time.monotonic()
    assert model.reply(REQUEST, stop=Stop(deadline=started + 0.1)) is None
    assert time.monotonic() - started < 20  # the reply takes thirty seconds


def test_a_script_file_is_played(tmp_path: Path) -> None:
    path = tmp_path / "script.toml"
    path.write_text(
        'replies = ["plain", {function = "add", arguments = {a = 1}, thought = "first"}, '
        '{function = "Finish", arguments = {return_type = "give_answer", final_answer = "3"}}]\n'
        "loop = true\n"
    )
    model = ScriptedChat.from_file(path)
    first, second, third, fourth = (ask(model) for _ in range(4))
    assert (first.text, third.text, fourth.text) == ("plain", "3", "3")
    assert (second.text, second.calls[0].arguments) == ("first", {"a": 1})
    with pytest.raises(NotFoundError):
        ScriptedChat.from_file(tmp_path / "none.toml")
    path.write_text("replies = []")
    with pytest.raises(DataError, match="replies"):
        ScriptedChat.from_file(path)
