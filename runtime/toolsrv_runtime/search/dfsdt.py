"""Search strategies as generators of effects: DFSDT, ranked DFS, ReACT and CoT@N, decomposition.

A strategy yields effects (``Think``, ``Act``, ``Compare``, ``Backtrack``, ``Decompose``,
``BeginSubtask``) and is sent their results. The driver decides how long it runs; closing the
generator ends the search at once. ``dfsdt``: depth-first search-based decision tree (ToolLLM paper
2.3), O(width ** rounds) replies at worst, bounded by ``max_replies``. ``dfs``:
all children of a node are made first, compared in pairs and entered best first; w * (w - 1)
comparisons a node. ``react``: up to N independent chains. ``decomposed``: one
search below another for each subtask, then one for the whole task. Does no I/O; knows no prompts or
engines.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

from toolsrv_runtime.search.tree import Code, MoveLike, Node, Tree

BACKTRACK_LEVELS = 2
"""Levels a give-up (or a further answer) goes back: ToolBench's two constants of 5.2."""

FOUND = 10_000
EXHAUSTED = 100_000


@dataclass(frozen=True, slots=True)
class Think:
    """Ask the model for the next action at ``node``; send an action, or a reason for none."""

    node: Node


@dataclass(frozen=True, slots=True)
class Act:
    """Carry out ``node``'s call; answer with its code and observation."""

    node: Node


@dataclass(frozen=True, slots=True)
class Backtrack:
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
class Observation:
    """What a call came to; ``closed`` says that nothing is to be tried below it."""

    code: Code
    text: str
    closed: bool = False


@dataclass(frozen=True, slots=True)
class Decompose:
    """Ask the model for subtasks; send an action for each, with the subtask as its thought."""

    node: Node


@dataclass(frozen=True, slots=True)
class BeginSubtask:
    """The search goes on below ``node`` with a subtask (None: the whole task again); no answer.

    ``solved``: whether the subtask before it was.
    """

    node: Node
    part: int | None
    solved: bool


Effect = Think | Act | Backtrack | Compare | Decompose | BeginSubtask
EffectResult = MoveLike | Observation | str | bool | tuple[MoveLike, ...] | None
"""An action (Think), an Observation (Act), a reason (failed Think), a bool (Compare), actions
(to Divide), None (to Left and Begin)."""


@dataclass(frozen=True, slots=True)
class SearchRules:
    """The search's constants, with ToolBench's defaults.

    ``depth`` counts tree nodes, not rounds: a reply with a thought and a call is three of them.
    ``retry_root``: a give-up as the first action costs the root one child, where the reference
    ends the whole search.
    """

    width: int = 2
    depth: int = 12
    answers: int = 1
    max_replies: int = 200
    retry_root: bool = False


@dataclass(slots=True)
class SearchState:
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


def dfsdt(findings: SearchState, rules: SearchRules) -> Generator[Effect, EffectResult, int]:
    """Search until ``rules.answers`` answers are found or nothing is left to try.

    Returns the reference's return value: 10000 found, near 100000 out of replies (one less per
    level), else 1.
    """
    visits = first_order(findings)

    def enter(node: Node) -> Generator[Effect, EffectResult, int]:
        nonlocal visits
        if node is not findings.start:
            node.order = visits
            visits += 1
        if node.depth >= rules.depth or findings.is_over(node):
            return close_node(findings, node)
        for child in range(rules.width):
            move = yield Think(node)
            findings.replies += 1
            if findings.replies >= rules.max_replies:
                return EXHAUSTED
            leaf = yield from expand(findings, node, move)
            result = yield from enter(leaf)
            if len(findings.answers) >= rules.answers:
                return FOUND
            if result > 1 and not (rules.retry_root and node is findings.root):
                return result - 1
            if child + 1 < rules.width:
                yield Backtrack(leaf, node, backtrack_reason(leaf))
        return 1

    return (yield from enter(findings.root))


def first_order(findings: SearchState) -> int:
    """Return the visit number of the first node that a search enters."""
    if findings.start is None:
        return 0
    return 1 + max(node.order for node in findings.tree.walk())


def expand(
    findings: SearchState, node: Node, move: EffectResult
) -> Generator[Effect, EffectResult, Node]:
    """Hang a reply below ``node``, have its call carried out, and return its last node."""
    if isinstance(move, str):
        return findings.tree.fail(node, move)
    if move is None or isinstance(move, Observation | bool | tuple):
        raise TypeError(f"Think needs a move or a reason, not {move!r}")
    leaf = findings.tree.add(node, move)
    if leaf.kind == "Action Input":
        seen = yield Act(leaf)
        if not isinstance(seen, Observation):
            raise TypeError(f"Act needs an observation, not {seen!r}")
        findings.tree.settle(leaf, seen.code, seen.text, closed=seen.closed)
    return leaf


def close_node(findings: SearchState, node: Node) -> int:
    """Record a node below which nothing is tried; return how many levels the search goes back."""
    if findings.is_end(node):
        findings.answers.append(node)
        return BACKTRACK_LEVELS
    node.pruned = True
    if node.code == Code.GIVE_UP:
        findings.give_ups.append(node)
        return BACKTRACK_LEVELS
    return 1


def backtrack_reason(leaf: Node) -> str:
    """Return in a few words why the search turns back at ``leaf``."""
    if leaf.code == Code.GIVE_UP:
        return "gave up"
    if leaf.code == Code.FAILED:
        return leaf.description
    if leaf.closed:
        return "says the same again"
    return "nothing better below" if leaf.children else "too deep"


def dfs(findings: SearchState, rules: SearchRules) -> Generator[Effect, EffectResult, int]:
    """Search as ``dfsdt`` does, best child first; returns the same values."""
    visits = first_order(findings)

    def enter(node: Node) -> Generator[Effect, EffectResult, int]:
        nonlocal visits
        if node is not findings.start:
            node.order = visits
            visits += 1
        if node.depth >= rules.depth or findings.is_over(node):
            return close_node(findings, node)
        leaves: list[Node] = []
        for _ in range(rules.width):
            move = yield Think(node)
            findings.replies += 1
            if findings.replies >= rules.max_replies:
                return EXHAUSTED
            leaves.append((yield from expand(findings, node, move)))
        ranked = yield from rank_children(findings, node, leaves)
        for index, leaf in enumerate(ranked):
            result = yield from enter(leaf)
            if len(findings.answers) >= rules.answers:
                return FOUND
            if result > 1 and not (rules.retry_root and node is findings.root):
                return result - 1
            if index + 1 < len(ranked):
                yield Backtrack(leaf, node, backtrack_reason(leaf))
        return 1

    return (yield from enter(findings.root))


def rank_children(
    findings: SearchState, node: Node, leaves: Sequence[Node]
) -> Generator[Effect, EffectResult, list[Node]]:
    """Return the ends of the replies below ``node``, best first; equals stay in the order they were made in.

    Each pair is asked about in both orders, as models favour a place; a win counts half. Every
    question counts as a reply. Replies that failed come last and are not asked about.
    """
    points = dict.fromkeys((leaf.id for leaf in leaves), 0)
    sound = [leaf for leaf in leaves if leaf.code != Code.FAILED]
    for one, other in combinations(sound, 2):
        for first, second in ((one, other), (other, one)):
            answer = yield Compare(node, first, second)
            if not isinstance(answer, bool):
                raise TypeError(f"Compare needs a bool, not {answer!r}")
            findings.replies += 1
            points[first.id if answer else second.id] += 1
    return sorted(leaves, key=lambda n: (n.code == Code.FAILED, -points[n.id]))


def react(
    findings: SearchState, rules: SearchRules, *, chains: int = 1, until_repeated: bool = False
) -> Generator[Effect, EffectResult, int]:
    """Run up to ``chains`` chains; returns as ``dfsdt`` does.

    ``until_repeated`` ends it with a chain that says what one before said: for a model that
    answers the same prompt in the same way, where every further chain would be that one again.
    """
    single = replace(rules, width=1, retry_root=False)
    result = 1
    said: set[tuple[str, ...]] = set()
    for attempt in range(chains):
        result = yield from dfsdt(findings, single)
        if result > 1:
            break
        words = _latest_texts(findings.root)
        if until_repeated and words in said:
            break
        said.add(words)
        if attempt + 1 < chains:
            yield Backtrack(findings.root, findings.root, "a new chain")
    return result


def _latest_texts(root: Node) -> tuple[str, ...]:
    """Return what the latest chain says, node by node."""
    found = []
    node = root
    while node.children:
        node = node.children[-1]
        found.append(f"{node.kind}: {node.description}")
    return tuple(found)


SUBTASK_CALLS = 3
"""Calls on a path of one subtask."""

_SUBTASK_NODES = 3 * SUBTASK_CALLS + 1

SearchFunction = Callable[[SearchState, SearchRules], Generator[Effect, EffectResult, int]]


def decomposed(
    findings: SearchState, rules: SearchRules, part_search: SearchFunction, search: SearchFunction
) -> Generator[Effect, EffectResult, int]:
    """Search subtask by subtask with ``part_search``, then for the whole task with ``search``.

    Returns as ``dfsdt`` does. ``rules.depth`` is that of the last search, counted from its begin.
    """
    node = findings.tree.root
    parts = yield Decompose(node)
    if not isinstance(parts, tuple):
        raise TypeError(f"Decompose needs moves, not {parts!r}")
    findings.replies += 1
    solved = True
    for number, heading in enumerate(parts):
        left = rules.max_replies - findings.replies
        if left <= 0:
            return EXHAUSTED
        node = findings.tree.add(node, heading)
        yield BeginSubtask(node, number, solved)
        own = SearchState(findings.tree, start=node, part=True)
        limits = replace(
            rules,
            depth=node.depth + _SUBTASK_NODES,
            max_replies=left,
            answers=1,
            retry_root=False,
        )
        yield from part_search(own, limits)
        findings.replies += own.replies
        end = own.answers[0] if own.answers else _furthest(node)
        solved, node = end is not node, end
    if findings.replies >= rules.max_replies:
        return EXHAUSTED
    if parts:
        yield BeginSubtask(node, None, solved)
        findings.start = node
    return (yield from search(findings, replace(rules, depth=node.depth + rules.depth)))


def _furthest(start: Node) -> Node:
    """Return the node below ``start`` with the most successful calls above it, ``start`` for none."""
    best, most = start, 0
    stack = [(start, 0)]
    while stack:
        node, good = stack.pop()
        good += node is not start and node.code == Code.OK
        if good > most:
            best, most = node, good
        stack.extend((child, good) for child in reversed(node.children))
    return best
