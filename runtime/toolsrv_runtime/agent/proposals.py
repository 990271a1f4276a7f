"""Ask the format for the next action at a node, and for a closing answer when a budget ends.

Builds the history of a path, searches for other candidates where those available fail, and keeps
track of the current subtask. Closing writes one answer from what is known, in one further model
call; where no call succeeded there is none, and a stop by the user ends the search at once.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from toolsrv_registry.functions import Function
from toolsrv_runtime import outcome
from toolsrv_runtime import outcome as out
from toolsrv_runtime.agent.concurrency import run_in_thread
from toolsrv_runtime.agent.state import RunState
from toolsrv_runtime.contract.format import Action, Configurable, Format, History, Interrupted, Step
from toolsrv_runtime.errors import ContextError, GrammarError, ModelError, TaskTooLongError
from toolsrv_runtime.search.tree import Node
from toolsrv_runtime.stop import Stop

_T = TypeVar("_T")

_UNSERVED = "nothing on offer serves a part of the task"
_BETTER = "something that can help where a call failed"
_FEWER = "this model takes at most {} APIs at once: so many are offered"
_CONSENT = (
    "{} fits the task best but was left out, because a person has to allow the call: solve it at a "
    "terminal, or allow such calls with the setting calls (toolsrv config show)"
)


@dataclass(frozen=True, slots=True)
class _Part:
    """A subtask that begins after the first ``before`` calls of a path, and its candidates."""

    text: str
    before: int
    functions: tuple[Function, ...]

    def view(self, whole: History) -> History:
        """Return what the model may know at a node of the subtask."""
        return replace(
            whole,
            task=self.text,
            whole=whole.task,
            functions=self.functions,
            path=whole.path[self.before :],
            earlier=(*whole.earlier, *(one for one in whole.path[: self.before] if one.ok)),
        )


class ActionProposer:
    """The model's part of one solve.

    ``anew_after_give_up``: other APIs are searched for when the model gave up, which ``gave_up``
    notes, besides when all failed. ``draws``: two replies to one prompt may differ.
    """

    def __init__(
        self, state: RunState, form: Format, *, anew_after_give_up: bool, draws: bool
    ) -> None:
        self._state = state
        self._format = form
        self._anew_after_give_up = anew_after_give_up
        self._draws = draws
        self._sought: set[str] = set()
        self._parts: tuple[str, ...] = ()
        self._part: _Part | None = None
        self._before = 0
        self._unsolved: tuple[str, ...] | None = None
        self._earlier: tuple[Step, ...] = ()
        self.gave_up = False

    async def begin(self) -> bool:
        """Search for APIs for the whole task; False when there are none, and nothing else to go by.

        Raises:
            NotFoundError: the category is unknown.
        """
        state, offer = self._state, self._state.offer
        self._report_candidates(await self._run_in_thread(offer.begin))
        self._earlier = await self._run_in_thread(self._steps_before)
        if offer.limited_to:
            with state.step():
                state.meter.note([_FEWER.format(offer.limited_to)])
        if offer.need_consent:
            with state.step():
                state.meter.note([_CONSENT.format(offer.need_consent[0])])
        return bool(offer.available) or (
            bool(state.options.earlier) and isinstance(self._format, Configurable)
        )

    def _steps_before(self) -> tuple[Step, ...]:
        """Return the calls of earlier runs under the names that functions have in this one."""
        names = {function.api.id: function.name for function in self._state.offer.all}
        return tuple(
            Step(
                Action(
                    None,
                    names.get(call.api_id, call.function),
                    json.dumps(call.arguments, ensure_ascii=False, default=str),
                ),
                self._format.observation(call.response, ""),
                ok=True,
                response=call.response,
            )
            for run in self._state.options.earlier
            for call in run.calls
        )

    async def think(self, node: Node) -> Action | str:
        """Return the next action at ``node``, or the reason for none.

        Raises:
            TaskTooLongError: the task does not fit the model's context.
        """
        if self._part is not None:
            move = await self._propose(self._part.view(self.view(node)))
            self._state.report_budget()
            return move
        await self._search_again()
        move = await self._propose(self.view(node))
        while isinstance(move, Action) and not self._state.ended():
            found = await self._search_uncovered(
                [one for one in move.missing if not self._is_declined(one)]
            )
            if not found and not await self._search_uncovered(move.wanted, _BETTER):
                break
            move = await self._propose(self.view(node))
        self._state.report_budget()
        return move

    def planned(self, node: Node) -> Action | None:
        """Return the next call of the reply that ends at ``node``; see ``History.planned``."""
        view = self.view(node)
        return (view if self._part is None else self._part.view(view)).planned

    async def prefers(self, node: Node, first: Node, second: Node) -> bool:
        """Whether the model finds the reply that ends at ``first`` the better one below ``node``.

        Where the question does not fit its context ``first`` is, so that a pair that is asked about
        in both orders stays as it was made.
        """
        view, state = self.view(node), self._state
        if self._part is not None:
            view = self._part.view(view)
        view = replace(view, tried=())
        one, other = state.ledger.step(first), state.ledger.step(second)

        def prefers() -> bool:
            try:
                return self._format.prefers(view, one, other, stop=state.stop, meter=state.meter)
            except ContextError as error:
                state.meter.note([f"two steps were not compared: {error.message}"])
                return True

        with state.step():
            better = await self._run_in_thread(prefers)
        state.report_budget()
        return better

    def view(self, node: Node) -> History:
        """Return what the model may know at a node.

        Chains know nothing of each other's calls where each is drawn anew; a model that always
        says the same must be told what was tried, or every chain would be the first one.
        """
        state = self._state
        steps, offer = state.ledger.steps, state.offer
        path = tuple(steps[n.id] for n in node.calls() if n.id in steps)
        if self._before and self._part is None:
            path = _ended(path, self._before)
        tried = tuple(steps[n.id] for one in node.tried() for n in _turn(one) if n.id in steps)
        past: Iterable[Step] = steps.values()
        if state.options.strategy == "cot" and self._draws:
            tried, past = (), path
        return History(
            state.task,
            offer.available,
            path,
            tried,
            tuple(step for step in past if not step.ok and not step.early),
            tuple((one.question.text, one.spelled) for one in state.given),
            seed=state.options.seed,
            fits=offer.fits,
            open_parts=self._unsolved if self._part is None else None,
            earlier=self._earlier,
            before=tuple((one.task, one.answer) for one in state.options.earlier),
        )

    async def divide(self, node: Node) -> tuple[Action, ...]:
        """Return a heading for each subtask that the model names; none where it names none."""
        form, state = self._format, self._state
        if not isinstance(form, Configurable):
            return ()
        view, limit = self.view(node), state.budget.tokens_left

        def divide() -> tuple[str, ...]:
            try:
                return form.divide(view, max_tokens=limit, stop=state.stop, meter=state.meter)
            except TaskTooLongError:
                raise
            except ContextError as error:
                state.meter.note([f"the task was not divided: {error.message}"])
                return ()

        with state.step():
            self._parts = await self._run_in_thread(divide)
        state.report_budget()
        if self._parts:
            listed = "; ".join(f"{at}. {part}" for at, part in enumerate(self._parts, 1))
            self._report_thought(node, f"plan: {listed}")
        return tuple(Action(part, "", "") for part in self._parts)

    async def begin_part(self, node: Node, number: int | None, *, solved: bool) -> None:
        """Go on with a subtask below ``node``, or with the whole task (None).

        ``solved``: whether the subtask before it was.
        """
        offer = self._state.offer
        if self._part is not None and not solved:
            self._unsolved = (*(self._unsolved or ()), self._part.text)
        if number is None:
            worked = [one.api_id for one in self._state.ledger.results.values() if one.ok]
            self._part, self._unsolved = None, self._unsolved or ()
            self._before = len(node.calls())
            offer.keep(worked)
            return
        part = self._parts[number]
        functions = await self._run_in_thread(partial(offer.for_part, part))
        self._report_candidates(offer.searches[-1])
        self._report_thought(node, part)
        self._part = _Part(part, len(node.calls()), functions)

    def _report_thought(self, node: Node, text: str) -> None:
        state, calls = self._state, node.calls()
        state.report(
            outcome.ThoughtEvent(
                seconds=state.seconds(),
                node=node.id,
                parent=calls[-1].id if calls else 0,
                depth=len(calls),
                text=text,
            )
        )

    async def _propose(self, view: History) -> Action | str:
        state = self._state
        limit = state.budget.tokens_left

        def propose() -> Action | str:
            try:
                return self._format.propose(
                    view, max_tokens=limit, stop=state.stop, meter=state.meter
                )
            except TaskTooLongError:
                raise
            except ContextError as error:
                return f"{error.message} ({error.hint})"
            except Interrupted:
                if state.stop.is_set():
                    raise
                return "the reply broke off: it is longer than a reply may be"

        with state.step():
            return await self._run_in_thread(propose)

    async def _search_again(self) -> None:
        """Search for other candidates when all failed, or after a path gave up, if it may.

        Not once a person has declined a call: what is found could do the same as that call. Nor
        once nobody gave a value: other functions need it too.
        """
        if any(step.declined or step.unanswered for step in self._state.ledger.steps.values()):
            return
        results = self._state.ledger.results.values()
        worked = {result.api_id for result in results if result.ok}
        failed = {result.api_id for result in results} - worked
        offer = self._state.offer
        if self.gave_up and self._anew_after_give_up:
            reason = "the model gave up with what it had"
        elif offer.all_failed(failed):
            reason = "all that was on offer failed"
        else:
            return
        self.gave_up = False
        if offer.may_search() and await self._run_in_thread(
            lambda: offer.again(worked, failed, reason)
        ):
            self._report_candidates(offer.searches[-1])

    def _is_declined(self, part: str) -> bool:
        """Whether a part of the task has words in common with what a declined call was for."""
        declined = (one.move.about for one in self._state.ledger.steps.values() if one.declined)
        return any(part in about or about in part for about in declined)

    async def _search_uncovered(self, missing: Sequence[str], reason: str = _UNSERVED) -> bool:
        """Search for the parts that no candidate serves; return whether there are new candidates.

        A called function stays available where something better than it is sought, and the first
        part for which something is found is enough.
        """
        offer, found = self._state.offer, False
        for part in missing:
            if part in self._sought:
                continue
            self._sought.add(part)
            results = self._state.ledger.results.values()
            stays = {one.api_id for one in results if one.ok or reason == _BETTER}
            if await self._run_in_thread(partial(offer.search_for, part, stays, reason)):
                found = True
                self._report_candidates(offer.searches[-1])
                if reason == _BETTER:
                    break
        return found

    def _report_candidates(self, searched: out.Searched) -> None:
        state = self._state
        state.report(
            outcome.CandidatesEvent(
                seconds=state.seconds(),
                api_ids=searched.api_ids,
                scores=searched.scores,
                reason=searched.reason,
                dead_left_out=state.offer.dead_left_out,
            )
        )

    async def _run_in_thread(self, work: Callable[[], _T]) -> _T:
        return await run_in_thread(work, self._state.stop)


def _ended(path: tuple[Step, ...], calls: int) -> tuple[Step, ...]:
    """Return a path on which the reply of the last of its first ``calls`` calls has no further one."""
    if not path[calls - 1 : calls]:
        return path
    last = path[calls - 1]
    return (*path[: calls - 1], replace(last, move=replace(last.move, also=())), *path[calls:])


def _turn(node: Node) -> Iterator[Node]:
    """Yield a node and those below it whose calls came in the same reply."""
    while True:
        yield node
        move, below = node.move, next(iter(node.tried()), None)
        if below is None or not isinstance(move, Action) or not isinstance(below.move, Action):
            return
        if not move.is_followed_by(below.move):
            return
        node = below


CLOSING_TOKENS = 512
"""Tokens that the answer may have beyond the budget."""

CLOSING_SECONDS = 1.0
"""Seconds that it may take beyond the budget; more where a step of the solve took more."""


async def close_search(
    state: RunState, form: Format, view: Callable[[Node], History], reason: str
) -> None:
    """Have the model answer below the best node, if the search has none and may have one.

    ``reason`` says which budget ended the search; without one it came to its own end, which is
    left alone where the model gave up.
    """
    ledger = state.ledger
    found, best = ledger.findings, ledger.best()
    if not state.options.close_search or found.answers or best is None or state.outer.is_set():
        return
    if not reason and found.give_ups:
        return
    move = await _ask_answer(state, form, view(best))
    if move is None or not ledger.close(best, move) or ledger.closing is None:
        return
    state.report(
        outcome.ThoughtEvent(
            seconds=state.seconds(),
            node=ledger.closing.id,
            parent=best.id,
            depth=len(ledger.closing.calls()),
            text=move.thought or "",
        )
    )
    state.report_budget()


async def _ask_answer(state: RunState, form: Format, view: History) -> Action | None:
    """Return the answer; None where time, context or engine do not allow one."""
    deadline = time.monotonic() + max(CLOSING_SECONDS, state.budget.longest)
    stop = Stop(parent=state.outer, deadline=deadline)
    try:
        with state.step():
            return await run_in_thread(
                lambda: form.finish(view, max_tokens=CLOSING_TOKENS, stop=stop, meter=state.meter),
                stop,
            )
    except (Interrupted, ContextError, GrammarError, ModelError):
        return None
