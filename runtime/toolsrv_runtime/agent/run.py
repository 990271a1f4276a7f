"""Run one solve, or several solves of one task that vote.

The search is a pure generator that yields effects; ``Run`` has ``ActionProposer`` and
``CallExecutor`` carry them out, and always ends with an outcome. Votes share one engine, one
budget, the results of identical calls and a person's answers to identical questions. The best
status wins, then the answer whose values most of the others state; values are compared as the
evidence check reads them, without those of the task.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolsrv_registry.api import Api
from toolsrv_registry.errors import ToolsrvError
from toolsrv_runtime import outcome
from toolsrv_runtime import outcome as out
from toolsrv_runtime.agent.call_executor import ApiCaller, CallBudgetError, CallExecutor, call_key
from toolsrv_runtime.agent.candidates import ApiRetriever, Candidates
from toolsrv_runtime.agent.conclusion import AnswerVerifier, conclude
from toolsrv_runtime.agent.concurrency import gather_results, run_in_thread
from toolsrv_runtime.agent.elicitation import Elicitation
from toolsrv_runtime.agent.proposals import ActionProposer, close_search
from toolsrv_runtime.agent.state import Budget, RunState
from toolsrv_runtime.calls import arguments as args
from toolsrv_runtime.calls.result import AskConsent, CallResult, Consent
from toolsrv_runtime.contract.format import FINISH, Format, Inquirer, Interrupted, Verifier
from toolsrv_runtime.contract.hints import NO_HINTS, AskValue, TaskHints
from toolsrv_runtime.contract.models import ChatModel, Engine
from toolsrv_runtime.errors import ArgumentError, GrammarError, ModelError
from toolsrv_runtime.evidence import trace
from toolsrv_runtime.options import SolveOptions
from toolsrv_runtime.outcome import Outcome
from toolsrv_runtime.profiles import MAX_CANDIDATES
from toolsrv_runtime.search.dfsdt import (
    Act,
    Backtrack,
    BeginSubtask,
    Compare,
    Decompose,
    Effect,
    EffectResult,
    Observation,
    SearchFunction,
    SearchRules,
    SearchState,
    Think,
    decomposed,
    dfs,
    dfsdt,
    react,
)
from toolsrv_runtime.search.tree import Code, Node
from toolsrv_runtime.stop import Stop


class Run:
    """One solve; made by ``Solver`` and used once."""

    def __init__(
        self,
        task: str,
        options: SolveOptions,
        retriever: ApiRetriever,
        engine: Engine | ChatModel,
        form: Format,
        caller: ApiCaller,
        on_event: Callable[[outcome.Event], None],
        stop: Stop,
        *,
        offered: int,
        most_offered: int = MAX_CANDIDATES,
        calls_per_turn: int = 1,
        hints: TaskHints = NO_HINTS,
        anew_after_give_up: bool = True,
        draws: bool = False,
        ask: AskConsent | None = None,
        budget: Budget | None = None,
        ask_value: AskValue | None = None,
    ) -> None:
        """Take the parts; ``budget`` is one that several runs share."""
        offer = Candidates(
            retriever, task, offered, options.category, most=most_offered,
            again=options.search_again, wider=options.look_wider, hints=hints,
            earlier=options.earlier,
        )  # fmt: skip
        self._state = RunState(task, options, offer, stop, on_event, budget)
        self._asking = ActionProposer(
            self._state, form, anew_after_give_up=anew_after_give_up, draws=draws
        )
        second = None
        if options.verify and isinstance(form, Verifier):
            second = AnswerVerifier(self._state, form, self._asking.view)
        elicitation = None
        if isinstance(form, Inquirer):
            elicitation = Elicitation(self._state, form, self._asking.view, ask_value)
        self._calling = CallExecutor(self._state, form, caller, second, ask, elicitation)
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
        await close_search(self._state, self._format, self._asking.view, reason)
        if self._state.ledger.closing is not None:
            self._note_cost(self._state.ledger.closing)
        return await run_in_thread(lambda: self._concluded(reason), self._state.stop)

    def _concluded(self, reason: str) -> out.Outcome:
        return conclude(
            self._state, reason, self._hints, model=self._engine.name, form=self._format.name
        )

    def _strategy(self) -> Generator[Effect, EffectResult, int]:
        options, findings = self._state.options, self._state.ledger.findings
        rules = SearchRules(
            width=options.width,
            depth=options.depth,
            # More than the budget can bring, so that the budget ends it, and says so.
            max_replies=(options.limits.model_calls + 1) * self._calls_per_turn,
            retry_root=options.retry_root,
        )
        searches: dict[str, SearchFunction] = {"dfsdt": dfsdt, "dfs": dfs}
        search = searches.get(options.strategy, self._chains)
        if "plan" not in (options.switches or ()):
            return search(findings, rules)
        return decomposed(findings, rules, searches.get(options.strategy, react), search)

    def _chains(
        self, findings: SearchState, rules: SearchRules
    ) -> Generator[Effect, EffectResult, int]:
        chains = self._state.options.most_chains
        return react(findings, rules, chains=chains, until_repeated=not self._draws)

    async def _search(self) -> str:
        """Drive the search; return why it was ended from outside, or "".

        Raises:
            ModelError, GrammarError: the engine failed, and nothing is known or to be kept.
        """
        search = self._strategy()
        answer: EffectResult = None
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
        except CallBudgetError as error:
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

    def _refusal(self, wish: Effect) -> str:
        """Return why an effect is refused by the budget; calls of a finished reply are executed."""
        match wish:
            case Think() | Compare() | Decompose() | BeginSubtask():
                if self._state.unanswered and self._asking.gave_up:
                    return "a value is missing that nobody gave"
                if isinstance(wish, Think) and self._asking.planned(wish.node) is not None:
                    return self._state.late()  # a reply says already what comes next
                return self._state.ended()
            case Act(node) if node.move is None or node.move.function != FINISH:
                return self._state.late()
            case _:
                return ""

    async def _grant(self, wish: Effect) -> EffectResult:
        match wish:
            case Compare(node, first, second):
                return await self._asking.prefers(node, first, second)
            case Think(node):
                self._before = self._state.usage()
                return await self._asking.think(node)
            case Act(node):
                return await self._act(node)
            case Decompose(node):
                return await self._asking.divide(node)
            case BeginSubtask(node, part, solved):
                await self._asking.begin_part(node, part, solved=solved)
                return None
            case Backtrack(node, to, reason):
                self._state.report(
                    outcome.BacktrackEvent(
                        seconds=self._state.seconds(), node=node.id, to=to.id, reason=reason
                    )
                )
                return None

    async def _act(self, node: Node) -> Observation:
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


_RANKS = ("answered", "replied", "partial", "needs_input", "gave_up", "cancelled")


@dataclass(frozen=True, slots=True)
class VoteResult:
    """``index`` is the winner; ``agreed`` how many outcomes, itself included, state its values."""

    index: int
    agreed: int


def count_votes(outcomes: Sequence[Outcome]) -> VoteResult:
    """Return which outcome wins: the best status first, then agreement, then fewer untraced claims.

    Of equals the first wins. O(outcomes squared) traces of answers, each bounded.

    Raises:
        ValueError: there is none.
    """
    if not outcomes:
        raise ValueError("there is nothing to choose from")
    best = min(outcomes, key=_rank)
    rivals = [at for at, one in enumerate(outcomes) if _rank(one) == _rank(best)]
    shares = {
        at: [_agreement(outcomes[at], outcomes[other]) for other in rivals if other != at]
        for at in rivals
    }
    index = max(rivals, key=lambda at: (sum(shares[at]), -len(outcomes[at].unsupported), -at))
    return VoteResult(index, 1 + sum(share == 1 for share in shares[index]))


def _rank(outcome: Outcome) -> tuple[int, bool]:
    return _RANKS.index(outcome.status), not outcome.answer.strip()


def _agreement(one: Outcome, other: Outcome) -> float:
    """Return how much two answers agree, in [0, 1]: the share of their values that both state."""
    mine, theirs = _corroboration(one, other), _corroboration(other, one)
    every = mine + theirs
    if not every:  # nothing that can be compared but the words
        return float(_plain(one.answer) == _plain(other.answer))
    return sum(every) / len(every)


def _corroboration(one: Outcome, other: Outcome) -> list[bool]:
    """Return of each value of an answer that the task does not state whether another states it."""
    traced = trace(one.answer, one.task, [(1, other.answer)])
    return [
        *(bool(claim.nodes) for claim in traced.supported if not claim.in_task),
        *(False for _ in traced.unsupported),
    ]


def _plain(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(".! ")


EventListener = Callable[[outcome.Event], None]
MakeRun = Callable[[int, SolveOptions, ApiCaller, EventListener, Budget, AskConsent | None], Run]


class SharedCalls:
    """Calls of several solves: identical ones are made once, while they run and after.

    ``made`` counts them. ``ask`` puts the same question to a person once.
    """

    def __init__(self, caller: ApiCaller, ask: AskConsent | None) -> None:
        self._caller = caller
        self._ask = ask
        self._calls: dict[str, asyncio.Future[CallResult]] = {}
        self._questions: dict[str, asyncio.Future[bool | None]] = {}
        self.made = 0

    async def call(
        self,
        api: Api,
        arguments: Mapping[str, Any],
        *,
        tainted: bool = False,
        consent: Consent | None = None,
    ) -> CallResult:
        """Return the result of a call, made now, under way or known."""
        try:
            key = call_key(api.id, args.bind(api, arguments))
        except ArgumentError:  # the result says so
            return await self._caller.call(api, arguments, tainted=tainted, consent=consent)
        key = json.dumps([key, tainted, consent is not None])
        if key not in self._calls:
            self.made += 1
            call = self._caller.call(api, arguments, tainted=tainted, consent=consent)
            self._calls[key] = asyncio.ensure_future(call)
        return await asyncio.shield(self._calls[key])

    def schema(self, api: Api) -> Any:
        """Return what is known of the shape of an API's responses."""
        return self._caller.schema(api)

    @property
    def ask(self) -> AskConsent | None:
        """How a person is asked, None where nobody can be."""
        return None if self._ask is None else self._ask_once

    async def close(self) -> None:
        """Cancel what nobody waits for any more."""
        pending: list[asyncio.Future[Any]] = [*self._calls.values(), *self._questions.values()]
        for one in pending:
            one.cancel()
        await asyncio.gather(*pending, return_exceptions=True)

    async def _ask_once(self, wanted: Consent) -> bool | None:
        key = call_key(wanted.request, wanted.arguments)
        if key not in self._questions and self._ask is not None:
            self._questions[key] = asyncio.ensure_future(self._ask(wanted))
        return await asyncio.shield(self._questions[key])


async def solve_with_votes(
    options: SolveOptions,
    make: MakeRun,
    caller: ApiCaller,
    ask: AskConsent | None,
    on_event: EventListener,
    *,
    every_vote: bool = False,
) -> out.Outcome:
    """Solve ``options.votes`` times; return the winner, its usage that of all, with a note.

    ``on_event`` gets the events of the first solve, what a person is asked by any, and notes of the
    vote; with ``every_vote`` the events of all solves.

    Raises:
        ToolsrvError: every solve failed; the first one's error.
    """
    shared = SharedCalls(caller, ask)
    budget = Budget(options.limits, time.monotonic())

    def listener(number: int) -> EventListener:
        def numbered(event: out.Event) -> None:
            event = event.model_copy(update={"vote": number})
            if every_vote or out.is_followed(event):
                on_event(event)

        return numbered if number else on_event

    runs = [
        make(
            number,
            options.model_copy(update={"seed": options.seed + number, "votes": 1}),
            shared,
            listener(number),
            budget,
            shared.ask,
        )
        for number in range(options.votes)
    ]
    try:
        ended = await gather_results(run.run() for run in runs)
    finally:
        await shared.close()
    outcomes = [one for one in ended if isinstance(one, out.Outcome)]
    errors = [one for one in ended if isinstance(one, BaseException)]
    unexpected = next((one for one in errors if not isinstance(one, ToolsrvError)), None)
    if unexpected is not None or not outcomes:
        raise unexpected or errors[0]
    choice = count_votes(outcomes)
    winner = outcomes[choice.index]
    notes = [f"{choice.agreed} of {options.votes} solves support this answer"]
    notes += [f"a solve of the vote failed: {error}" for error in errors]
    usage = out.total_usage([run.usage() for run in runs], shared.made)
    for note in notes:
        on_event(outcome.NoteEvent(seconds=usage.seconds, text=note))
    return winner.model_copy(
        update={
            "notes": tuple(dict.fromkeys((*winner.notes, *notes))),
            "usage": usage,
            "votes": options.votes,
            "agreed": choice.agreed,
        }
    )
