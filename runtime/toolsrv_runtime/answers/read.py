"""Answer files read: ToolBench's, StableToolBench's and our own.

Tolerant of what those differ in (``model``), exact about what is wrong: an error names the file and
the place in it. ``tree_of`` gives the tree in our own shape.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from toolsrv_registry import wellformed
from toolsrv_registry.errors import DataError
from toolsrv_runtime.answers.model import Answer, AnswerNode, CotAnswer, DfsAnswer
from toolsrv_runtime.file_in import read_text
from toolsrv_runtime.outcome import NodeKind, TreeNode
from toolsrv_runtime.search.tree import Code

MOST_BYTES = 64 * 1024 * 1024
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
    text = read_text(path, MOST_BYTES, hint=_HINT)
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
