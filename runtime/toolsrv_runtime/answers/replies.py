"""The tree of an outcome as ToolBench would tell it: observations, codes, what was tried.

The one reading of an outcome that the tree and the conversations of an answer file share.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from toolsrv_runtime.formats import toolbench_env
from toolsrv_runtime.outcome import Outcome, TreeNode
from toolsrv_runtime.search.tree import Code

_SAID = {Code.ANSWER: toolbench_env.ANSWERED, Code.GIVE_UP: toolbench_env.GAVE_UP}


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
            return toolbench_env.no_such(node.function).text
        seen = self._evidence.get(node.id) or self._same.get(_key(node.api_id, node.arguments))
        if seen is None:
            return node.observation
        return toolbench_env.observation(seen.error, seen.response)


def _key(api_id: str, arguments: dict[str, Any]) -> str:
    return f"{api_id} {json.dumps(arguments, sort_keys=True, default=str)}"
