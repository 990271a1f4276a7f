"""The two shapes of a ToolBench answer file, typed (spec: formats 5.6).

A DFSDT file holds a tree of nodes, a CoT file a list of tries, each a chain of the same nodes; both
end in ``answer_generation``: the answer, the functions and the conversations to train on. Numbers,
names and oddities are ToolBench's: ``is_terminal`` is always false, ``chain`` always empty, a try
says ``win: false`` even when it won, and ``final_answer`` is the raw argument text of Finish.

One key is ours, ``toolsrv``: a search that was ended with a part of an answer says so there, and is
no win.

Reading is tolerant of what released files and StableToolBench's differ in; what is unknown is
passed over. ``document`` gives back ToolBench's JSON. Knows nothing of files or of our own trees.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field


def _text(value: Any) -> Any:
    """Return null as empty and an object or list as its JSON text."""
    if value is None:
        return ""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value


def _query(value: Any) -> Any:
    """Return the first of several wordings; a number as text."""
    first = value[0] if isinstance(value, list) and value else value
    return str(first) if isinstance(first, int | float) else first


def _function(value: Any) -> Any:
    """Return the inner object where StableToolBench wraps it."""
    inner = value.get("function") if isinstance(value, dict) and "name" not in value else None
    return inner if isinstance(inner, dict) else value


def _none(value: Any) -> Any:
    return () if value is None else value


Text = Annotated[str, BeforeValidator(_text)]


class _Shape(BaseModel):
    """Frozen; unknown keys are passed over."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    def document(self) -> dict[str, Any]:
        """Return ToolBench's JSON values, without the keys it leaves out."""
        unset = self._unset()
        return {
            name: _plain(getattr(self, name))
            for name in type(self).model_fields
            if name not in unset
        }

    def _unset(self) -> set[str]:
        """Name the keys that are not written."""
        return set()


def _plain(value: Any) -> Any:
    if isinstance(value, _Shape):
        return value.document()
    return [_plain(one) for one in value] if isinstance(value, tuple) else value


class AnswerNode(_Shape):
    """One node; ``children`` is None in chains and candidates, which list their nodes.

    ``expand_num`` numbers the nodes as the search entered them: in a tree, a thought with a number
    is a reply of its own; always 0 in a chain. ``observation_code`` is the code of spec 6.2.
    """

    is_terminal: bool = False
    pruned: bool = False
    finished: bool = False
    depth: int = 0
    node_type: Literal["Thought", "Action", "Action Input"]
    description: Text = ""
    Elo: float = 1000.0
    matching_time: int | None = None
    observation: Text = ""
    observation_code: int | None = None
    child_count: int = 0
    expand_num: int = 0
    io_state: dict[str, Any] | None = None
    children: tuple[AnswerNode, ...] | None = None

    def _unset(self) -> set[str]:
        unset = {
            name
            for name in ("matching_time", "observation_code", "io_state", "children")
            if getattr(self, name) is None
        }
        return unset if self.observation else unset | {"observation"}


class AnswerTree(_Shape):
    """The tree of a DFSDT search: ``size`` nodes, ``max_length`` of them on the longest path."""

    size: int
    max_length: int
    tree: AnswerNode


class Try(_Shape):
    """One chain of a CoT search, its root left out."""

    chain: tuple[AnswerNode, ...]
    win: bool = False


class FunctionCall(_Shape):
    """The call of an assistant message; ``arguments`` is the text as the model wrote it."""

    name: str
    arguments: Text = ""


class ToolCall(_Shape):
    """The same as StableToolBench has it."""

    id: str | None = None
    type: str = "function"
    function: FunctionCall


class Message(_Shape):
    """One turn of a conversation; ``valid`` false marks a diversity message."""

    role: str
    name: str | None = None
    content: str | None = None
    function_call: FunctionCall | None = None
    tool_calls: tuple[ToolCall, ...] | None = None
    tool_call_id: str | None = None
    valid: bool = True

    @property
    def calls(self) -> tuple[FunctionCall, ...]:
        """The calls of an assistant message: none, one, or in StableToolBench's files several."""
        if self.function_call is not None:
            return (self.function_call,)
        return tuple(one.function for one in self.tool_calls or ())

    def _unset(self) -> set[str]:
        names = ("name", "function_call", "tool_calls", "tool_call_id")
        unset = {name for name in names if getattr(self, name) is None}
        return unset | {"valid"} if self.valid else unset


Conversation = tuple[Message, ...]


class Generation(_Shape):
    """What a search came to.

    ``valid_data`` says that a Finish was called: with an answer, or in DFSDT a give-up too, which
    ``finish_type`` tells apart (it says ``give_answer`` where there is neither; CoT has none).
    ``train_messages`` holds, for each reply on the path of that Finish, the conversation up to it;
    None in DFSDT files that are not valid.
    """

    valid_data: bool
    query_count: int = 0
    total_tokens: int = 0
    final_answer: Text = ""
    finish_type: str | None = None
    function: Annotated[
        tuple[Annotated[dict[str, Any], BeforeValidator(_function)], ...], BeforeValidator(_none)
    ] = ()
    chain: Annotated[tuple[Any, ...], BeforeValidator(_none)] = ()
    train_messages: tuple[Conversation, ...] | None = None
    query: Annotated[str, BeforeValidator(_query)]

    def _unset(self) -> set[str]:
        return {n for n in ("finish_type", "train_messages") if getattr(self, n) is None}


class Unfinished(_Shape):
    """How a search ended that was ended before it had a whole answer.

    ``answer`` is what it had, "" where that was nothing; ``missing`` names what of the task is open.
    """

    status: Literal["partial", "needs_input", "cancelled"]
    answer: Text = ""
    reason: Text = ""
    missing: Annotated[tuple[str, ...], BeforeValidator(_none)] = ()


class _Answer(_Shape):
    """``toolsrv`` is our own key, in files of searches that were ended; ToolBench has no word for them."""

    win: bool = False
    forward_args: Annotated[
        dict[str, Any], BeforeValidator(lambda value: {} if value is None else value)
    ] = Field(default_factory=dict)
    compare_candidates: Annotated[tuple[tuple[AnswerNode, ...], ...], BeforeValidator(_none)] = ()
    answer_generation: Generation
    toolsrv: Unfinished | None = None

    def _unset(self) -> set[str]:
        return {"toolsrv"} if self.toolsrv is None else set()


class DfsAnswer(_Answer):
    """The answer file of a tree search."""

    tree: AnswerTree


class CotAnswer(_Answer):
    """The answer file of independent chains (``CoT@N``, which ReACT is too)."""

    try_count: int = 0
    trys: tuple[Try, ...]


Answer = DfsAnswer | CotAnswer
