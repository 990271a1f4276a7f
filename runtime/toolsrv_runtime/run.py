"""One solve: carries out what the search asks for, reports every step.

The search is pure and asks for moves and calls; ``Asking`` and ``Calling`` answer. Ends with an
honest outcome whatever happens.
"""

from __future__ import annotations

from collections.abc import Callable, Generator

from toolsrv_runtime import events
from toolsrv_runtime import outcome as out
from toolsrv_runtime.asking import Asking
from toolsrv_runtime.calling import ApiCaller, Calling, CallsOverError
from toolsrv_runtime.calls.result import Ask
from toolsrv_runtime.closing import close
from toolsrv_runtime.conclusion import conclude
from toolsrv_runtime.contract.chat import ChatModel
from toolsrv_runtime.contract.hints import NO_HINTS, TaskHints
from toolsrv_runtime.contract.questions import AskValue
from toolsrv_runtime.elicitation import Elicitation
from toolsrv_runtime.engine.base import Engine
from toolsrv_runtime.errors import GrammarError, ModelError
from toolsrv_runtime.finder import Finder
from toolsrv_runtime.formats.base import FINISH, Format, Inquirer, Interrupted, Verifier
from toolsrv_runtime.offer import Offer
from toolsrv_runtime.options import SolveOptions
from toolsrv_runtime.profile import MOST_CANDIDATES
from toolsrv_runtime.search.budget import Budget
from toolsrv_runtime.search.chain import react
from toolsrv_runtime.search.dfs import dfs
from toolsrv_runtime.search.dfsdt import (
    Act,
    Answer,
    Begin,
    Compare,
    Divide,
    Findings,
    Left,
    Observed,
    Rules,
    Think,
    Wish,
    dfsdt,
)
from toolsrv_runtime.search.plan import Search, planned
from toolsrv_runtime.search.tree import Code, Node
from toolsrv_runtime.second_opinion import SecondOpinion
from toolsrv_runtime.state import State
from toolsrv_runtime.stop import Stop
from toolsrv_runtime.waiting import off_loop


class Run:
    """One solve; made by ``Solver`` and used once."""

    def __init__(
        self,
        task: str,
        options: SolveOptions,
        retriever: Finder,
        engine: Engine | ChatModel,
        form: Format,
        caller: ApiCaller,
        on_event: Callable[[events.Event], None],
        stop: Stop,
        *,
        offered: int,
        most_offered: int = MOST_CANDIDATES,
        calls_per_turn: int = 1,
        hints: TaskHints = NO_HINTS,
        anew_after_give_up: bool = True,
        draws: bool = False,
        ask: Ask | None = None,
        budget: Budget | None = None,
        ask_value: AskValue | None = None,
    ) -> None:
        """Take the parts; ``budget`` is one that several runs share."""
        offer = Offer(
            retriever, task, offered, options.category, most=most_offered,
            again=options.search_again, wider=options.look_wider, hints=hints,
            earlier=options.earlier,
        )  # fmt: skip
        self._state = State(task, options, offer, stop, on_event, budget)
        self._asking = Asking(self._state, form, anew_after_give_up=anew_after_give_up, draws=draws)
        second = None
        if options.verify and isinstance(form, Verifier):
            second = SecondOpinion(self._state, form, self._asking.view)
        elicitation = None
        if isinstance(form, Inquirer):
            elicitation = Elicitation(self._state, form, self._asking.view, ask_value)
        self._calling = Calling(self._state, form, caller, second, ask, elicitation)
        self._before = out.Usage()
        self._hints = hints
        self._engine = engine
        self._format = form
        self._draws = draws
        self._calls_per_turn = calls_per_turn

    def usage(self) -> out.Usage:
        """Return what the solve has cost so far."""
        return self._state.usage()

    async def run(self) -> out.Outcome:
        """Find candidates, search, conclude.

        Raises:
            NotFoundError: the category is unknown.
        """
        reason = await self._search() if await self._asking.begin() else ""
        self._state.ledger.findings.collect()
        self._before = self._state.usage()
        await close(self._state, self._format, self._asking.view, reason)
        if self._state.ledger.closing is not None:
            self._note_cost(self._state.ledger.closing)
        return await off_loop(lambda: self._concluded(reason), self._state.stop)

    def _concluded(self, reason: str) -> out.Outcome:
        return conclude(
            self._state, reason, self._hints, model=self._engine.name, form=self._format.name
        )

    def _strategy(self) -> Generator[Wish, Answer, int]:
        options, findings = self._state.options, self._state.ledger.findings
        rules = Rules(
            width=options.width,
            depth=options.depth,
            # More than the budget can bring, so that the budget ends it, and says so.
            max_replies=(options.limits.model_calls + 1) * self._calls_per_turn,
            retry_root=options.retry_root,
        )
        searches: dict[str, Search] = {"dfsdt": dfsdt, "dfs": dfs}
        search = searches.get(options.strategy, self._chains)
        if "plan" not in (options.switches or ()):
            return search(findings, rules)
        return planned(findings, rules, searches.get(options.strategy, react), search)

    def _chains(self, findings: Findings, rules: Rules) -> Generator[Wish, Answer, int]:
        chains = self._state.options.most_chains
        return react(findings, rules, chains=chains, until_repeated=not self._draws)

    async def _search(self) -> str:
        """Drive the search; return why it was ended from outside, or "".

        Raises:
            ModelError, GrammarError: the engine failed, and nothing is known or to be kept.
        """
        search = self._strategy()
        answer: Answer = None
        try:
            while True:
                try:
                    wish = search.send(answer)
                except StopIteration:
                    return self._cut_off()
                if reason := self._refusal(wish):
                    if isinstance(wish, Act):
                        self._note_cost(wish.node)  # the reply was written, its call is not made
                    return reason
                answer = await self._grant(wish)
        except Interrupted:
            return self._state.ended()
        except CallsOverError as error:
            return str(error)
        except (ModelError, GrammarError) as error:
            ledger = self._state.ledger
            worth_keeping = ledger.best() is not None or ledger.declined()
            if not (self._state.options.keep_on_fault and worth_keeping):
                raise
            return f"the model failed: {error.message}"
        finally:
            search.close()
            await self._calling.close()

    def _cut_off(self) -> str:
        """Return why a search that came to its own end did not come to the task's."""
        options, ledger = self._state.options, self._state.ledger
        if options.close_search and not ledger.findings.answers and ledger.cut_at(options.depth):
            return f"a path of calls that went on was cut at a depth of {options.depth} nodes"
        return ""

    def _refusal(self, wish: Wish) -> str:
        """Return why a wish is not granted any more; what a reply says already is carried out."""
        match wish:
            case Think() | Compare() | Divide() | Begin():
                if self._state.unanswered and self._asking.gave_up:
                    return "a value is missing that nobody gave"
                if isinstance(wish, Think) and self._asking.planned(wish.node) is not None:
                    return self._state.late()  # a reply says already what comes next
                return self._state.ended()
            case Act(node) if node.move is None or node.move.function != FINISH:
                return self._state.late()
            case _:
                return ""

    async def _grant(self, wish: Wish) -> Answer:
        match wish:
            case Compare(node, first, second):
                return await self._asking.prefers(node, first, second)
            case Think(node):
                self._before = self._state.usage()
                return await self._asking.think(node)
            case Act(node):
                return await self._act(node)
            case Divide(node):
                return await self._asking.divide(node)
            case Begin(node, part, solved):
                await self._asking.begin_part(node, part, solved=solved)
                return None
            case Left(node, to, reason):
                self._state.tell(
                    events.BacktrackEvent(
                        seconds=self._state.seconds(), node=node.id, to=to.id, reason=reason
                    )
                )
                return None

    async def _act(self, node: Node) -> Observed:
        try:
            seen = await self._calling.act(node)
        finally:
            self._note_cost(node)
        self._asking.gave_up |= seen.code == Code.GIVE_UP
        return seen

    def _note_cost(self, node: Node) -> None:
        """Note what a node cost since the model was asked for it."""
        now, before = self._state.usage(), self._before
        cost = out.Cost(
            node=node.id,
            tokens=now.generated_tokens - before.generated_tokens,
            seconds=round(now.seconds - before.seconds, 4),
        )
        self._state.ledger.costs.append(cost)
