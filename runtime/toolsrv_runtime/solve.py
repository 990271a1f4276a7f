"""From a task to an answer with evidence: retriever, format, engine, search and caller together.

The search is pure and asks; this module carries out what it asks for, counts what it costs,
reports every step, and turns whatever was found into an honest outcome.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import json
import platform
import re
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Literal, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from toolsrv_catalogs.text import clean
from toolsrv_registry.api import Api
from toolsrv_registry.errors import UsageError
from toolsrv_registry.functions import FunctionList
from toolsrv_runtime import outcome as out
from toolsrv_runtime.calls import arguments as args
from toolsrv_runtime.calls.caller import Caller, CallResult
from toolsrv_runtime.engine.base import Engine
from toolsrv_runtime.errors import ArgumentError, ContextError, PolicyError
from toolsrv_runtime.formats import facts
from toolsrv_runtime.formats.base import (
    FINISH,
    Format,
    Interrupted,
    Meter,
    Move,
    Prior,
    Step,
    View,
)
from toolsrv_runtime.profile import Profile
from toolsrv_runtime.search.budget import Budget
from toolsrv_runtime.search.chain import react
from toolsrv_runtime.search.dfsdt import (
    Act,
    Answer,
    Findings,
    Left,
    Observed,
    Rules,
    Think,
    Wish,
    dfsdt,
)
from toolsrv_runtime.search.tree import Code, Node
from toolsrv_runtime.stop import Stop

TASK_LIMIT = 20_000
"""Characters of a task; a longer one is refused with a clear line rather than cut."""

_QUOTATION = re.compile(r"[\"“][^\"“”]{20,}[\"”]|(?<!\w)'[^']{20,}'(?!\w)")

_T = TypeVar("_T")


class SolveOptions(BaseModel):
    """How to solve.

    ``depth`` counts tree nodes, three per round (the paper uses 12); ``candidates`` None leaves
    their number to the model's profile.
    """

    model_config = ConfigDict(frozen=True)

    strategy: Literal["dfsdt", "react"] = "dfsdt"
    width: int = Field(default=2, ge=1, le=8)
    depth: int = Field(default=24, ge=3, le=96)
    candidates: int | None = Field(default=None, ge=1, le=9)
    limits: out.Limits = out.Limits()
    seed: int = 0
    category: str | None = None


class Found(Protocol):
    """One search hit."""

    @property
    def api(self) -> Api:
        """What was found."""

    @property
    def score(self) -> float:
        """How well it fits; higher is better."""


class FoundList(Protocol):
    """What a search gives."""

    @property
    def hits(self) -> Sequence[Found]:
        """The hits, best first."""

    @property
    def nothing_fits(self) -> bool:
        """Whether even the best hit is likely unrelated."""

    @property
    def nearest_categories(self) -> Sequence[str]:
        """Where the closest APIs lie."""


class Finder(Protocol):
    """The retriever as a solve uses it."""

    def search(self, text: str, limit: int = 5, *, category: str | None = None) -> FoundList:
        """Return the APIs that fit ``text``, best first."""

    def affinity(self, text: str, apis: Sequence[Api]) -> Sequence[float]:
        """Return how well each API fits ``text``, each in [0, 1]."""


def build_format(engine: Engine, profile: Profile, *, prior: Prior | None) -> Format:
    """Return the format a profile names."""
    from toolsrv_runtime.formats.chat import ChatFormat  # noqa: PLC0415 - loads jinja2
    from toolsrv_runtime.formats.compact import CompactFormat  # noqa: PLC0415 - symmetry

    if profile.format == "compact":
        return CompactFormat(engine, profile, prior=prior)
    return ChatFormat(engine, profile, template=profile.chat_template)


def ignore(event: out.Event) -> None:
    """Do nothing with an event."""


class Solver:
    """Solves tasks, one at a time per engine. Reusable; holds no state between solves."""

    def __init__(
        self, *, retriever: Finder, engine: Engine, profile: Profile, caller: Caller
    ) -> None:
        self._retriever = retriever
        self._engine = engine
        self._profile = profile
        self._caller = caller
        self._format = build_format(engine, profile, prior=retriever.affinity)

    async def solve(
        self,
        task: str,
        options: SolveOptions = SolveOptions(),  # noqa: B008 - frozen
        *,
        on_event: Callable[[out.Event], None] = ignore,
        stop: Stop | None = None,
    ) -> out.Outcome:
        """Solve ``task``; ``on_event`` is called on the event loop's thread.

        Ends with an outcome whatever happens to the search: answered, partial (a budget ended),
        gave up or cancelled (``stop`` was set). Cancelling the coroutine stops the engine at the
        next token.

        Raises:
            UsageError: the task is empty or too long.
            NotFoundError: the category is unknown.
        """
        text = clean(task, TASK_LIMIT + 1).strip()
        if not text:
            raise UsageError("the task is empty", hint='say what to do: toolsrv solve "…"')
        if len(task) > TASK_LIMIT:
            raise UsageError(
                f"the task has {len(task)} characters and at most {TASK_LIMIT} are taken",
                hint="shorten it, or split it into several tasks",
            )
        run = _Run(
            text,
            options,
            self._retriever,
            self._engine,
            self._format,
            self._caller,
            on_event,
            stop or Stop(),
            offered=options.candidates or self._profile.candidates,
        )
        return await run.run()


class _Run:
    """One solve."""

    def __init__(
        self,
        task: str,
        options: SolveOptions,
        retriever: Finder,
        engine: Engine,
        form: Format,
        caller: Caller,
        on_event: Callable[[out.Event], None],
        stop: Stop,
        *,
        offered: int,
    ) -> None:
        self._task = task
        self._options = options
        self._offered = offered
        self._fits = True
        self._near = ""
        self._retriever = retriever
        self._engine = engine
        self._format = form
        self._caller = caller
        self._on_event = on_event
        self._outer = stop
        self._budget = Budget(options.limits, time.monotonic())
        self._stop = Stop(parent=stop, deadline=self._budget.deadline)
        self._meter = Meter()
        self._findings = Findings()
        self._functions = FunctionList([])
        self._results: dict[int, CallResult] = {}
        self._steps: dict[int, Step] = {}
        self._known: dict[str, CallResult] = {}

    async def run(self) -> out.Outcome:
        found = await self._off_loop(
            lambda: self._retriever.search(
                query(self._task), self._offered, category=self._options.category
            )
        )
        self._functions = FunctionList([hit.api for hit in found.hits])
        self._on_event(
            out.CandidatesEvent(
                seconds=self._seconds(),
                api_ids=tuple(hit.api.id for hit in found.hits),
                scores=tuple(round(float(hit.score), 4) for hit in found.hits),
            )
        )
        self._fits = not found.nothing_fits
        self._near = ", ".join(found.nearest_categories[:3])
        if not found.hits:
            return self._conclude("")
        reason = await self._search()
        return self._conclude(reason)

    async def _search(self) -> str:
        """Drive the search; return why it was ended from outside, or ""."""
        options = self._options
        rules = Rules(width=options.width, depth=options.depth, retry_root=True)
        search = (
            dfsdt(self._findings, rules)
            if options.strategy == "dfsdt"
            else react(self._findings, rules)
        )
        answer: Answer = None
        try:
            while True:
                if reason := self._ended():
                    return reason
                try:
                    wish = search.send(answer)
                except StopIteration:
                    return ""
                answer = await self._grant(wish)
        except Interrupted:
            return self._ended() or "stopped"
        except _CallsOverError as error:
            return str(error)
        finally:
            search.close()

    async def _grant(self, wish: Wish) -> Answer:
        match wish:
            case Think(node):
                return await self._think(node)
            case Act(node):
                return await self._act(node)
            case Left(node, to, reason):
                self._on_event(
                    out.BacktrackEvent(
                        seconds=self._seconds(), node=node.id, to=to.id, reason=reason
                    )
                )
                return None

    async def _think(self, node: Node) -> Move | str:
        view = View(
            self._task,
            tuple(self._functions),
            tuple(self._steps[n.id] for n in node.calls() if n.id in self._steps),
            tuple(self._steps[n.id] for n in node.tried() if n.id in self._steps),
            tuple(step for step in self._steps.values() if not step.ok),
            fits=self._fits,
            seed=self._options.seed,
        )
        limit = self._budget.tokens_left
        before = self._meter.generated

        def propose() -> Move | str:
            try:
                return self._format.propose(
                    view, max_tokens=limit, stop=self._stop, meter=self._meter
                )
            except ContextError as error:
                return error.message

        try:
            move = await self._off_loop(propose)
        finally:
            self._budget.tokens += self._meter.generated - before
        self._on_event(
            out.BudgetEvent(
                seconds=self._seconds(), usage=self._usage(), limits=self._options.limits
            )
        )
        return move

    async def _act(self, node: Node) -> Observed:
        move = node.move
        if not isinstance(move, Move):
            raise TypeError(f"not a move of ours: {move!r}")
        rounds = len(node.calls())
        above = node.calls()[-2].id if rounds > 1 else 0
        self._on_event(
            out.ThoughtEvent(
                seconds=self._seconds(),
                node=node.id,
                parent=above,
                depth=rounds,
                text=move.thought or "",
            )
        )
        if move.function == FINISH:
            seen = finish(move.arguments)
            self._steps[node.id] = Step(move, seen.text, seen.code == Code.ANSWER)
            return seen
        return await self._call(node, move, rounds)

    async def _call(self, node: Node, move: Move, depth: int) -> Observed:
        api = self._functions.lookup(move.function)
        if api is None:
            text = self._format.observation(
                None, f"there is no function {move.function!r}; choose one of the list"
            )
            self._steps[node.id] = Step(move, text, ok=False)
            return Observed(Code.UNKNOWN_FUNCTION, text)
        if over := self._budget.calls_ended():
            raise _CallsOverError(over)
        try:
            arguments = args.parse(move.arguments)
            shown = args.bind(api, arguments)
        except ArgumentError as error:
            shown, problem = {"arguments": move.arguments}, f"{error.message} ({error.hint})"
            result = self._refused(api, shown, problem)
        else:
            self._tell_call(node, move, api, shown, depth)
            result = await self._result(api, arguments)
        text = self._format.observation(result.response, result.error)
        self._results[node.id] = result
        self._steps[node.id] = Step(move, text, result.ok, result.response)
        self._on_event(
            out.ObservationEvent(
                seconds=self._seconds(),
                node=node.id,
                depth=depth,
                status=result.status,
                text=text,
                source=result.source,
            )
        )
        return Observed(_code(result), text)

    def _tell_call(
        self, node: Node, move: Move, api: Api, arguments: dict[str, Any], depth: int
    ) -> None:
        self._on_event(
            out.CallEvent(
                seconds=self._seconds(),
                node=node.id,
                depth=depth,
                api_id=api.id,
                function=move.function,
                arguments=arguments,
            )
        )

    async def _result(self, api: Api, arguments: dict[str, Any]) -> CallResult:
        """Call, or repeat what the same call gave before in this solve."""
        key = json.dumps([api.id, arguments], sort_keys=True)
        if key in self._known:
            return self._known[key]
        self._budget.calls += 1
        try:
            result = await self._until_stopped(self._caller.call(api, arguments))
        except PolicyError as error:
            result = self._refused(api, arguments, f"{error.message} ({error.hint})")
        self._known[key] = result
        return result

    async def _until_stopped(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Await a call, but no longer than Stop and the budget allow."""
        task = asyncio.ensure_future(work)
        try:
            while not task.done():
                await asyncio.wait({task}, timeout=0.1)
                if not task.done() and self._stop.is_set():
                    raise Interrupted
            return task.result()
        finally:
            task.cancel()

    async def _off_loop(self, work: Callable[[], _T]) -> _T:
        """Run blocking work in a thread; if we are cancelled, stop it and wait for its end."""
        future = asyncio.get_running_loop().run_in_executor(None, work)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            self._stop.set()
            await asyncio.wait({future})
            future.exception()
            raise

    @staticmethod
    def _refused(api: Api, arguments: dict[str, Any], problem: str) -> CallResult:
        return CallResult(
            api_id=api.id,
            arguments=arguments,
            url=api.url,
            status=0,
            response=None,
            error=problem,
            source="offline",
            seconds=0.0,
        )

    def _ended(self) -> str:
        if self._outer.is_set():
            return "stopped by the user"
        return self._budget.ended(time.monotonic())

    def _seconds(self) -> float:
        return round(time.monotonic() - self._budget.started, 4)

    def _usage(self) -> out.Usage:
        meter = self._meter
        return out.Usage(
            seconds=self._seconds(),
            calls=self._budget.calls,
            model_calls=meter.replies,
            prompt_tokens=meter.prompt_tokens,
            evaluated_tokens=meter.evaluated,
            generated_tokens=meter.generated,
            forced_tokens=meter.forced,
        )

    def _conclude(self, reason: str) -> out.Outcome:
        found = self._findings
        if found.answers:
            node = found.answers[0]
            return self._outcome("answered", "the model finished", node, final_answer(node))
        best = self._best()
        partial = self._partial(best)
        if reason:
            status: out.Status = "cancelled" if self._outer.is_set() else "partial"
            return self._outcome(status, reason, best, partial)
        why = "the model gave up" if found.give_ups else "nothing that was tried led to an answer"
        if not self._results:
            why = "no API in the catalog fits this task"
            why += f"; the nearest categories are {self._near}" if self._near else ""
        return self._outcome("gave_up", why, best, partial)

    def _best(self) -> Node | None:
        """Return the node whose path has most successful calls (the first of equals)."""
        best, most = None, 0
        for node in self._findings.tree.walk():
            if node.id in self._results:
                good = sum(self._steps[n.id].ok for n in node.calls())
                if good > most:
                    best, most = node, good
        return best

    def _partial(self, node: Node | None) -> str:
        steps = [self._steps[n.id] for n in node.calls()] if node else []
        return "; ".join(
            facts.sentence(facts.whole(step.response).items()) for step in steps if step.ok
        )

    def _outcome(
        self, status: out.Status, reason: str, node: Node | None = None, answer: str = ""
    ) -> out.Outcome:
        used = {n.id for n in node.calls()} if node else set()
        return out.Outcome(
            task=self._task,
            status=status,
            answer=answer,
            reason=reason,
            evidence=tuple(self._evidence(used)),
            candidates=tuple(f.api.id for f in self._functions),
            tree=tuple(self._nodes()),
            usage=self._usage(),
            limits=self._options.limits,
            strategy=self._options.strategy,
            model=self._engine.name,
            format=self._format.name,
            seed=self._options.seed,
            versions=versions(),
        )

    def _evidence(self, used: set[int]) -> list[out.Evidence]:
        """Return the calls in tree order; one that was only repeated on a dead branch once."""
        found = []
        told: set[str] = set()
        for node in self._findings.tree.walk():
            result = self._results.get(node.id)
            if result is not None and node.move is not None:
                key = f"{result.api_id} {json.dumps(result.arguments, sort_keys=True)}"
                if key in told and node.id not in used:
                    continue
                told.add(key)
                found.append(
                    out.Evidence(
                        node=node.id,
                        api_id=result.api_id,
                        function=node.move.function,
                        arguments=result.arguments,
                        status=result.status,
                        response=result.response,
                        error=result.error,
                        source=result.source,
                        seconds=round(result.seconds, 4),
                        used=node.id in used,
                    )
                )
        return found

    def _nodes(self) -> list[out.TreeNode]:
        nodes = [out.TreeNode(id=0, parent=-1, depth=0, kind="root")]
        for node in self._findings.tree.walk():
            if node.parent is None or (node.kind != "Action Input" and node.code is None):
                continue
            calls = node.calls()
            above = [n for n in calls if n is not node]
            result = self._results.get(node.id)
            nodes.append(
                out.TreeNode(
                    id=node.id,
                    parent=above[-1].id if above else 0,
                    depth=len(above) + 1,
                    kind=_kind(node),
                    thought=(node.move.thought or "") if node.move else node.description,
                    api_id=result.api_id if result else "",
                    function=node.move.function if node.move else "",
                    arguments=result.arguments if result else {},
                    observation=node.observation,
                    status=result.status if result else 0,
                    pruned=node.pruned,
                )
            )
        return nodes


class _CallsOverError(Exception):
    """The budget of calls is used up."""


def query(task: str) -> str:
    """Return a task as a query: a long quotation is data to work on and says nothing of needs."""
    bare = _QUOTATION.sub(" ", task)
    return bare if re.search(r"\w", bare) else task


def finish(arguments: str) -> Observed:
    """Return what a Finish call comes to (spec: formats 4.4): answer, give-up or a defect."""
    try:
        value = json.loads(arguments, strict=False)
    except (ValueError, RecursionError):
        return Observed(Code.BAD_FINISH, '{"error": "the arguments of Finish are not JSON"}')
    kind = value.get("return_type") if isinstance(value, dict) else None
    if kind == "give_up_and_restart":
        return Observed(Code.GIVE_UP, '{"response": "gave up"}')
    if kind == "give_answer" and isinstance(value.get("final_answer"), str):
        return Observed(Code.ANSWER, '{"response": "answered"}')
    return Observed(Code.BAD_FINISH, '{"error": "Finish needs return_type and final_answer"}')


def final_answer(node: Node) -> str:
    """Return the inner text of an answer node's Finish arguments."""
    value = json.loads(node.description, strict=False)
    return clean(str(value["final_answer"]), 20_000)


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


def _code(result: CallResult) -> Code:
    if result.ok:
        return Code.OK
    if result.status == 404:
        return Code.NOT_FOUND
    return Code.TIMEOUT if "no answer within" in result.error else Code.ERROR


def _kind(node: Node) -> out.NodeKind:
    if node.code == Code.ANSWER:
        return "answer"
    if node.code == Code.GIVE_UP:
        return "give_up"
    return "failed" if node.code == Code.FAILED else "call"
