"""Displayed tree of a finished run: one model for terminal, page, ``--json`` and MCP.

It is made of a kept run or of an answer file, ToolBench's or anybody's. All text is untrusted and
made plain here, once. Knows nothing of how it is drawn.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from pydantic import BaseModel, ConfigDict, Field

from toolsrv.plain import compact_json, plain
from toolsrv.runs.records import RunRecord
from toolsrv_runtime.outcome import Claim, Cost, Evidence, NodeKind, Outcome, TreeNode
from toolsrv_runtime.search.tree import Code
from toolsrv_runtime.toolbench.answer_files import Answer, CotAnswer, DfsAnswer, tree_of

CODES: dict[int, str] = {
    Code.FAILED: "no usable reply",
    Code.OK: "ok",
    Code.UNKNOWN_FUNCTION: "no such function",
    Code.BAD_FINISH: "Finish without a result",
    Code.ANSWER: "answered",
    Code.GIVE_UP: "gave up",
    Code.TIMEOUT: "timed out",
    Code.NOT_FOUND: "not found",
    Code.ERROR: "error",
}
"""ToolBench's codes in words; it has further ones between 7 and 12, all of them errors."""


RESPONSE_LIMIT = 4_000
"""Characters of a response that is shown in place of what a model read of it."""


class ShownNode(BaseModel):
    """One reply of the model and what came of it.

    ``arguments`` is JSON text where it can be, and of an answer its words.
    ``winning``: it lies on the path of the answer. ``tokens`` and ``seconds`` are the reply's and
    its call's, None where nobody wrote them down. ``code`` is ToolBench's, ``outcome`` its word.
    """

    model_config = ConfigDict(frozen=True)

    id: int
    parent: int
    kind: NodeKind
    thought: str = ""
    api_id: str = ""
    function: str = ""
    arguments: str = ""
    observation: str = ""
    code: int | None = None
    outcome: str = ""
    status: int = 0
    source: str = ""
    ok: bool = True
    pruned: bool = False
    winning: bool = False
    tokens: int | None = None
    seconds: float | None = None
    has_response: bool = Field(default=False, description="Its whole response is kept.")

    @property
    def title(self) -> str:
        """What the node is, in a word or two."""
        named = {"root": "task", "answer": "answer", "give_up": "gave up", "failed": "failed"}
        return named.get(self.kind) or self.function or self.kind


class ShownRun(BaseModel):
    """A finished run. ``nodes`` are in pre-order, the root first; ``facts`` are told beside it."""

    model_config = ConfigDict(frozen=True)

    name: str
    task: str
    status: str
    answer: str = ""
    reason: str = ""
    missing: tuple[str, ...] = Field(default=(), description="What of the task is still open.")
    supported: tuple[Claim, ...] = Field(
        default=(), description="Of the answer: what a response or the task says, and which."
    )
    unsupported: tuple[Claim, ...] = Field(
        default=(), description="Of the answer: what no response says, nor the task."
    )
    facts: dict[str, str] = Field(default_factory=dict)
    nodes: tuple[ShownNode, ...]

    def below(self) -> dict[int, list[ShownNode]]:
        """Return the nodes by the id of the node they follow."""
        found: dict[int, list[ShownNode]] = {}
        for node in self.nodes:
            found.setdefault(node.parent, []).append(node)
        return found

    def only_path(self) -> ShownRun:
        """Return the run with nothing but the root and the path of the answer."""
        kept = tuple(node for node in self.nodes if node.winning or node.kind == "root")
        return self.model_copy(update={"nodes": kept})


def shown_record(record: RunRecord) -> ShownRun:
    """Return what is shown of a kept run."""
    outcome = record.outcome
    if outcome is None:
        facts = {"run": record.id, "ended": record.ended.isoformat(timespec="seconds")}
        root = ShownNode(id=0, parent=-1, kind="root")
        reason = f"{record.error} ({record.hint})" if record.hint else record.error
        return ShownRun(
            name=record.id, task=plain(record.task), status=record.status,
            reason=plain(reason), facts=facts, nodes=(root,),
        )  # fmt: skip
    return ShownRun(
        name=record.id,
        task=plain(outcome.task),
        status=outcome.status,
        answer=plain(outcome.answer),
        reason=plain(outcome.reason),
        missing=tuple(map(plain, outcome.missing)),
        supported=outcome.supported,
        unsupported=outcome.unsupported,
        facts=_facts(record, outcome),
        nodes=_with_costs(_nodes(outcome.tree, _winning(outcome), record), outcome.costs),
    )


def shown_answer(answer: Answer, name: str) -> ShownRun:
    """Return what is shown of an answer file; ``name`` says which."""
    tree = tree_of(answer)
    told = answer.answer_generation
    end = next((node.id for node in tree if node.kind == "answer"), None)
    status = "answered" if answer.win else "gave_up"
    facts = {
        "file": name,
        "method": _method(answer),
        "replies": f"{len(tree) - 1:,}",
        "model calls": f"{told.query_count:,}",
        "tokens": f"{told.total_tokens:,}",
    }
    if (ended := answer.toolsrv) is not None:
        return ShownRun(
            name=name,
            task=plain(told.query),
            status=ended.status,
            answer=plain(ended.answer),
            reason=plain(ended.reason),
            missing=tuple(map(plain, ended.missing)),
            facts=facts,
            nodes=_nodes(tree, _path(tree, end), None),
        )
    return ShownRun(
        name=name,
        task=plain(told.query),
        status=status,
        answer=plain(_final(told.final_answer)) if answer.win else "",
        reason="" if answer.win else "the model gave up" if told.final_answer else "no answer",
        facts=facts,
        nodes=_nodes(tree, _path(tree, end), None),
    )


def _facts(record: RunRecord, outcome: Outcome) -> dict[str, str]:
    usage = outcome.usage
    size = f", width {outcome.width}" if outcome.strategy == "dfsdt" else ""
    added = f" with {', '.join(outcome.switches)}" if outcome.switches else ""
    agreed = f"{outcome.agreed} of " if outcome.status != "interrupted" else ""
    votes = f", {agreed}{outcome.votes} votes" if outcome.votes > 1 else ""
    before = {"goes on from": outcome.continues} if outcome.continues else {}
    return {
        "run": record.id,
        **before,
        "ended": record.ended.isoformat(timespec="seconds"),
        "model": plain(outcome.model),
        "strategy": f"{outcome.strategy}{added}{size}, depth {outcome.depth}{votes}",
        "time": f"{usage.seconds:.1f} s",
        "calls": f"{usage.calls:,}",
        "tokens": f"{usage.generated_tokens:,} generated, {usage.evaluated_tokens:,} evaluated",
        "format": outcome.format or "not known",
        "seed": str(outcome.seed),
    }


def _method(answer: Answer) -> str:
    if isinstance(answer, DfsAnswer):
        return f"DFS, width {answer.forward_args.get('tree_beam_size', '?')}"
    return f"chains, {len(answer.trys)}" if isinstance(answer, CotAnswer) else ""


def _final(text: str) -> str:
    """Return the inner text of Finish's arguments, or the arguments as they are."""
    try:
        value = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return text
    inner = value.get("final_answer") if isinstance(value, dict) else None
    return inner if isinstance(inner, str) else text


def _winning(outcome: Outcome) -> set[int]:
    """Return the path of the answer; of a partial one, of the calls that it rests on."""
    if outcome.answer:
        ends = [one.id for one in outcome.tree if one.kind == "answer"]
        used = [one.node for one in outcome.evidence if one.used]
        return _path(outcome.tree, next(iter(ends), used[-1] if used else None))
    return set()


def _path(tree: Iterable[TreeNode], end: int | None) -> set[int]:
    above = {node.id: node.parent for node in tree}
    found = set()
    while end is not None and end in above and end not in found:
        found.add(end)
        end = above[end]
    return found


def _nodes(
    tree: Iterable[TreeNode], winning: set[int], record: RunRecord | None
) -> tuple[ShownNode, ...]:
    return tuple(_node(one, winning=one.id in winning, record=record) for one in tree)


def _with_costs(nodes: Iterable[ShownNode], costs: Iterable[Cost]) -> tuple[ShownNode, ...]:
    found = {one.node: {"tokens": one.tokens, "seconds": one.seconds} for one in costs}
    return tuple(node.model_copy(update=found.get(node.id, {})) for node in nodes)


def _node(node: TreeNode, *, winning: bool, record: RunRecord | None) -> ShownNode:
    seen = record.evidence(node.id) if record and node.api_id else None
    ok = node.kind not in ("failed", "give_up") and node.code in (None, Code.OK, Code.ANSWER)
    return ShownNode(
        id=node.id,
        parent=node.parent,
        kind=node.kind,
        thought=plain(node.thought),
        api_id=plain(node.api_id),
        function=plain(node.function),
        arguments=_arguments(node),
        observation=_observation(node, seen, record),
        code=node.code,
        outcome="" if node.code is None else CODES.get(node.code, "error"),
        status=node.status,
        source=seen.source if seen else "",
        ok=ok,
        pruned=node.pruned,
        winning=winning,
        has_response=seen is not None,
    )


def _observation(node: TreeNode, seen: Evidence | None, record: RunRecord | None) -> str:
    """Return what a call brought as its model read it.

    The compact format reads facts as texts; there it is the response itself, if that is kept and
    not too long.
    """
    outcome = record.outcome if record else None
    if seen is None or outcome is None or outcome.format != "compact" or seen.error:
        return plain(node.observation)
    whole = compact_json(seen.response)
    return whole if len(whole) <= RESPONSE_LIMIT else plain(node.observation)


def _arguments(node: TreeNode) -> str:
    if node.kind == "answer":
        return plain(_final(node.text))
    return compact_json(node.arguments) if node.arguments else plain(node.text)
