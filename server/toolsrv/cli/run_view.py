"""A run as a tree on the terminal: one way down is a list, a fork indents its branches.

A path of twelve replies would leave no room for text if each stood below the other. What a node
is stands in words; colours only help.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from toolsrv.cli.output import console, note
from toolsrv.plain import one_line
from toolsrv.trees.drawing import badge
from toolsrv.trees.shown import ShownNode, ShownRun

if TYPE_CHECKING:
    from rich.text import Text
    from rich.tree import Tree

TEXT_LIMIT = 160
ANSWER_LIMIT = 2_000
_WITH = {"answer": "answers:"}
STYLES = {"answer": "bold green", "give_up": "yellow", "failed": "red", "call": "cyan"}


def show_run(run: ShownRun, *, full: bool) -> None:
    """Print a run: its task, its tree, its end; long texts are cut unless ``full``."""
    from rich.text import Text
    from rich.tree import Tree

    out = console()
    tree = Tree(Text(run.task, style="bold"), guide_style="dim")
    _Branches(run, full=full).grow(tree)
    out.print(tree)
    out.print()
    end = run.answer or run.reason
    out.print(Text.assemble((run.status.replace("_", " "), "bold"), ": ", end or "no answer"))
    if run.answer and run.reason and run.status not in {"answered", "replied"}:
        out.print(Text(run.reason))
    facts = "; ".join(f"{name} {value}" for name, value in run.facts.items())
    out.print(Text(facts, style="dim"))
    if any(node.winning for node in run.nodes):
        note("* on the path of the answer; pruned: the search turned back")
    if not full and any(_is_cut(node) for node in run.nodes):
        kept = any(node.has_response for node in run.nodes)
        whole = f"; whole responses: toolsrv run response {run.name} NODE" if kept else ""
        note(f"long texts are cut: --full shows them{whole}")


class _Branches:
    """Hangs the nodes below each other."""

    def __init__(self, run: ShownRun, *, full: bool) -> None:
        self._below = run.below()
        self._root = run.nodes[0]
        self._full = full

    def grow(self, tree: Tree) -> None:
        """Add everything below the root, without recursion."""
        stack: list[tuple[Tree, Sequence[ShownNode]]] = [(tree, self._after(self._root))]
        while stack:
            branch, nodes = stack.pop()
            forked = len(nodes) > 1
            for number, node in enumerate(nodes, 1):
                ways = f"way {number} of {len(nodes)}" if forked else ""
                hung = branch.add(self._label(node, ways))
                below = self._after(node)
                stack.append((hung if forked or len(below) > 1 else branch, below))

    def _after(self, node: ShownNode) -> Sequence[ShownNode]:
        return self._below.get(node.id, ())

    def _label(self, node: ShownNode, way: str) -> Text:
        from rich.text import Text

        style = "dim" if node.pruned else ""
        label = Text(style=style)
        label.append("* " if node.winning else "", style="bold green")
        label.append(f"{way}: " if way else "", style="italic")
        label.append(node.title, style="red" if not node.ok else STYLES.get(node.kind, ""))
        status = f" · HTTP {node.status}" * bool(node.status) + " · pruned" * node.pruned
        label.append(f"  {badge(node)}{status}", style="dim")
        for name, text in _texts(node):
            label.append(f"\n{name} ", style="dim")
            label.append(text if self._full else one_line(text, _limit(name)))
        return label


def _texts(node: ShownNode) -> list[tuple[str, str]]:
    told = [("thinks:", node.thought), (_WITH.get(node.kind, "with:"), node.arguments)]
    if node.kind == "call":
        told.append(("returned:", node.observation))
    return [(name, text) for name, text in told if text]


def _limit(name: str) -> int:
    return ANSWER_LIMIT if name == _WITH["answer"] else TEXT_LIMIT


def _is_cut(node: ShownNode) -> bool:
    return any(len(text) > _limit(name) for name, text in _texts(node))
