"""Where the nodes of a tree stand: a tidy layout in linear time.

Buchheim, Juenger and Leipert, "Improving Walker's Algorithm to Run in Linear Time" (2002):
parents above the middle of their children, subtrees as close as they can be, equal subtrees drawn
alike. Without recursion, so that a path of thousands of nodes is no danger. Knows only indices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """Where a node stands: ``x`` in node widths from the left, ``level`` from the root."""

    x: float
    level: int


def places(children: Sequence[Sequence[int]]) -> list[Place]:
    """Return each node's place; ``children[i]`` are the children of node i, node 0 is the root.

    Nodes of one level are at least 1 apart; the leftmost stands at 0. O(nodes).
    """
    tidy = _Tidy(children)
    return tidy.places()


class _Tidy:
    """The paper's fields, one list each."""

    def __init__(self, children: Sequence[Sequence[int]]) -> None:
        count = len(children)
        self._children = children
        self._parent = [-1] * count
        self._number = [0] * count
        self._preliminary = [0.0] * count
        self._modifier = [0.0] * count
        self._shift = [0.0] * count
        self._change = [0.0] * count
        self._thread: list[int | None] = [None] * count
        self._ancestor = list(range(count))
        self._default = [below[0] if below else -1 for below in children]
        for node, below in enumerate(children):
            for number, child in enumerate(below):
                self._parent[child] = node
                self._number[child] = number

    def places(self) -> list[Place]:
        order = self._preorder()
        for node in self._postorder():
            self._finish(node)
        x = [0.0] * len(self._children)
        level = [0] * len(self._children)
        moved = [0.0] * len(self._children)
        for node in order:
            x[node] = self._preliminary[node] + moved[node]
            for child in self._children[node]:
                moved[child] = moved[node] + self._modifier[node]
                level[child] = level[node] + 1
        left = min((x[node] for node in order), default=0.0)
        return [Place(x[node] - left, level[node]) for node in range(len(x))]

    def _preorder(self) -> list[int]:
        found, stack = [], [0] if self._children else []
        while stack:
            node = stack.pop()
            found.append(node)
            stack.extend(reversed(self._children[node]))
        return found

    def _postorder(self) -> list[int]:
        found, stack = [], [0] if self._children else []
        while stack:
            node = stack.pop()
            found.append(node)
            stack.extend(self._children[node])
        return found[::-1]

    def _finish(self, node: int) -> None:
        """Place a node whose children are placed, then push its subtree off its left siblings."""
        below, parent, number = self._children[node], self._parent[node], self._number[node]
        middle = 0.0
        if below:
            self._spread(node)
            middle = (self._preliminary[below[0]] + self._preliminary[below[-1]]) / 2
        if number == 0:
            self._preliminary[node] = middle
        else:
            left = self._children[parent][number - 1]
            self._preliminary[node] = self._preliminary[left] + 1
            self._modifier[node] = self._preliminary[node] - middle if below else 0.0
            self._apportion(node, left, parent)

    def _apportion(self, node: int, left: int, parent: int) -> None:
        """Walk down both contours between a subtree and those left of it; part them."""
        inner_right, outer_right = node, node
        inner_left, outer_left = left, self._children[parent][0]
        sums = [self._modifier[one] for one in (inner_right, outer_right, inner_left, outer_left)]
        while True:
            next_left, next_right = self._right(inner_left), self._left(inner_right)
            if next_left is None or next_right is None:
                break
            inner_left, inner_right = next_left, next_right
            outer_left = _there(self._left(outer_left))
            outer_right = _there(self._right(outer_right))
            self._ancestor[outer_right] = node
            push = (
                self._preliminary[inner_left] + sums[2] - self._preliminary[inner_right] - sums[0]
            ) + 1
            if push > 0:
                self._move(self._greatest(inner_left, parent), node, push)
                sums[0] += push
                sums[1] += push
            for at, one in enumerate((inner_right, outer_right, inner_left, outer_left)):
                sums[at] += self._modifier[one]
        if next_left is not None and self._right(outer_right) is None:
            self._thread[outer_right] = next_left
            self._modifier[outer_right] += sums[2] - sums[1]
        if next_right is not None and self._left(outer_left) is None:
            self._thread[outer_left] = next_right
            self._modifier[outer_left] += sums[0] - sums[3]
            self._default[parent] = node

    def _greatest(self, node: int, parent: int) -> int:
        """Return the sibling below which a node of the left contour stands."""
        ancestor = self._ancestor[node]
        return ancestor if self._parent[ancestor] == parent else self._default[parent]

    def _move(self, first: int, last: int, push: float) -> None:
        """Push ``last`` to the right, and those between the two by their share of it."""
        between = self._number[last] - self._number[first]
        self._change[last] -= push / between
        self._shift[last] += push
        self._change[first] += push / between
        self._preliminary[last] += push
        self._modifier[last] += push

    def _spread(self, node: int) -> None:
        """Carry out the shares that were noted at the children."""
        shift = change = 0.0
        for child in reversed(self._children[node]):
            self._preliminary[child] += shift
            self._modifier[child] += shift
            change += self._change[child]
            shift += self._shift[child] + change

    def _left(self, node: int) -> int | None:
        below = self._children[node]
        return below[0] if below else self._thread[node]

    def _right(self, node: int) -> int | None:
        below = self._children[node]
        return below[-1] if below else self._thread[node]


def _there(node: int | None) -> int:
    """Return a node of an outer contour: it is at least as long as the inner one."""
    if node is None:
        raise AssertionError("an outer contour ended before the inner one")
    return node
