"""The tree of a run as SVG: layout and boxes.

The layout is linear: Buchheim, Juenger and Leipert, "Improving Walker's Algorithm to Run in Linear
Time" (2002). It runs without recursion, so that a path of thousands of nodes is no danger. A node
is told by shape and words, not by colour. Everything is escaped. ``page.css`` gives the colours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from toolsrv.plain import one_line
from toolsrv.trees.shown import ShownNode, ShownRun


@dataclass(frozen=True, slots=True)
class NodePosition:
    """Where a node stands: ``x`` in node widths from the left, ``level`` from the root."""

    x: float
    level: int


def layout_tree(children: Sequence[Sequence[int]]) -> list[NodePosition]:
    """Return each node's place; ``children[i]`` are the children of node i, node 0 is the root.

    Nodes of one level are at least 1 apart; the leftmost stands at 0. O(nodes).
    """
    tidy = _TidyLayout(children)
    return tidy.places()


class _TidyLayout:
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

    def places(self) -> list[NodePosition]:
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
        return [NodePosition(x[node] - left, level[node]) for node in range(len(x))]

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
            outer_left = _contour_node(self._left(outer_left))
            outer_right = _contour_node(self._right(outer_right))
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


def _contour_node(node: int | None) -> int:
    """Return a node of an outer contour: it is at least as long as the inner one."""
    if node is None:
        raise AssertionError("an outer contour ended before the inner one")
    return node


WIDTH, HEIGHT = 216, 94
ACROSS, DOWN = WIDTH + 22, HEIGHT + 42
MARGIN = 16
NAME_LIMIT, LINE_LIMIT = 20, 29
"""Characters that fit the lines of a box; what is wider yet is cut by the box."""

MARKS = {
    "root": "M2 8a6 6 0 1 0 12 0a6 6 0 1 0-12 0",
    "thought": "M8 1.5L14.5 8L8 14.5L1.5 8Z",
    "call": "M2 3h12v10h-12Z",
    "call-bad": "M8 1.5L15 14.5H1Z",
    "answer": "M8 1l2 4.6 5 .4-3.8 3.3 1.2 4.9L8 11.6l-4.4 2.6 1.2-4.9L1 6l5-.4Z",
    "give_up": "M3 1.5L8 6.5L13 1.5L14.5 3L9.5 8L14.5 13L13 14.5L8 9.5L3 14.5L1.5 13L6.5 8L1.5 3Z",
    "failed": "M5 1h6l4 4v6l-4 4H5l-4-4V5Z",
}
"""One shape per kind of node, drawn on 16 x 16."""
NAMES = {
    "root": "the task",
    "thought": "a thought",
    "call": "a call",
    "call-bad": "a call that failed",
    "answer": "the answer",
    "give_up": "gave up",
    "failed": "no usable reply",
}


def shape_of(node: ShownNode) -> str:
    """Return how a node looks: a key of ``MARKS``."""
    return "call-bad" if node.kind == "call" and not node.ok else node.kind


def shape_svg(name: str) -> str:
    """Return a small drawing of a shape, for legend and headings."""
    return (
        f'<svg class="mark {name}" viewBox="0 0 16 16" aria-hidden="true">'
        f'<path d="{MARKS[name]}"/></svg>'
    )


def svg(run: ShownRun) -> str:
    """Return the tree as an SVG element, lines first, then the nodes in pre-order."""
    at = {node.id: index for index, node in enumerate(run.nodes)}
    children: list[list[int]] = [[] for _ in run.nodes]
    for index, node in enumerate(run.nodes[1:], 1):
        children[at[node.parent]].append(index)
    stand = layout_tree(children)
    width = 2 * MARGIN + WIDTH + round(max(one.x for one in stand) * ACROSS)
    height = 2 * MARGIN + HEIGHT + max(one.level for one in stand) * DOWN
    head = (
        f'<svg id="tree" role="tree" aria-label="Search tree" width="{width}" '
        f'height="{height}" viewBox="0 0 {width} {height}">'
        f'<clipPath id="box"><rect width="{WIDTH - 8}" height="{HEIGHT}"/></clipPath>'
    )
    boxes = (
        _box(node, stand[index], _node_text(run, node)) for index, node in enumerate(run.nodes)
    )
    return "".join([head, *_lines(run, at, stand), *boxes, "</svg>"])


def badge(node: ShownNode) -> str:
    """Return number, code, tokens and time of a node in one line."""
    parts = [f"#{node.id}"]
    if node.code is not None:
        parts.append(f"code {node.code} {node.outcome}")
    if node.tokens is not None:
        parts.append(f"{node.tokens:,} tokens")
    if node.seconds is not None:
        parts.append(seconds(node.seconds))
    return " · ".join(parts)


def seconds(value: float) -> str:
    """Return a time with as many decimals as it deserves."""
    return f"{value:.1f} s" if value >= 10 else f"{value:.2f} s"


def _lines(run: ShownRun, at: dict[int, int], stand: list[NodePosition]) -> Iterator[str]:
    for index, node in enumerate(run.nodes[1:], 1):
        x1, y1 = _corner(stand[at[node.parent]])
        x2, y2 = _corner(stand[index])
        x1, y1, x2 = x1 + WIDTH // 2, y1 + HEIGHT, x2 + WIDTH // 2
        half = (y1 + y2) // 2
        yield f'<path class="{_state("line", node)}" d="M{x1} {y1}C{x1} {half} {x2} {half} {x2} {y2}"/>'


def _box(node: ShownNode, place: NodePosition, said: str) -> str:
    x, y = _corner(place)
    name = shape_of(node)
    label = f"{NAMES[name]}: {one_line(node.title, 80)}; {badge(node)}"
    label += "; on the way to the answer" * node.winning + "; the search turned back" * node.pruned
    word = "on the answer path" * node.winning + "pruned" * (node.pruned and not node.winning)
    return (
        f'<g class="{_state("node " + name, node)}" transform="translate({x} {y})" role="treeitem" '
        f'tabindex="-1" id="n{node.id}" data-parent="{node.parent}" aria-level="{place.level + 1}" '
        f'aria-selected="false" aria-label="{escape(label)}">'
        f'<rect class="card" width="{WIDTH}" height="{HEIGHT}" rx="{2 if name == "call-bad" else 10}"/>'
        f'<path class="mark" transform="translate(10 9)" d="{MARKS[name]}"/>'
        f'<g clip-path="url(#box)"><text class="name" x="34" y="22">{_cut(node.title, NAME_LIMIT)}</text>'
        f'<text x="10" y="44">{_cut(said, LINE_LIMIT)}</text>'
        f'<text class="small" x="10" y="64">{_cut(_short(node), 34)}</text>'
        f'<text class="small" x="10" y="83">{word}</text></g></g>'
    )


def _node_text(run: ShownRun, node: ShownNode) -> str:
    """Return what a box says of its node: the most telling text."""
    if node.kind == "root":
        return run.task
    if node.kind == "answer":
        return node.arguments
    return node.thought or node.arguments or node.observation


def _short(node: ShownNode) -> str:
    parts = [f"#{node.id}"]
    if node.kind == "call":
        parts.append(str(node.status) if node.status else node.outcome or "no call")
    if node.tokens is not None:
        parts.append(f"{node.tokens} tok")
    if node.seconds is not None:
        parts.append(seconds(node.seconds))
    return " · ".join(parts)


def _state(base: str, node: ShownNode) -> str:
    return base + " winning" * node.winning + " pruned" * node.pruned


def _corner(place: NodePosition) -> tuple[int, int]:
    return MARGIN + round(place.x * ACROSS), MARGIN + place.level * DOWN


def _cut(text: str, limit: int) -> str:
    return escape(one_line(text, limit))
