"""One solve: carries out what the search asks for, counts the cost, reports every step.

The search is pure and asks for moves and calls; the format and the caller answer. Ends with an
honest outcome whatever happens.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Coroutine, Generator, Iterable, Sequence
from functools import partial
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from toolsrv_registry.api import Api
from toolsrv_runtime import outcome as out
from toolsrv_runtime.calls import arguments as args
from toolsrv_runtime.calls.caller import Caller, CallResult
from toolsrv_runtime.engine.base import Engine
from toolsrv_runtime.errors import ArgumentError, ContextError, PolicyError
from toolsrv_runtime.finder import Finder
from toolsrv_runtime.formats.base import FINISH, Format, Interrupted, Meter, Move, Step, View
from toolsrv_runtime.ledger import Ledger, code, final_answer, finish, versions
from toolsrv_runtime.offer import Offer
from toolsrv_runtime.search.budget import Budget
from toolsrv_runtime.search.chain import react
from toolsrv_runtime.search.dfsdt import Act, Answer, Left, Observed, Rules, Think, Wish, dfsdt
from toolsrv_runtime.search.tree import Code, Node
from toolsrv_runtime.stop import Stop

_T = TypeVar("_T")

Strategy = Literal["dfsdt", "react", "cot"]


class SolveOptions(BaseModel):
    """How to solve.

    ``strategy``: a tree (``dfsdt``), one chain (``react``), or up to ``chains`` chains until one
    answers (``cot``: CoT@N). ``depth`` counts tree nodes, three per round (the paper uses 12); ``candidates`` None leaves
    their number to the model's profile.
    """

    model_config = ConfigDict(frozen=True)

    strategy: Strategy = "dfsdt"
    chains: int = Field(default=5, ge=1, le=32)
    width: int = Field(default=2, ge=1, le=8)
    depth: int = Field(default=24, ge=3, le=96)
    candidates: int | None = Field(default=None, ge=1, le=9)
    limits: out.Limits = out.Limits()
    seed: int = 0
    category: str | None = None


class _CallsOverError(Exception):
    """The budget of calls is used up."""


class Run:
    """One solve; made by ``Solver`` and used once."""

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
        anew_after_give_up: bool = True,
        draws: bool = False,
    ) -> None:
        self._task = task
        self._options = options
        self._offer = Offer(retriever, task, offered, options.category)
        self._anew_after_give_up = anew_after_give_up
        self._draws = draws
        self._gave_up = False
        self._sought: set[str] = set()
        self._engine = engine
        self._format = form
        self._caller = caller
        self._on_event = on_event
        self._outer = stop
        self._budget = Budget(options.limits, time.monotonic())
        self._stop = Stop(parent=stop, deadline=self._budget.deadline)
        self._meter = Meter()
        self._ledger = Ledger()
        self._known: dict[str, CallResult] = {}

    async def run(self) -> out.Outcome:
        """Find candidates, search, conclude.

        Raises:
            NotFoundError: the category is unknown.
        """
        self._tell_candidates(await self._off_loop(self._offer.begin))
        if not self._offer.shown:
            return self._conclude("")
        reason = await self._search()
        return self._conclude(reason)

    def _tell_candidates(self, searched: out.Searched) -> None:
        self._on_event(
            out.CandidatesEvent(
                seconds=self._seconds(),
                api_ids=searched.api_ids,
                scores=searched.scores,
                reason=searched.reason,
                dead_left_out=self._offer.dead_left_out,
            )
        )

    def _strategy(self) -> Generator[Wish, Answer, int]:
        options = self._options
        rules = Rules(width=options.width, depth=options.depth, retry_root=True)
        if options.strategy == "dfsdt":
            return dfsdt(self._ledger.findings, rules)
        return react(
            self._ledger.findings,
            rules,
            chains=self._chains,
            until_repeated=not self._draws,
        )

    @property
    def _chains(self) -> int:
        return self._options.chains if self._options.strategy == "cot" else 1

    async def _search(self) -> str:
        """Drive the search; return why it was ended from outside, or ""."""
        search = self._strategy()
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

    async def _renew(self) -> None:
        """Search for other candidates when all failed, or after a path gave up, if it may."""
        results = self._ledger.results.values()
        worked = {result.api_id for result in results if result.ok}
        failed = {result.api_id for result in results} - worked
        if self._gave_up and self._anew_after_give_up:
            reason = "the model gave up with what it had"
        elif self._offer.spent(failed):
            reason = "all that was on offer failed"
        else:
            return
        self._gave_up = False
        offer = self._offer
        if offer.may_search() and await self._off_loop(lambda: offer.again(worked, failed, reason)):
            self._tell_candidates(offer.searches[-1])

    async def _think(self, node: Node) -> Move | str:
        await self._renew()
        move = await self._propose(node)
        while isinstance(move, Move) and await self._look_for(move.missing):
            move = await self._propose(node)
        self._on_event(
            out.BudgetEvent(
                seconds=self._seconds(), usage=self._usage(), limits=self._options.limits
            )
        )
        return move

    async def _propose(self, node: Node) -> Move | str:
        view = self._view(node)
        limit = self._budget.tokens_left
        before = self._meter.generated

        def propose() -> Move | str:
            try:
                return self._format.propose(
                    view, max_tokens=limit, stop=self._stop, meter=self._meter
                )
            except ContextError as error:
                return f"{error.message} ({error.hint})"

        try:
            return await self._off_loop(propose)
        finally:
            self._budget.tokens += self._meter.generated - before

    async def _look_for(self, missing: Sequence[str]) -> bool:
        """Search for the parts that nothing on offer serves; say whether there is more now."""
        offer, found = self._offer, False
        for part in missing:
            if part in self._sought:
                continue
            self._sought.add(part)
            worked = {one.api_id for one in self._ledger.results.values() if one.ok}
            if await self._off_loop(partial(offer.look_for, part, worked)):
                found = True
                self._tell_candidates(offer.searches[-1])
        return found

    def _view(self, node: Node) -> View:
        """Return what the model may know at a node.

        Chains know nothing of each other's calls where each is drawn anew; a model that always says the
        same must be told what was tried, or every chain would be the first one.
        """
        steps = self._ledger.steps
        path = tuple(steps[n.id] for n in node.calls() if n.id in steps)
        tried = tuple(steps[n.id] for n in node.tried() if n.id in steps)
        past: Iterable[Step] = steps.values()
        if self._options.strategy == "cot" and self._draws:
            tried, past = (), path
        return View(
            self._task,
            self._offer.shown,
            path,
            tried,
            tuple(step for step in past if not step.ok),
            fits=self._offer.fits,
            seed=self._options.seed,
        )

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
            self._ledger.steps[node.id] = Step(move, seen.text, seen.code == Code.ANSWER)
            self._gave_up |= seen.code == Code.GIVE_UP
            return seen
        return await self._call(node, move, rounds)

    async def _call(self, node: Node, move: Move, depth: int) -> Observed:
        api = self._offer.all.lookup(move.function)
        if api is None:
            text = self._format.observation(
                None, f"there is no function {move.function!r}; choose one of the list"
            )
            self._ledger.steps[node.id] = Step(move, text, ok=False)
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
        self._ledger.results[node.id] = result
        self._ledger.steps[node.id] = Step(move, text, result.ok, result.response)
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
        return Observed(code(result), text)

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
        found = self._ledger.findings
        if found.answers:
            node = found.answers[0]
            missing = node.move.missing if isinstance(node.move, Move) else ()
            if missing:
                reason = "nothing was found for: " + "; ".join(missing)
                return self._outcome("partial", reason, node, final_answer(node))
            return self._outcome("answered", "the model finished", node, final_answer(node))
        best = self._ledger.best()
        partial = self._ledger.partial(best)
        if reason:
            status: out.Status = "cancelled" if self._outer.is_set() else "partial"
            return self._outcome(status, reason, best, partial)
        why = "the model gave up" if found.give_ups else "nothing that was tried led to an answer"
        failure = self._ledger.failure()
        if failure and not self._ledger.results:
            why = failure
        elif not self._ledger.results and not self._offer.fits:
            why = self._nothing()
        return self._outcome("gave_up", why, best, partial)

    def _nothing(self) -> str:
        """Say that the catalog has nothing for the task, and what is near or left out."""
        why = "no API in the catalog fits this task, read as English"
        if near := ", ".join(self._offer.nearest):
            why += f"; the nearest categories are {near}"
        if dead := self._offer.dead_left_out:
            why += f"; {dead} left out that failed when last checked"
        return why

    def _outcome(
        self, status: out.Status, reason: str, node: Node | None = None, answer: str = ""
    ) -> out.Outcome:
        used = {n.id for n in node.calls()} if node else set()
        return out.Outcome(
            task=self._task,
            status=status,
            answer=answer,
            reason=reason,
            evidence=tuple(self._ledger.evidence(used)),
            candidates=tuple(f.api.id for f in self._offer.all),
            searches=tuple(self._offer.searches),
            tree=tuple(self._ledger.nodes()),
            usage=self._usage(),
            limits=self._options.limits,
            strategy=self._options.strategy,
            width=self._options.width,
            depth=self._options.depth,
            chains=self._chains,
            model=self._engine.name,
            format=self._format.name,
            seed=self._options.seed,
            versions=versions(),
        )
