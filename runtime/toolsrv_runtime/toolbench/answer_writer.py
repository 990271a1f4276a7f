"""Write an outcome as a ToolBench answer file: tree, answer and training conversations.

DFSDT and CoT have one shape each (``answer_files``); ReACT is CoT with one try. Differences from
the reference: of several give-ups the first is written, not a random one, and ``total_tokens``
counts all prompts and replies. A conversation holds what the model read before a reply; of its
diversity messages only the last is kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from toolsrv_runtime.files import open_atomic_text
from toolsrv_runtime.outcome import Outcome, TreeNode, call_text
from toolsrv_runtime.search.tree import Code
from toolsrv_runtime.toolbench import environment
from toolsrv_runtime.toolbench.answer_files import (
    Answer,
    AnswerConversation,
    AnswerMessage,
    AnswerNode,
    AnswerTree,
    CotAnswer,
    CotTry,
    DfsAnswer,
    FunctionCall,
    Generation,
    Unfinished,
)
from toolsrv_runtime.toolbench.prompts import (
    HALLUCINATED_NAME,
    OUR_SENTENCES,
    PromptSentences,
    user_message,
)

_SAID = {Code.ANSWER: environment.ANSWERED_TEXT, Code.GIVE_UP: environment.GAVE_UP_TEXT}


class ReplyTree:
    """An outcome's nodes with their relations."""

    def __init__(self, outcome: Outcome) -> None:
        self.root = outcome.tree[0]
        self._nodes = {node.id: node for node in outcome.tree}
        self._below: dict[int, list[TreeNode]] = {}
        for node in outcome.tree[1:]:
            self._below.setdefault(node.parent, []).append(node)
        self._evidence = {one.node: one for one in outcome.evidence}
        self._same = {call_text(one.api_id, one.arguments): one for one in outcome.evidence}

    def below(self, node: TreeNode) -> list[TreeNode]:
        """Return the replies that followed a node, in order."""
        return self._below.get(node.id, [])

    def parent(self, node: TreeNode) -> TreeNode:
        """Return the node that a reply follows."""
        return self._nodes[node.parent]

    def path(self, node: TreeNode) -> list[TreeNode]:
        """Return the replies from below the root down to a node (inclusive)."""
        found = []
        while node.parent >= 0:
            found.append(node)
            node = self.parent(node)
        return found[::-1]

    def walk(self) -> Iterator[TreeNode]:
        """Yield all replies in pre-order, the root left out."""
        stack = self.below(self.root)[::-1]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(self.below(node)))

    def tried_before(self, node: TreeNode) -> list[TreeNode]:
        """Return the calls first made on each branch that its parent had before this reply."""
        found = []
        for one in self.below(self.parent(node)):
            if one.id == node.id:
                break
            first: TreeNode | None = one
            while first is not None and not first.function:
                first = next(iter(self.below(first)), None)
            if first is not None:
                found.append(first)
        return found

    def observation(self, node: TreeNode) -> str:
        """Return what a call showed, in the words and limits of ToolBench's service.

        An API's reply is its error and its value, ``str`` of it, whatever shorter form our model
        was given; what is no API's reply stays as it was shown.
        """
        if node.code in _SAID:
            return _SAID[Code(node.code)]
        if node.code == Code.UNKNOWN_FUNCTION:
            return environment.unknown_function(node.function).text
        seen = self._evidence.get(node.id) or self._same.get(call_text(node.api_id, node.arguments))
        if seen is None:
            return node.observation
        return environment.truncate_observation(seen.error, seen.response)


def conversations(
    replies: ReplyTree,
    path: Sequence[TreeNode],
    query: str,
    *,
    tools: str,
    words: PromptSentences,
    branches: bool,
) -> tuple[AnswerConversation, ...]:
    """Return one conversation per reply of a path, each up to that reply.

    ``branches`` is False for independent chains: they do not know of each other.
    """
    history = [
        AnswerMessage(role="system", content=words.system(tools)),
        AnswerMessage(role="user", content=user_message(query)),
    ]
    found = []
    for node in path:
        if branches and (tried := _tried(replies, node)):
            text = words.diversity(tried, _own(replies, node))
            history.append(AnswerMessage(role="user", content=text, valid=False))
        history.append(_assistant_message(node))
        found.append(_kept(history))
        if node.function:
            shown = replies.observation(node)
            history.append(AnswerMessage(role="function", name=_name(node), content=shown))
    return tuple(found)


def _tried(replies: ReplyTree, node: TreeNode) -> list[tuple[str, str, str]]:
    return [
        (one.function, one.text, replies.observation(one)) for one in replies.tried_before(node)
    ]


def _own(replies: ReplyTree, node: TreeNode) -> str:
    """Return the observation at the node that a reply follows; the root has none."""
    parent = replies.parent(node)
    return replies.observation(parent) if parent.function else ""


def _assistant_message(node: TreeNode) -> AnswerMessage:
    call = FunctionCall(name=_name(node), arguments=node.text) if node.function else None
    content = None if node.bare else node.thought
    return AnswerMessage(role="assistant", content=content, function_call=call)


def _name(node: TreeNode) -> str:
    return HALLUCINATED_NAME if node.code == Code.UNKNOWN_FUNCTION else node.function


def _kept(history: Sequence[AnswerMessage]) -> AnswerConversation:
    last = max((at for at, one in enumerate(history) if not one.valid), default=-1)
    return tuple(one for at, one in enumerate(history) if one.valid or at == last)


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
    words: PromptSentences = OUR_SENTENCES,
    faithful: bool = False,
) -> Answer:
    """Return the answer file of an outcome.

    A partial answer is no win and no valid data, and stands under our own key; ``faithful`` has it
    count as ToolBench counts every Finish.

    ``functions`` are the function objects that were available, Finish last
    (``FunctionList.to_json``), ``tools`` the numbered list of their tools (``tool_list_block``).
    """
    return _Writer(outcome, functions, tools, words, faithful=faithful).answer()


def write_answer(path: Path, answer: Answer) -> None:
    """Write an answer file as ToolBench does; it appears when it is complete.

    Raises:
        UsageError: no file can be made there.
        DataError: it cannot be written.
    """
    with open_atomic_text(path) as file:
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
        words: PromptSentences,
        *,
        faithful: bool,
    ) -> None:
        self._outcome = outcome
        self._functions = functions
        self._tools = tools
        self._words = words
        self._chains = outcome.strategy not in ("dfsdt", "dfs")
        self._replies = ReplyTree(outcome)
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
            tries.append(CotTry(chain=self._chain(last)))
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
        messages: tuple[AnswerConversation, ...] | None = (
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
    if outcome.status not in ("partial", "needs_input", "cancelled", "interrupted"):
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
