"""What a solve has done so far, and what can be told of it: evidence, tree, partial answer.

Pure bookkeeping over the search tree; makes no calls and asks no model.
"""

from __future__ import annotations

import importlib.metadata
import json
import platform
from dataclasses import dataclass, field

from toolsrv_catalogs.text import clean
from toolsrv_runtime import outcome as out
from toolsrv_runtime.calls.caller import CallResult
from toolsrv_runtime.formats.asides import ANSWER_LIMIT, says_something
from toolsrv_runtime.formats.base import Move, Step
from toolsrv_runtime.formats.toolbench_env import code_of
from toolsrv_runtime.search.dfsdt import Findings, Observed
from toolsrv_runtime.search.tree import Code, Node
from toolsrv_runtime.values import facts


@dataclass(slots=True)
class Ledger:
    """Steps and call results by the id of their tree node.

    ``closing`` is the answer that the model gave when its search had to end, with ``missing`` what
    it leaves open; no answer of the search's own.
    """

    findings: Findings = field(default_factory=Findings)
    steps: dict[int, Step] = field(default_factory=dict)
    results: dict[int, CallResult] = field(default_factory=dict)
    costs: list[out.Cost] = field(default_factory=list)
    closing: Node | None = None

    def close(self, below: Node, move: Move) -> bool:
        """Hang the answer that ends the search below a node; False when it is no answer."""
        seen = settled(move)
        if seen.code != Code.ANSWER:
            return False
        tree = self.findings.tree
        order = 1 + max(node.order for node in tree.walk())
        node = tree.add(below, move)
        node.order = order
        tree.settle(node, seen.code, seen.text)
        self.steps[node.id] = Step(move, seen.text, ok=True)
        self.closing = node
        return True

    def step(self, node: Node) -> Step:
        """Return the step that ends at a node; a reply that only thinks came to nothing."""
        if node.id in self.steps:
            return self.steps[node.id]
        if not isinstance(node.move, Move):
            raise TypeError(f"not a move of ours: {node.move!r}")
        return Step(node.move, "", ok=True)

    def unserved(self) -> list[str]:
        """Return the parts of the task that calls were made for and never gave anything.

        None where calls do not say what they are for.
        """
        made: dict[str, bool] = {}
        for node in self.findings.tree.walk():
            if node.id in self.results and (what := self.steps[node.id].move.about):
                made[what] = made.get(what, False) or self.results[node.id].ok
        return [what for what, served in made.items() if not served]

    def declined(self) -> list[CallResult]:
        """Return the calls that a person has declined, each once, in tree order."""
        found: dict[str, CallResult] = {}
        for node in self.findings.tree.walk():
            result = self.results.get(node.id)
            if result is not None and result.kind == "declined":
                found.setdefault(_call_key(result), result)
        return list(found.values())

    def best(self) -> Node | None:
        """Return the node whose path has most successful calls (the first of equals)."""
        best, most = None, 0
        for node in self.findings.tree.walk():
            if node.id in self.results:
                good = sum(self.steps[n.id].ok for n in node.calls())
                if good > most:
                    best, most = node, good
        return best

    def cut_at(self, depth: int) -> bool:
        """Whether a path ends in a successful call because it has ``depth`` nodes."""
        return any(
            node.depth >= depth and not node.closed and self.steps[node.id].ok
            for node in self.findings.tree.walk()
            if node.id in self.results
        )

    def failure(self) -> str:
        """Return why the model's first failed reply failed ("" when none did)."""
        nodes = self.findings.tree.walk()
        return next((node.description for node in nodes if node.code == Code.FAILED), "")

    def partial(self, node: Node | None) -> str:
        """Return what the successful calls on the path to ``node`` said, each once, as one text."""
        steps = [self.steps[n.id] for n in node.calls()] if node else []
        said = [facts.sentence(facts.whole(step.response).items()) for step in steps if step.ok]
        return "; ".join(dict.fromkeys(said))

    def evidence(self, used: set[int]) -> list[out.Evidence]:
        """Return the calls in tree order, each once: at a node in ``used`` if one made it."""
        found: dict[str, out.Evidence] = {}
        for node in self.findings.tree.walk():
            result = self.results.get(node.id)
            if result is None or node.move is None:
                continue
            key = _call_key(result)
            is_used = node.id in used and result.ok
            before = found.get(key)
            if before is not None and (before.used or not is_used):
                found[key] = before.model_copy(update={"times": before.times + 1})
                continue
            found.pop(key, None)
            found[key] = out.Evidence(
                node=node.id,
                api_id=result.api_id,
                function=node.move.function,
                arguments=result.arguments,
                status=result.status,
                response=result.response,
                error=result.error,
                kind=result.kind,
                source=result.source,
                seconds=round(result.seconds, 4),
                used=is_used,
                times=1 + (before.times if before else 0),
                files=result.kept,
            )
        return list(found.values())

    def nodes(self) -> list[out.TreeNode]:
        """Return the tree for the outcome: one node per reply, the failed ones too."""
        tree = self.findings.tree
        nodes = [out.TreeNode(id=0, parent=-1, depth=0, kind="root", order=tree.root.order)]
        for node in tree.walk():
            if not _is_reply(node):
                continue
            above = [n for n in node.path()[:-1] if _is_reply(n)]
            result = self.results.get(node.id)
            move = node.move
            nodes.append(
                out.TreeNode(
                    id=node.id,
                    parent=above[-1].id if above else 0,
                    depth=len(above) + 1,
                    kind=_kind(node),
                    thought=(move.thought or "") if move else node.description,
                    api_id=result.api_id if result else "",
                    function=move.function if move else "",
                    arguments=result.arguments if result else {},
                    observation=node.observation,
                    status=result.status if result else 0,
                    pruned=node.pruned,
                    order=node.order,
                    text=move.arguments if move else "",
                    bare=move is not None and move.thought is None,
                    code=None if node.code is None else int(node.code),
                )
            )
        return nodes


def finish(arguments: str) -> Observed:
    """Return what a Finish call comes to (spec: formats 4.4): answer, give-up or a defect."""
    try:
        value = json.loads(arguments, strict=False)
    except (ValueError, RecursionError):
        return Observed(Code.BAD_FINISH, '{"error": "the arguments of Finish are not JSON"}')
    kind = value.get("return_type") if isinstance(value, dict) else None
    if kind == "give_up_and_restart":
        return Observed(Code.GIVE_UP, '{"response": "gave up"}')
    if kind == "give_answer" and says_something(value.get("final_answer")):
        return Observed(Code.ANSWER, '{"response": "answered"}')
    return Observed(Code.BAD_FINISH, '{"error": "Finish needs return_type and final_answer"}')


def settled(move: Move) -> Observed:
    """Return what a reply without a call comes to: as its format read it, else as its Finish."""
    if move.verdict is None:
        return finish(move.arguments)
    return Observed(Code(move.verdict.code), move.verdict.text)


def final_answer(node: Node) -> str:
    """Return the inner text of an answer node's Finish arguments."""
    if isinstance(node.move, Move) and node.move.verdict is not None:
        return clean(node.move.verdict.answer, ANSWER_LIMIT)
    value = json.loads(node.description, strict=False)
    return clean(str(value["final_answer"]), ANSWER_LIMIT)


def versions() -> dict[str, str]:
    """Return the versions that a run's result depends on."""
    packages = ("toolsrv", "llama-cpp-python", "llguidance", "chromadb", "onnxruntime")
    found = {"python": platform.python_version()}
    for package in packages:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


def code(result: CallResult) -> Code:
    """Return what a call came to, in ToolBench's numbers."""
    if result.ok:
        return Code.OK
    if (said := code_of(result.error)) != Code.OK:  # a service's own words
        return said
    if result.kind in {"not_found", "gone"}:
        return Code.NOT_FOUND
    return Code.TIMEOUT if result.kind == "timed_out" else Code.ERROR


def _call_key(result: CallResult) -> str:
    """Return the same text for calls of one API with equal arguments."""
    return f"{result.api_id} {json.dumps(result.arguments, sort_keys=True)}"


def _is_reply(node: Node) -> bool:
    """Whether a node ends a reply of the model, or stands for one that failed."""
    return node.parent is not None and (node.move is not None or node.code == Code.FAILED)


def _kind(node: Node) -> out.NodeKind:
    if node.code == Code.ANSWER:
        return "answer"
    if node.code == Code.GIVE_UP:
        return "give_up"
    if node.code == Code.FAILED:
        return "failed"
    return "call" if node.kind == "Action Input" else "thought"
