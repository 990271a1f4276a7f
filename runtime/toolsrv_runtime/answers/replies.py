"""The tree of an outcome as ToolBench would tell it: observations, codes, what was tried.

The one reading of an outcome that the tree and the conversations of an answer file share.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from toolsrv_runtime.outcome import Evidence, Outcome, TreeNode
from toolsrv_runtime.search.tree import Code

RESPONSE_LIMIT = 2048
OBSERVATION_LIMIT = 1024
"""Characters of a response and of the whole observation (spec: 4.4 and 6.1)."""

_SAID = {
    Code.ANSWER: '{"response":"successfully giving the final answer."}',
    Code.GIVE_UP: '{"response":"chose to give up and restart"}',
}


class Replies:
    """An outcome's nodes with their relations."""

    def __init__(self, outcome: Outcome) -> None:
        self.root = outcome.tree[0]
        self._nodes = {node.id: node for node in outcome.tree}
        self._below: dict[int, list[TreeNode]] = {}
        for node in outcome.tree[1:]:
            self._below.setdefault(node.parent, []).append(node)
        self._evidence = {one.node: one for one in outcome.evidence}
        self._same = {_key(one.api_id, one.arguments): one for one in outcome.evidence}

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
            return _reply(f"No such function name: {node.function}", "")
        seen = self._evidence.get(node.id) or self._same.get(_key(node.api_id, node.arguments))
        return node.observation if seen is None else _reply(seen.error, _response(seen))


def _reply(error: str, response: str) -> str:
    text = json.dumps({"error": error, "response": response})
    return text if len(text) <= OBSERVATION_LIMIT else f"{text[:OBSERVATION_LIMIT]}..."


def _response(seen: Evidence) -> str:
    return "" if seen.response is None else str(seen.response)[:RESPONSE_LIMIT]


def _key(api_id: str, arguments: dict[str, Any]) -> str:
    return f"{api_id} {json.dumps(arguments, sort_keys=True, default=str)}"
