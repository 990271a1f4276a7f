"""The tree of a run as SVG: boxes and lines, each node told by shape and words, not by colour.

Everything is escaped. Knows nothing of the page around it; ``page.css`` gives the colours.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from toolsrv.plain import one_line
from toolsrv.trees.layout import Place, places
from toolsrv.trees.shown import ShownNode, ShownRun

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


def look(node: ShownNode) -> str:
    """Return how a node looks: a key of ``MARKS``."""
    return "call-bad" if node.kind == "call" and not node.ok else node.kind


def mark(name: str) -> str:
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
    stand = places(children)
    width = 2 * MARGIN + WIDTH + round(max(one.x for one in stand) * ACROSS)
    height = 2 * MARGIN + HEIGHT + max(one.level for one in stand) * DOWN
    head = (
        f'<svg id="tree" role="tree" aria-label="Search tree" width="{width}" '
        f'height="{height}" viewBox="0 0 {width} {height}">'
        f'<clipPath id="box"><rect width="{WIDTH - 8}" height="{HEIGHT}"/></clipPath>'
    )
    boxes = (_box(node, stand[index], _said(run, node)) for index, node in enumerate(run.nodes))
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


def _lines(run: ShownRun, at: dict[int, int], stand: list[Place]) -> Iterator[str]:
    for index, node in enumerate(run.nodes[1:], 1):
        x1, y1 = _corner(stand[at[node.parent]])
        x2, y2 = _corner(stand[index])
        x1, y1, x2 = x1 + WIDTH // 2, y1 + HEIGHT, x2 + WIDTH // 2
        half = (y1 + y2) // 2
        yield f'<path class="{_state("line", node)}" d="M{x1} {y1}C{x1} {half} {x2} {half} {x2} {y2}"/>'


def _box(node: ShownNode, place: Place, said: str) -> str:
    x, y = _corner(place)
    name = look(node)
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


def _said(run: ShownRun, node: ShownNode) -> str:
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


def _corner(place: Place) -> tuple[int, int]:
    return MARGIN + round(place.x * ACROSS), MARGIN + place.level * DOWN


def _cut(text: str, limit: int) -> str:
    return escape(one_line(text, limit))
