"""The search tree in ToolBench's shape: Thought, Action, Action Input nodes.

One model reply hangs a chain of up to three nodes below the current one. The tree knows nothing
about prompts, engines or budgets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Literal, Protocol, TypeVar

NodeType = Literal["Thought", "Action", "Action Input"]


class Code(IntEnum):
    """What a call came to, in ToolBench's numbers."""

    FAILED = -1
    OK = 0
    UNKNOWN_FUNCTION = 1
    BAD_FINISH = 2
    ANSWER = 3
    GIVE_UP = 4
    TIMEOUT = 5
    NOT_FOUND = 6
    UNAUTHORIZED = 7
    NOT_SUBSCRIBED = 8
    TOO_MANY = 9
    RATE_LIMITED = 10
    MESSAGE = 11
    ERROR = 12


class MoveLike(Protocol):
    """What the search needs to know of a model's reply; ``function`` "" means no call."""

    @property
    def thought(self) -> str | None:
        """What the model says it does; None when it said nothing."""

    @property
    def function(self) -> str:
        """The function it calls."""

    @property
    def arguments(self) -> str:
        """The arguments as JSON text."""


@dataclass(slots=True, eq=False)
class Node:
    """One node. ``order`` is the visit number (0: never entered); the root is an input node.

    ``closed``: its call only repeats what stands above it, so nothing is tried below.
    """

    kind: NodeType
    depth: int
    id: int
    parent: Node | None = None
    children: list[Node] = field(default_factory=list)
    description: str = ""
    observation: str = ""
    code: Code | None = None
    order: int = 0
    pruned: bool = False
    finished: bool = False
    terminal: bool = False
    closed: bool = False
    move: MoveLike | None = None

    def path(self) -> list[Node]:
        """Nodes from the root (inclusive) down to this one (inclusive)."""
        nodes: list[Node] = []
        node: Node | None = self
        while node is not None:
            nodes.append(node)
            node = node.parent
        return nodes[::-1]

    def calls(self) -> list[Node]:
        """The Action Input nodes on the path, root excluded: one per round."""
        return [n for n in self.path() if n.parent is not None and n.kind == "Action Input"]

    def tried(self) -> list[Node]:
        """The first Action Input below each child: what was already tried from here."""
        found = []
        for child in self.children:
            node = child
            while node.kind != "Action Input" and node.children:
                node = node.children[0]
            if node.kind == "Action Input":
                found.append(node)
        return found


class Tree:
    """A root and everything below it; node ids count creation, from 0 for the root."""

    def __init__(self) -> None:
        self._count = 0
        self.root = self._node("Action Input", None)

    def __len__(self) -> int:
        return self._count

    def add(self, parent: Node, move: MoveLike) -> Node:
        """Hang a reply below ``parent`` and return its last node."""
        node = parent
        if move.thought is not None:
            node = self._node("Thought", node, move.thought)
        if move.function:
            node = self._node("Action", node, move.function)
            node = self._node("Action Input", node, move.arguments)
        node.move = move
        return node

    def fail(self, parent: Node, reason: str) -> Node:
        """Hang a failed model call below ``parent``: a pruned Thought with the reason."""
        node = self._node("Thought", parent, reason)
        node.code, node.pruned = Code.FAILED, True
        return node

    def settle(self, node: Node, code: Code, observation: str, *, closed: bool = False) -> None:
        """Write what a call came to: terminal for an answer, pruned for a give-up or if closed."""
        node.code, node.observation = code, observation
        if code == Code.ANSWER:
            node.terminal = True
            _mark_finished(node)
        elif code == Code.GIVE_UP or closed:
            node.pruned, node.closed = True, closed

    def walk(self) -> Iterator[Node]:
        """All nodes in pre-order."""
        stack = [self.root]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children))

    def _node(self, kind: NodeType, parent: Node | None, description: str = "") -> Node:
        depth = 0 if parent is None else parent.depth + 1
        node = Node(kind, depth, self._count, parent, description=description)
        self._count += 1
        if parent is not None:
            parent.children.append(node)
        return node


def _mark_finished(node: Node) -> None:
    """Set the reference's cosmetic flag: up to the third Action Input from the answer."""
    inputs = 0
    current: Node | None = node
    while current is not None:
        current.finished = True
        inputs += current.kind == "Action Input"
        if inputs == 3:
            break
        current = current.parent


class Placed(Protocol):
    """What the order of a finished tree needs to know of a node; the root's parent is -1."""

    @property
    def id(self) -> int:
        """The node's number."""

    @property
    def parent(self) -> int:
        """The number of the node above it."""


P = TypeVar("P", bound=Placed)


def pre_order(nodes: Iterable[P]) -> Iterator[P]:
    """Yield the root, then each node before those below it; siblings as they are given."""
    below: dict[int, list[P]] = {}
    for node in nodes:
        below.setdefault(node.parent, []).append(node)
    waiting = below.get(-1, [])
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(below.get(node.id, ())))
