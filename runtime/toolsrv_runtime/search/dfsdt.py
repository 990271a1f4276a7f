"""DFSDT, the depth-first search-based decision tree of ToolLLM (paper 2.3, spec: formats 5.2).

A generator: it yields what it wants (``Think`` at a node, ``Act`` a node's call) and is sent the
outcome. ``dfs`` speaks the same protocol and has one wish more (``Compare``). Whoever drives it
decides how long; closing the generator ends the search at once.
Replies are O(width ** rounds) at worst and bounded by ``max_replies``.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field

from toolsrv_runtime.search.tree import Code, MoveLike, Node, Tree

BACK = 2
"""Levels a give-up (or a further answer) goes back: ToolBench's two constants of 5.2."""

FOUND = 10_000
EXHAUSTED = 100_000


@dataclass(frozen=True, slots=True)
class Think:
    """Ask the model for the next move at ``node``; answer with a move, or a reason for none."""

    node: Node


@dataclass(frozen=True, slots=True)
class Act:
    """Carry out ``node``'s call; answer with its code and observation."""

    node: Node


@dataclass(frozen=True, slots=True)
class Left:
    """The search turned back at ``node`` and goes on with another child of ``to``; no answer."""

    node: Node
    to: Node
    reason: str


@dataclass(frozen=True, slots=True)
class Compare:
    """Ask the model which of two replies below ``node`` is better; True when ``first`` is.

    A reply is named by its last node.
    """

    node: Node
    first: Node
    second: Node


@dataclass(frozen=True, slots=True)
class Observed:
    """What a call came to; ``closed`` says that nothing is to be tried below it."""

    code: Code
    text: str
    closed: bool = False


@dataclass(frozen=True, slots=True)
class Divide:
    """Ask the model for the subtasks of the task; answer with a move for each, its thought the subtask."""

    node: Node


@dataclass(frozen=True, slots=True)
class Begin:
    """The search goes on below ``node`` with a subtask (None: the whole task again); no answer.

    ``solved``: whether the subtask before it was.
    """

    node: Node
    part: int | None
    solved: bool


Wish = Think | Act | Left | Compare | Divide | Begin
Answer = MoveLike | Observed | str | bool | tuple[MoveLike, ...] | None
"""A move (to Think), Observed (to Act), a reason (to Think that failed), a bool (to Compare), moves
(to Divide), None (to Left and Begin)."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The search's constants, with ToolBench's defaults.

    ``depth`` counts tree nodes, not rounds: a reply with a thought and a call is three of them.
    ``retry_root``: a give-up as very first move costs the root one child, where the reference
    ends the whole search (spec: summary point 12).
    """

    width: int = 2
    depth: int = 12
    answers: int = 1
    max_replies: int = 200
    retry_root: bool = False


@dataclass(slots=True)
class Findings:
    """What a search has found so far; readable at any time.

    ``start`` is where the search begins, None for the root. ``part``: it serves a subtask, and a
    reply that only thinks ends it.
    """

    tree: Tree = field(default_factory=Tree)
    answers: list[Node] = field(default_factory=list)
    give_ups: list[Node] = field(default_factory=list)
    replies: int = 0
    start: Node | None = None
    part: bool = False

    @property
    def root(self) -> Node:
        """Where the search begins."""
        return self.start or self.tree.root

    def is_end(self, node: Node) -> bool:
        """Whether a node is an answer, or the end of a subtask."""
        if not self.part:
            return node.terminal
        return node is not self.start and node.kind == "Thought" and node.move is not None

    def is_over(self, node: Node) -> bool:
        """Whether nothing is tried below a node; a search begins wherever another one ended."""
        return self.is_end(node) or (node.pruned and node is not self.start)

    def collect(self) -> None:
        """Take over the answers that were written and not entered, where none was.

        ``dfs`` writes all children of a node before it enters one, and may be ended in between.
        """
        self.answers = self.answers or [node for node in self.tree.walk() if node.terminal]


def dfsdt(findings: Findings, rules: Rules) -> Generator[Wish, Answer, int]:
    """Search until ``rules.answers`` answers are found or nothing is left to try.

    Returns the reference's return value: 10000 found, near 100000 out of replies (one less per
    level), else 1.
    """
    visits = first_order(findings)

    def enter(node: Node) -> Generator[Wish, Answer, int]:
        nonlocal visits
        if node is not findings.start:
            node.order = visits
            visits += 1
        if node.depth >= rules.depth or findings.is_over(node):
            return leave(findings, node)
        for child in range(rules.width):
            move = yield Think(node)
            findings.replies += 1
            if findings.replies >= rules.max_replies:
                return EXHAUSTED
            leaf = yield from grow(findings, node, move)
            result = yield from enter(leaf)
            if len(findings.answers) >= rules.answers:
                return FOUND
            if result > 1 and not (rules.retry_root and node is findings.root):
                return result - 1
            if child + 1 < rules.width:
                yield Left(leaf, node, why(leaf))
        return 1

    return (yield from enter(findings.root))


def first_order(findings: Findings) -> int:
    """Return the visit number of the first node that a search enters."""
    if findings.start is None:
        return 0
    return 1 + max(node.order for node in findings.tree.walk())


def grow(findings: Findings, node: Node, move: Answer) -> Generator[Wish, Answer, Node]:
    """Hang a reply below ``node``, have its call carried out, and return its last node."""
    if isinstance(move, str):
        return findings.tree.fail(node, move)
    if move is None or isinstance(move, Observed | bool | tuple):
        raise TypeError(f"Think needs a move or a reason, not {move!r}")
    leaf = findings.tree.add(node, move)
    if leaf.kind == "Action Input":
        seen = yield Act(leaf)
        if not isinstance(seen, Observed):
            raise TypeError(f"Act needs an observation, not {seen!r}")
        findings.tree.settle(leaf, seen.code, seen.text, closed=seen.closed)
    return leaf


def leave(findings: Findings, node: Node) -> int:
    """Record a node below which nothing is tried; return how many levels the search goes back."""
    if findings.is_end(node):
        findings.answers.append(node)
        return BACK
    node.pruned = True
    if node.code == Code.GIVE_UP:
        findings.give_ups.append(node)
        return BACK
    return 1


def why(leaf: Node) -> str:
    """Return in a few words why the search turns back at ``leaf``."""
    if leaf.code == Code.GIVE_UP:
        return "gave up"
    if leaf.code == Code.FAILED:
        return leaf.description
    if leaf.closed:
        return "says the same again"
    return "nothing better below" if leaf.children else "too deep"
