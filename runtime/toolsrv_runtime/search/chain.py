"""ReACT and CoT@N: chains without branches (spec: formats 5.5), the degenerate case of DFSDT.

Same generator protocol as ``dfsdt``: N independent chains from the root, the first answer wins.
A chain ends at an answer, a give-up, a failed reply or the depth limit.
"""

from __future__ import annotations

from collections.abc import Generator

from toolsrv_runtime.search.dfsdt import Answer, Findings, Left, Rules, Wish, dfsdt


def react(findings: Findings, rules: Rules, *, chains: int = 1) -> Generator[Wish, Answer, int]:
    """Run up to ``chains`` chains; returns as ``dfsdt`` does."""
    single = Rules(width=1, depth=rules.depth, answers=rules.answers, max_replies=rules.max_replies)
    result = 1
    for attempt in range(chains):
        result = yield from dfsdt(findings, single)
        if result > 1:
            break
        if attempt + 1 < chains:
            yield Left(findings.tree.root, findings.tree.root, "a new chain")
    return result
