"""From an outcome to ToolBench's answer file: the tree, the answer, the conversations.

DFSDT and CoT have a shape each (``model``); ReACT is CoT with one try, CoT@N with up to N. Differences to the
reference, which come from what an outcome is: of several give-ups the first is told, not a random
one, and ``total_tokens`` are those of all prompts and replies.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from toolsrv_runtime.answers.conversation import conversations
from toolsrv_runtime.answers.model import (
    Answer,
    AnswerNode,
    AnswerTree,
    Conversation,
    CotAnswer,
    DfsAnswer,
    Generation,
    Try,
    Unfinished,
)
from toolsrv_runtime.answers.replies import Replies
from toolsrv_runtime.answers.words import OURS, Words
from toolsrv_runtime.atomic import fresh_text
from toolsrv_runtime.outcome import Outcome, TreeNode

NodeType = Literal["Thought", "Action", "Action Input"]
_FINISHED_INPUTS = 3


def method_of(outcome: Outcome) -> str:
    """Return ToolBench's name of the method: a file is ``<query id>_<method>.json``."""
    if outcome.strategy == "dfsdt":
        return f"DFS_woFilter_w{outcome.width}"
    if outcome.strategy == "dfs":
        return f"DFS_w{outcome.width}"
    return f"CoT@{outcome.chains}"


def answer_of(
    outcome: Outcome,
    functions: Sequence[Mapping[str, Any]],
    *,
    tools: str = "",
    words: Words = OURS,
    faithful: bool = False,
) -> Answer:
    """Return the answer file of an outcome.

    A partial answer is no win and no valid data, and stands under our own key; ``faithful`` has it
    count as ToolBench counts every Finish.

    ``functions`` are the function objects that were on offer, Finish last
    (``FunctionList.to_json``), ``tools`` the numbered list of their tools (``tool_list_block``).
    """
    return _Writer(outcome, functions, tools, words, faithful=faithful).answer()


def write_answer(path: Path, answer: Answer) -> None:
    """Write an answer file as ToolBench does; it appears when it is complete.

    Raises:
        UsageError: no file can be made there.
        DataError: it cannot be written.
    """
    with fresh_text(path) as file:
        json.dump(answer.document(), file, indent=2)


@dataclass(slots=True, eq=False)
class _Node:
    """A node while the tree grows."""

    kind: NodeType
    description: str
    parent: _Node | None
    depth: int = 0
    pruned: bool = False
    finished: bool = False
    observation: str = ""
    code: int | None = None
    order: int = 0
    below: list[_Node] = field(default_factory=list)

    def path(self) -> list[_Node]:
        """Nodes from below the root down to this one."""
        found, node = [], self
        while node.parent is not None:
            found.append(node)
            node = node.parent
        return found[::-1]


class _Writer:
    def __init__(
        self,
        outcome: Outcome,
        functions: Sequence[Mapping[str, Any]],
        tools: str,
        words: Words,
        *,
        faithful: bool,
    ) -> None:
        self._outcome = outcome
        self._functions = functions
        self._tools = tools
        self._words = words
        self._chains = outcome.strategy not in ("dfsdt", "dfs")
        self._replies = Replies(outcome)
        self._root = _Node("Action Input", "", None, order=self._replies.root.order)
        self._ends = {self._replies.root.id: self._root}
        for node in self._replies.walk():
            self._ends[node.id] = self._grow(node)
        self._counts = faithful or outcome.status not in ("partial", "needs_input")
        self._answers = [n for n in self._replies.walk() if n.kind == "answer" and self._counts]
        if not self._chains:
            for node in self._answers:
                _finish(self._ends[node.id])

    def answer(self) -> Answer:
        return self._cot() if self._chains else self._dfs()

    def _dfs(self) -> DfsAnswer:
        nodes = self._walk()
        gave_up = [n for n in self._replies.walk() if n.kind == "give_up" and self._counts]
        chosen = next(iter([*self._answers, *gave_up]), None)
        finish_type = "give_up" if chosen and chosen.kind == "give_up" else "give_answer"
        return DfsAnswer(
            win=bool(self._answers),
            tree=AnswerTree(
                size=len(nodes),
                max_length=max(one.depth for one in nodes) + 1,
                tree=self._shown(self._root, deep=True),
            ),
            forward_args={
                "single_chain_max_step": self._outcome.depth,
                "tree_beam_size": self._outcome.width,
                "max_query_count": self._outcome.limits.model_calls,
                "answer": 1,
                "with_filter": self._outcome.strategy == "dfs",
            },
            compare_candidates=self._candidates(),
            answer_generation=self._generation(chosen, finish_type),
            toolsrv=_unfinished(self._outcome),
        )

    def _cot(self) -> CotAnswer:
        tries = []
        for first in self._root.below:
            last = first
            while last.below:
                last = last.below[0]
            tries.append(Try(chain=self._chain(last)))
        return CotAnswer(
            win=bool(self._answers),
            try_count=len(tries),
            trys=tuple(tries),
            compare_candidates=self._candidates(),
            forward_args={
                "single_chain_max_step": self._outcome.depth,
                "pass_at": max(self._outcome.chains, len(tries)),
                "answer": 1,
            },
            answer_generation=self._generation(next(iter(self._answers), None), None),
            toolsrv=_unfinished(self._outcome),
        )

    def _generation(self, chosen: TreeNode | None, finish_type: str | None) -> Generation:
        usage = self._outcome.usage
        messages: tuple[Conversation, ...] | None = (
            None if chosen is None and not self._chains else ()
        )
        if chosen is not None:
            messages = conversations(
                self._replies,
                self._replies.path(chosen),
                self._outcome.task,
                tools=self._tools,
                words=self._words,
                branches=not self._chains,
            )
        return Generation(
            valid_data=chosen is not None,
            query_count=usage.model_calls,
            total_tokens=usage.prompt_tokens + usage.generated_tokens,
            final_answer=chosen.text if chosen else "",
            finish_type=finish_type,
            function=tuple(dict(one) for one in self._functions),
            train_messages=messages,
            query=self._outcome.task,
        )

    def _candidates(self) -> tuple[tuple[AnswerNode, ...], ...]:
        return tuple(self._chain(self._ends[node.id]) for node in self._answers)

    def _chain(self, last: _Node) -> tuple[AnswerNode, ...]:
        return tuple(self._shown(node, deep=False) for node in last.path())

    def _walk(self) -> list[_Node]:
        """Return all nodes, the root included."""
        found, stack = [], [self._root]
        while stack:
            node = stack.pop()
            found.append(node)
            stack.extend(node.below)
        return found

    def _grow(self, reply: TreeNode) -> _Node:
        """Hang a reply's nodes below its parent's last and return its own last."""
        node = self._ends[reply.parent]
        parts: list[tuple[NodeType, str]] = []
        if not reply.bare:
            parts.append(("Thought", reply.thought))
        if reply.function:
            parts += [("Action", reply.function), ("Action Input", reply.text)]
        for kind, description in parts:
            below = _Node(kind, description, node, node.depth + 1)
            node.below.append(below)
            node = below
        node.pruned = reply.pruned
        node.code = reply.code
        node.order = 0 if self._chains else reply.order
        node.observation = self._replies.observation(reply) if reply.function else ""
        return node

    def _shown(self, node: _Node, *, deep: bool) -> AnswerNode:
        return AnswerNode(
            pruned=node.pruned,
            finished=node.finished,
            depth=node.depth,
            node_type=node.kind,
            description=node.description,
            observation=node.observation,
            observation_code=node.code,
            child_count=len(node.below),
            expand_num=node.order,
            io_state={} if node.kind == "Action Input" else None,
            children=tuple(self._shown(n, deep=True) for n in node.below) if deep else None,
        )


def _unfinished(outcome: Outcome) -> Unfinished | None:
    """Return how a search ended that was ended before it had a whole answer."""
    if outcome.status not in ("partial", "needs_input", "cancelled"):
        return None
    return Unfinished(
        status=outcome.status,
        answer=outcome.answer,
        reason=outcome.reason,
        missing=outcome.missing,
    )


def _finish(node: _Node) -> None:
    """Set the reference's flag: up to the third Action Input from the answer."""
    inputs = 0
    above: _Node | None = node
    while above is not None and inputs < _FINISHED_INPUTS:
        above.finished = True
        inputs += above.kind == "Action Input"
        above = above.parent
