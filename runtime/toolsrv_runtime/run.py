"""One solve: carries out what the search asks for, reports every step.

The search is pure and asks for moves and calls; the format and ``Calling`` answer. Ends with an
honest outcome whatever happens.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from toolsrv_runtime import outcome as out
from toolsrv_runtime.calling import Calling, CallsOverError
from toolsrv_runtime.calls.caller import Caller
from toolsrv_runtime.closing import close
from toolsrv_runtime.conclusion import conclude
from toolsrv_runtime.engine.base import Engine
from toolsrv_runtime.engine.chat import ChatModel
from toolsrv_runtime.errors import ContextError, GrammarError, ModelError
from toolsrv_runtime.finder import Finder
from toolsrv_runtime.formats.base import FINISH, Format, Interrupted, Move, Step, View
from toolsrv_runtime.offer import Offer
from toolsrv_runtime.options import SolveOptions
from toolsrv_runtime.search.chain import react
from toolsrv_runtime.search.dfs import dfs
from toolsrv_runtime.search.dfsdt import (
    Act,
    Answer,
    Compare,
    Left,
    Observed,
    Rules,
    Think,
    Wish,
    dfsdt,
)
from toolsrv_runtime.search.tree import Code, Node
from toolsrv_runtime.state import State
from toolsrv_runtime.stop import Stop
from toolsrv_runtime.waiting import off_loop

_T = TypeVar("_T")


class Run:
    """One solve; made by ``Solver`` and used once."""

    def __init__(
        self,
        task: str,
        options: SolveOptions,
        retriever: Finder,
        engine: Engine | ChatModel,
        form: Format,
        caller: Caller,
        on_event: Callable[[out.Event], None],
        stop: Stop,
        *,
        offered: int,
        anew_after_give_up: bool = True,
        draws: bool = False,
    ) -> None:
        offer = Offer(retriever, task, offered, options.category, again=options.search_again)
        self._state = State(task, options, offer, stop, on_event)
        self._calling = Calling(self._state, form, caller)
        self._engine = engine
        self._format = form
        self._anew_after_give_up = anew_after_give_up
        self._draws = draws
        self._gave_up = False
        self._sought: set[str] = set()

    async def run(self) -> out.Outcome:
        """Find candidates, search, conclude.

        Raises:
            NotFoundError: the category is unknown.
        """
        offer = self._state.offer
        self._tell_candidates(await self._off_loop(offer.begin))
        reason = await self._search() if offer.shown else ""
        await close(self._state, self._format, self._view, reason)
        return conclude(self._state, reason, model=self._engine.name, form=self._format.name)

    def _tell_candidates(self, searched: out.Searched) -> None:
        state = self._state
        state.tell(
            out.CandidatesEvent(
                seconds=state.seconds(),
                api_ids=searched.api_ids,
                scores=searched.scores,
                reason=searched.reason,
                dead_left_out=state.offer.dead_left_out,
            )
        )

    def _strategy(self) -> Generator[Wish, Answer, int]:
        options, findings = self._state.options, self._state.ledger.findings
        rules = Rules(
            width=options.width,
            depth=options.depth,
            max_replies=options.limits.model_calls + 1,  # so that the budget ends it, and says so
            retry_root=options.retry_root,
        )
        if options.strategy == "dfsdt":
            return dfsdt(findings, rules)
        if options.strategy == "dfs":
            return dfs(findings, rules)
        return react(findings, rules, chains=options.most_chains, until_repeated=not self._draws)

    async def _search(self) -> str:
        """Drive the search; return why it was ended from outside, or "".

        Raises:
            ModelError, GrammarError: the engine failed, and nothing is known yet.
        """
        search = self._strategy()
        answer: Answer = None
        try:
            while True:
                try:
                    wish = search.send(answer)
                except StopIteration:
                    return ""
                if reason := self._refusal(wish):
                    return reason
                answer = await self._grant(wish)
        except Interrupted:
            return self._state.ended()
        except CallsOverError as error:
            return str(error)
        except (ModelError, GrammarError) as error:
            if self._state.ledger.best() is None:
                raise
            return f"the model failed: {error.message}"
        finally:
            search.close()

    def _refusal(self, wish: Wish) -> str:
        """Return why a wish is not granted any more; what a reply says already is carried out."""
        match wish:
            case Think() | Compare():
                return self._state.ended()
            case Act(node) if node.move is None or node.move.function != FINISH:
                return self._state.late()
            case _:
                return ""

    async def _grant(self, wish: Wish) -> Answer:
        match wish:
            case Compare(node, first, second):
                return await self._compare(node, first, second)
            case Think(node):
                return await self._think(node)
            case Act(node):
                return await self._act(node)
            case Left(node, to, reason):
                self._state.tell(
                    out.BacktrackEvent(
                        seconds=self._state.seconds(), node=node.id, to=to.id, reason=reason
                    )
                )
                return None

    async def _act(self, node: Node) -> Observed:
        seen = await self._calling.act(node)
        self._gave_up |= seen.code == Code.GIVE_UP
        return seen

    async def _renew(self) -> None:
        """Search for other candidates when all failed, or after a path gave up, if it may."""
        results = self._state.ledger.results.values()
        worked = {result.api_id for result in results if result.ok}
        failed = {result.api_id for result in results} - worked
        offer = self._state.offer
        if self._gave_up and self._anew_after_give_up:
            reason = "the model gave up with what it had"
        elif offer.spent(failed):
            reason = "all that was on offer failed"
        else:
            return
        self._gave_up = False
        if offer.may_search() and await self._off_loop(lambda: offer.again(worked, failed, reason)):
            self._tell_candidates(offer.searches[-1])

    async def _think(self, node: Node) -> Move | str:
        await self._renew()
        move = await self._propose(node)
        while isinstance(move, Move) and not self._state.ended():
            if not await self._look_for(move.missing):
                break
            move = await self._propose(node)
        self._state.tell_budget()
        return move

    async def _propose(self, node: Node) -> Move | str:
        view, state = self._view(node), self._state
        limit = state.budget.tokens_left

        def propose() -> Move | str:
            try:
                return self._format.propose(
                    view, max_tokens=limit, stop=state.stop, meter=state.meter
                )
            except ContextError as error:
                return f"{error.message} ({error.hint})"
            except Interrupted:
                if state.stop.is_set():
                    raise
                return "the reply broke off: it is longer than a reply may be"

        with state.step():
            return await self._off_loop(propose)

    async def _compare(self, node: Node, first: Node, second: Node) -> bool:
        view, state = replace(self._view(node), tried=()), self._state
        one, other = state.ledger.step(first), state.ledger.step(second)
        with state.step():
            better = await self._off_loop(
                lambda: self._format.prefers(view, one, other, stop=state.stop, meter=state.meter)
            )
        state.tell_budget()
        return better

    async def _look_for(self, missing: Sequence[str]) -> bool:
        """Search for the parts that nothing on offer serves; say whether there is more now."""
        offer, found = self._state.offer, False
        for part in missing:
            if part in self._sought:
                continue
            self._sought.add(part)
            results = self._state.ledger.results.values()
            worked = {one.api_id for one in results if one.ok}
            if await self._off_loop(partial(offer.look_for, part, worked)):
                found = True
                self._tell_candidates(offer.searches[-1])
        return found

    def _view(self, node: Node) -> View:
        """Return what the model may know at a node.

        Chains know nothing of each other's calls where each is drawn anew; a model that always
        says the same must be told what was tried, or every chain would be the first one.
        """
        state = self._state
        steps, offer = state.ledger.steps, state.offer
        path = tuple(steps[n.id] for n in node.calls() if n.id in steps)
        tried = tuple(steps[n.id] for n in node.tried() if n.id in steps)
        past: Iterable[Step] = steps.values()
        if state.options.strategy == "cot" and self._draws:
            tried, past = (), path
        return View(
            state.task,
            offer.shown,
            path,
            tried,
            tuple(step for step in past if not step.ok),
            fits=offer.fits,
            seed=state.options.seed,
        )

    async def _off_loop(self, work: Callable[[], _T]) -> _T:
        return await off_loop(work, self._state.stop)
