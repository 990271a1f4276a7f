"""ReACT and CoT@N: chains without branches (spec: formats 5.5), the degenerate case of DFSDT.

Same generator protocol as ``dfsdt``: N independent chains from the root, the first answer wins.
A chain ends at an answer, a give-up, a failed reply or the depth limit. Whether a chain knows of the
others is the driver's affair.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace

from toolsrv_runtime.search.dfsdt import Answer, Findings, Left, Rules, Wish, dfsdt
from toolsrv_runtime.search.tree import Node


def react(
    findings: Findings, rules: Rules, *, chains: int = 1, until_repeated: bool = False
) -> Generator[Wish, Answer, int]:
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
        words = _words(findings.root)
        if until_repeated and words in said:
            break
        said.add(words)
        if attempt + 1 < chains:
            yield Left(findings.root, findings.root, "a new chain")
    return result


def _words(root: Node) -> tuple[str, ...]:
    """Return what the latest chain says, node by node."""
    found = []
    node = root
    while node.children:
        node = node.children[-1]
        found.append(f"{node.kind}: {node.description}")
    return tuple(found)
