"""ToolBench answer files: typed model and reader.

A DFSDT file holds a tree of nodes, a CoT file a list of tries, each a chain of nodes. Both end in
``answer_generation``: the answer, the functions and the training conversations. Numbers, names and
oddities are ToolBench's: ``is_terminal`` is always false, ``chain`` always empty, a try says
``win: false`` even when it won, ``final_answer`` is the raw argument text of Finish. The key
``toolsrv`` is ours: a search that ended with a partial answer says so there.

Reading accepts the differences between ToolBench's, StableToolBench's and our files; an error names
the file and the place in it. ``document`` writes ToolBench's JSON.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from toolsrv_registry import wellformed
from toolsrv_registry.errors import DataError
from toolsrv_runtime.files import read_text
from toolsrv_runtime.outcome import NodeKind, TreeNode
from toolsrv_runtime.search.tree import Code


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


class CotTry(_Shape):
    """One chain of a CoT search, its root left out."""

    chain: tuple[AnswerNode, ...]
    win: bool = False


class FunctionCall(_Shape):
    """The call of an assistant message; ``arguments`` is the text as the model wrote it."""

    name: str
    arguments: Text = ""


class AnswerToolCall(_Shape):
    """The same as StableToolBench has it."""

    id: str | None = None
    type: str = "function"
    function: FunctionCall


class AnswerMessage(_Shape):
    """One turn of a conversation; ``valid`` false marks a diversity message."""

    role: str
    name: str | None = None
    content: str | None = None
    function_call: FunctionCall | None = None
    tool_calls: tuple[AnswerToolCall, ...] | None = None
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


AnswerConversation = tuple[AnswerMessage, ...]


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
    train_messages: tuple[AnswerConversation, ...] | None = None
    query: Annotated[str, BeforeValidator(_query)]

    def _unset(self) -> set[str]:
        return {n for n in ("finish_type", "train_messages") if getattr(self, n) is None}


class Unfinished(_Shape):
    """How a search ended that was ended before it had a whole answer.

    ``answer`` is what it had, "" where that was nothing; ``missing`` names what of the task is
    open.
    """

    status: Literal["partial", "needs_input", "cancelled", "interrupted"]
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
    trys: tuple[CotTry, ...]


Answer = DfsAnswer | CotAnswer


MOST_ANSWER_BYTES = 64 * 1024 * 1024
_STEPS = 6
"""Steps into a file that an error names at either end of a place."""
_HINT = "give an answer file: <query id>_<method>.json of ToolBench, or of toolsrv --save-answer"


def read_answer(path: Path) -> Answer:
    """Return the answer file at ``path``.

    Raises:
        NotFoundError: there is no such file.
        DataError: it cannot be read, is no JSON, or no answer file.
    """
    return parse_answer(_json(path), str(path))


def parse_answer(value: Any, where: str) -> Answer:
    """Return the answer file that a JSON value is; ``where`` names it in errors.

    Raises:
        DataError: it is none.
    """
    shape = _shape(value, where)
    try:
        return shape.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise DataError(f"{where}, {_place(first['loc'])}: {first['msg']}", hint=_HINT) from error
    except RecursionError as error:
        raise DataError(f"{where} is nested too deeply", hint=_HINT) from error


def tree_of(answer: Answer) -> tuple[TreeNode, ...]:
    """Return the replies of an answer file as the tree of an outcome, the root first.

    API ids and HTTP statuses are not in the file. In a chain, a thought with a call after it is
    one reply: nothing tells whether they came apart.
    """
    found = [TreeNode(id=0, parent=-1, depth=0, kind="root")]
    reader = _Reader(found)
    if isinstance(answer, DfsAnswer):
        root = answer.tree.tree
        found[0] = found[0].model_copy(update={"order": root.expand_num})
        for child in root.children or ():
            reader.read(child, found[0])
    else:
        for one in answer.trys:
            if one.chain:
                reader.read(_nested(one.chain), found[0])
    return tuple(found)


def _place(parts: Sequence[str | int]) -> str:
    """Return where in the file something is; the middle of a long way there is only counted."""
    steps = list(map(str, parts))
    between = len(steps) - 2 * _STEPS
    if between > 1:
        steps[_STEPS:-_STEPS] = [f"({between} more)"]
    return ".".join(steps)


def _shape(value: Any, where: str) -> type[DfsAnswer | CotAnswer]:
    if not isinstance(value, dict) or "answer_generation" not in value:
        raise DataError(f"{where} is no answer file: it has no answer_generation", hint=_HINT)
    if "tree" in value:
        return DfsAnswer
    if "trys" in value:
        return CotAnswer
    raise DataError(f"{where} is no answer file: it has neither tree nor trys", hint=_HINT)


def _json(path: Path) -> Any:
    text = read_text(path, MOST_ANSWER_BYTES, hint=_HINT)
    if not text.strip():
        raise DataError(f"{path} is empty", hint=_HINT)
    try:
        return wellformed.loads(text)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        cut = " (the file is cut off)" if not text[error.pos :].strip() else ""
        raise DataError(f"{path}, {place}: {error.msg}{cut}", hint=_HINT) from error
    except RecursionError as error:
        raise DataError(f"{path} is nested too deeply", hint=_HINT) from error


def _nested(chain: tuple[AnswerNode, ...]) -> AnswerNode:
    """Return a chain as nodes below each other."""
    node = chain[-1].model_copy(update={"children": ()})
    for above in reversed(chain[:-1]):
        node = above.model_copy(update={"children": (node,)})
    return node


class _Reader:
    """Gathers replies: a thought, a call, or a thought with its call below it."""

    def __init__(self, found: list[TreeNode]) -> None:
        self._found = found
        self._count = 1

    def read(self, node: AnswerNode, above: TreeNode, thought: str | None = None) -> None:
        """Read the nodes from ``node`` down; ``thought`` was said just above it."""
        end = self._count
        self._count += 1
        below = node.children or ()
        if node.node_type == "Thought" and not _is_reply(node):
            self.read(below[0], above, node.description)
            return
        function = ""
        if node.node_type == "Action":
            function = node.description
            if below and below[0].node_type == "Action Input":
                node, below = below[0], below[0].children or ()
                end = self._count
                self._count += 1
        elif node.node_type == "Thought":
            thought = node.description
        reply = TreeNode(
            id=end,
            parent=above.id,
            depth=above.depth + 1,
            kind=_kind(node),
            thought=thought or "",
            function=function,
            arguments=_arguments(node),
            observation=node.observation,
            pruned=node.pruned,
            order=node.expand_num,
            text=node.description if node.node_type == "Action Input" else "",
            bare=thought is None,
            code=node.observation_code,
        )
        self._found.append(reply)
        for child in below:
            self.read(child, reply)


def _is_reply(thought: AnswerNode) -> bool:
    """Whether a thought is a reply of its own: entered by the search, or not with one call below."""
    below = thought.children or ()
    return (
        thought.expand_num > 0
        or thought.observation_code is not None
        or len(below) != 1
        or below[0].node_type != "Action"
    )


def _kind(node: AnswerNode) -> NodeKind:
    if node.observation_code == Code.ANSWER:
        return "answer"
    if node.observation_code == Code.GIVE_UP:
        return "give_up"
    if node.node_type == "Thought":
        return "thought" if node.observation_code is None else "failed"
    return "call"


def _arguments(node: AnswerNode) -> dict[str, Any]:
    """Return the arguments of an API call; none where there was no call or no JSON object."""
    if _kind(node) != "call" or node.observation_code == Code.UNKNOWN_FUNCTION:
        return {}
    try:
        value = wellformed.loads(node.description, strict=False)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
