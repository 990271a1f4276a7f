"""Mutable state of one run: candidates, ledger, usage, budget and event callback.

The ledger holds the step and call result of each tree node, and derives evidence, tree nodes and a
partial answer from them. The budget counts seconds, replies, calls and generated tokens. Makes no
calls, calls no model and decides nothing.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import platform
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from toolsrv_catalogs.text import clean
from toolsrv_runtime import outcome
from toolsrv_runtime import outcome as out
from toolsrv_runtime.agent.candidates import Candidates
from toolsrv_runtime.agent.prompts import ANSWER_LIMIT, has_content
from toolsrv_runtime.calls.caller import CallResult
from toolsrv_runtime.contract.format import Action, Step, UsageMeter
from toolsrv_runtime.contract.hints import GivenValue, Question
from toolsrv_runtime.options import SolveOptions
from toolsrv_runtime.outcome import Limits, call_text
from toolsrv_runtime.search.dfsdt import Observation, SearchState
from toolsrv_runtime.search.tree import Code, Node
from toolsrv_runtime.stop import Stop
from toolsrv_runtime.toolbench.environment import observation_code
from toolsrv_runtime.values import facts


@dataclass(slots=True)
class Ledger:
    """Steps and call results by the id of their tree node.

    ``closing`` is the answer that the model gave when its search had to end, with ``missing`` what
    it leaves open; no answer of the search's own.
    """

    findings: SearchState = field(default_factory=SearchState)
    steps: dict[int, Step] = field(default_factory=dict)
    results: dict[int, CallResult] = field(default_factory=dict)
    costs: list[out.Cost] = field(default_factory=list)
    closing: Node | None = None

    def close(self, below: Node, move: Action) -> bool:
        """Hang the answer that ends the search below a node; False when it is no answer."""
        seen = uncalled_result(move)
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
        if not isinstance(node.move, Action):
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
                found.setdefault(call_text(result.api_id, result.arguments), result)
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
            key = call_text(result.api_id, result.arguments)
            is_used = node.id in used and result.ok
            before = found.get(key)
            if before is not None and (before.used or not is_used):
                found[key] = before.model_copy(update={"times": before.times + 1})
                continue
            found.pop(key, None)
            made = call_evidence(node.id, node.move.function, result)
            times = 1 + (before.times if before else 0)
            found[key] = made.model_copy(update={"used": is_used, "times": times})
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


def call_evidence(node: int, function: str, result: CallResult) -> out.Evidence:
    """Return a call of a node as evidence that no answer rests on yet."""
    return out.Evidence(
        node=node,
        api_id=result.api_id,
        function=function,
        arguments=result.arguments,
        status=result.status,
        response=result.response,
        error=result.error,
        kind=result.kind,
        source=result.source,
        seconds=round(result.seconds, 4),
        used=False,
        files=result.kept,
    )


def finish_result(arguments: str) -> Observation:
    """Return what a Finish call comes to: answer, give-up or a defect."""
    try:
        value = json.loads(arguments, strict=False)
    except (ValueError, RecursionError):
        return Observation(Code.BAD_FINISH, '{"error": "the arguments of Finish are not JSON"}')
    kind = value.get("return_type") if isinstance(value, dict) else None
    if kind == "give_up_and_restart":
        return Observation(Code.GIVE_UP, '{"response": "gave up"}')
    if kind == "give_answer" and has_content(value.get("final_answer")):
        return Observation(Code.ANSWER, '{"response": "answered"}')
    return Observation(Code.BAD_FINISH, '{"error": "Finish needs return_type and final_answer"}')


def uncalled_result(move: Action) -> Observation:
    """Return what a reply without a call comes to: as its format read it, else as its Finish."""
    if move.verdict is None:
        return finish_result(move.arguments)
    return Observation(Code(move.verdict.code), move.verdict.text)


def final_answer(node: Node) -> str:
    """Return the inner text of an answer node's Finish arguments."""
    if isinstance(node.move, Action) and node.move.verdict is not None:
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


def result_code(result: CallResult) -> Code:
    """Return what a call came to, in ToolBench's numbers."""
    if result.ok:
        return Code.OK
    if (said := observation_code(result.error)) != Code.OK:  # a service's own words
        return said
    if result.kind in {"not_found", "gone"}:
        return Code.NOT_FOUND
    return Code.TIMEOUT if result.kind == "timed_out" else Code.ERROR


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


@dataclass(slots=True)
class Budget:
    """Limits and what is spent of them; ``started`` is in ``time.monotonic`` seconds.

    ``longest`` is how many seconds the longest step took, which is what the closing one may take;
    ``waited`` how many seconds a person was waited for, which nobody has spent. ``ahead`` of
    ``calls`` were started together with an earlier call of their turn and not acted on yet.
    """

    limits: Limits
    started: float
    calls: int = 0
    ahead: int = 0
    tokens: int = 0
    model_calls: int = 0
    longest: float = 0.0
    waited: float = 0.0

    @property
    def deadline(self) -> float:
        """When the seconds are over, in ``time.monotonic`` seconds."""
        return self.started + self.limits.seconds + self.waited

    @property
    def tokens_left(self) -> int:
        """Tokens that may still be generated."""
        return max(0, self.limits.tokens - self.tokens)

    def late(self, now: float) -> str:
        """Return that the time is over ("" while it is not)."""
        if now < self.deadline:
            return ""
        seconds = f"{self.limits.seconds:g}"
        return f"the time of {seconds} second{'s' * (seconds != '1')} is over"

    def ended(self, now: float) -> str:
        """Return which limit of the model is reached ("" while none is)."""
        if late := self.late(now):
            return late
        if self.tokens >= self.limits.tokens:
            return _used_up(self.limits.tokens, "token")
        if self.model_calls >= self.limits.model_calls:
            return _used_up(self.limits.model_calls, "model call")
        return ""

    def calls_ended(self) -> str:
        """Return why no further call may be acted on ("" while one may)."""
        if self.calls - self.ahead >= self.limits.calls:
            return _used_up(self.limits.calls, "call")
        return ""

    def requests_ended(self) -> str:
        """Return why no further call may be started ("" while one may)."""
        return "" if self.calls_left else _used_up(self.limits.calls, "call")

    @property
    def calls_left(self) -> int:
        """Calls that may still be started."""
        return max(0, self.limits.calls - self.calls)


def _used_up(limit: int, what: str) -> str:
    return f"the {limit} {what} is used up" if limit == 1 else f"the {limit} {what}s are used up"


@dataclass(slots=True)
class RunState:
    """One solve; nothing of it is shared with another. ``outer`` is the user's cancellation.

    ``shared`` is the budget of several solves of one vote. ``rejected`` is the answer that the
    model took back on a second reading. ``given`` are the values that a person gave, ``unanswered``
    the questions that nobody answered, and ``postponed`` those that were not put, by API, as
    another call might tell.
    """

    task: str
    options: SolveOptions
    offer: Candidates
    outer: Stop
    report: Callable[[outcome.Event], None]
    shared: Budget | None = None
    budget: Budget = field(init=False)
    stop: Stop = field(init=False)
    meter: UsageMeter = field(default_factory=UsageMeter)
    ledger: Ledger = field(default_factory=Ledger)
    opinions: list[out.Opinion] = field(default_factory=list)
    rejected: Node | None = None
    given: list[GivenValue] = field(default_factory=list)
    unanswered: list[Question] = field(default_factory=list)
    postponed: dict[str, Question] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.budget = self.shared or Budget(self.options.limits, time.monotonic())
        self.stop = Stop(parent=self.outer, deadline=self.budget.deadline)

    @property
    def known(self) -> str:
        """What an answer may rest on besides results: the task, what the person said, earlier runs."""
        said = (f"{one.question.text} {one.spelled}" for one in self.given)
        return "\n".join((self.task, *said, *(one.known for one in self.options.earlier)))

    def ended(self) -> str:
        """Return why the model may not be asked again ("" while it may)."""
        return self.late() or self.budget.ended(time.monotonic())

    def late(self) -> str:
        """Return why nothing more may be done at all ("" while something may)."""
        if self.outer.is_set():
            return "stopped by the user"
        return self.budget.late(time.monotonic())

    @contextlib.contextmanager
    def step(self) -> Iterator[None]:
        """Count what the model is asked in the block, and tell what is to be noted of it."""
        started, before = time.monotonic(), self.meter.generated
        replies = self.meter.replies
        told = len(self.meter.notes)
        try:
            yield
        finally:
            budget = self.budget
            budget.tokens += self.meter.generated - before
            budget.model_calls += self.meter.replies - replies
            budget.longest = max(budget.longest, time.monotonic() - started)
            for text in list(self.meter.notes)[told:]:
                self.report(outcome.NoteEvent(seconds=self.seconds(), text=text))

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """Wait for a person in the block: it costs no time of the solve."""
        since = time.monotonic()
        try:
            yield
        finally:
            waited = time.monotonic() - since
            self.budget.waited += waited
            self.stop.postpone(waited)

    def seconds(self) -> float:
        """Seconds since the solve began, without those that a person was waited for."""
        return round(time.monotonic() - self.budget.started - self.budget.waited, 4)

    def report_budget(self) -> None:
        """Tell how much of the budget is used."""
        self.report(
            outcome.BudgetEvent(
                seconds=self.seconds(), usage=self.usage(), limits=self.options.limits
            )
        )

    def usage(self) -> out.Usage:
        """Return what the solve has cost so far."""
        meter = self.meter
        return out.Usage(
            seconds=self.seconds(),
            calls=self.budget.calls,
            model_calls=meter.replies,
            prompt_tokens=meter.prompt_tokens,
            evaluated_tokens=meter.evaluated,
            generated_tokens=meter.generated,
            forced_tokens=meter.forced,
        )
