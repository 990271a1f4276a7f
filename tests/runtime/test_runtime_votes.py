"""Votes of several solves of one task: the choice, its cost, failures and cancellation."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from tests.agents import CAPITAL, CHAT, CURRENCY
from tests.switched_solves import ANSWER, TASK, Mind, Shelf, asks_for, functions, solve

from toolsrv_runtime.agent.run import count_votes
from toolsrv_runtime.calls.caller import Caller, default_caller
from toolsrv_runtime.contract.models import ChatReply, ChatRequest
from toolsrv_runtime.errors import ModelError
from toolsrv_runtime.models.scripted import ScriptedChat, ScriptedReply
from toolsrv_runtime.options import SWITCHES, SolveOptions
from toolsrv_runtime.outcome import Event, Limits, Outcome
from toolsrv_runtime.solve import Solver
from toolsrv_runtime.stop import Stop


class Counting(Caller):
    """Counts the calls that are really made."""

    made = 0

    async def call(self, *given: Any, **named: Any) -> Any:
        self.made += 1
        await asyncio.sleep(0.05)
        return await super().call(*given, **named)


def by_seed(answers: Sequence[str]) -> Callable[[ChatRequest], ScriptedReply]:
    """Return a model whose answer depends on the solve that asks."""
    mind = Mind()

    def said(request: ChatRequest) -> ScriptedReply:
        if not request.expected.names and not asks_for(request):
            return answers[request.seed // 1_000_003]
        return mind(request)

    return said


def counting() -> Counting:
    from toolsrv_runtime.calls.transports import offline_transports  # noqa: PLC0415 - heavy

    return Counting(transports=offline_transports())


def test_the_answer_that_most_support_wins(shelf: Shelf) -> None:
    good, bad = ANSWER, "Peru's capital is Lima, and Chile's currency CLP."
    caller, events = counting(), list[Event]()
    outcome, model = solve(shelf, by_seed([bad, good, good]), votes=3, caller=caller, events=events)
    assert (outcome.status, outcome.answer) == ("answered", good)
    assert (outcome.votes, outcome.agreed, outcome.seed) == (3, 2, 1)
    assert outcome.notes[-1] == "2 of 3 solves support this answer"
    assert caller.made == outcome.usage.calls == 2  # identical calls are made once
    assert outcome.usage.model_calls == len(model.requests)
    assert {one.temperature for one in model.requests} == {0.0, 0.5}
    assert all((one.seed < 1_000_003) == (one.temperature == 0) for one in model.requests)
    assert [one.text for one in events if one.kind == "note"] == list(outcome.notes)
    calls = [one for one in events if one.kind == "call"]
    assert len(calls) == 2  # of the first solve alone
    events.clear()
    solve(shelf, by_seed([bad, good, good]), votes=3, events=events, every_vote=True)
    made = Counter(one.vote for one in events if one.kind == "observation" and one.evidence)
    assert made == {0: 2, 1: 2, 2: 2}


def test_a_solve_that_fails_has_no_vote(shelf: Shelf) -> None:
    mind = Mind()

    def said(request: ChatRequest) -> ScriptedReply:
        if request.seed // 1_000_003 == 1:
            raise ModelError("it fell over", hint="")
        return mind(request)

    outcome, _ = solve(shelf, said, votes=3)
    assert (outcome.status, outcome.answer, outcome.agreed) == ("answered", ANSWER, 2)
    assert any("it fell over" in one for one in outcome.notes)


def test_where_all_fail_the_first_error_is_raised(shelf: Shelf) -> None:
    def said(request: ChatRequest) -> ScriptedReply:
        raise ModelError(f"it fell over {request.seed // 1_000_003}", hint="")

    with pytest.raises(ModelError, match="it fell over 0"):
        solve(shelf, said, votes=2)


def test_a_vote_shares_one_budget(shelf: Shelf) -> None:
    outcome, model = solve(shelf, Mind(), votes=4, limits=Limits(model_calls=6))
    assert len(model.requests) <= 6 + 4 * 4
    assert outcome.usage.model_calls == len(model.requests)


def test_solves_of_a_vote_run_at_the_same_time(shelf: Shelf) -> None:
    together = threading.Barrier(3, timeout=20)
    mind, first = Mind(), set[int]()

    def said(request: ChatRequest) -> ScriptedReply:
        if request.seed not in first and request.seed % 1_000_003 == 1:
            first.add(request.seed)
            together.wait()  # fails where they come one after the other
        return mind(request)

    assert solve(shelf, said, votes=3)[0].agreed == 3


def test_a_vote_can_be_stopped(shelf: Shelf) -> None:
    stop = Stop()
    threading.Timer(0.3, stop.set).start()
    started = time.monotonic()
    outcome, _ = solve(shelf, Mind(), votes=4, stop=stop, seconds=60)
    assert outcome.status == "cancelled"
    assert time.monotonic() - started < 30


def test_a_vote_that_is_cancelled_leaves_nothing_running(shelf: Shelf) -> None:
    asked = threading.Semaphore(0)

    class Slow(ScriptedChat):
        def reply(self, request: ChatRequest, *, stop: Stop) -> ChatReply | None:
            asked.release()
            return super().reply(request, stop=stop)

    model = Slow(Mind(), seconds=60)

    async def main() -> None:
        async with default_caller() as caller:
            solver = Solver(retriever=shelf, engine=model, profile=CHAT, caller=caller)
            work = asyncio.ensure_future(solver.solve(TASK, SolveOptions(votes=3)))
            await asyncio.to_thread(lambda: [asked.acquire(timeout=20) for _ in range(3)])
            work.cancel()
            with pytest.raises(asyncio.CancelledError):
                await work
            assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())


def test_a_vote_over_a_plan_with_all_switches(shelf: Shelf) -> None:
    outcome, _ = solve(shelf, Mind(), votes=3, switches=SWITCHES)
    assert (outcome.status, outcome.agreed) == ("answered", 3)
    assert functions(outcome) == [CAPITAL, CURRENCY]


def outcomes(shelf: Shelf, *said: tuple[str, str]) -> list[Outcome]:
    base, _ = solve(shelf, Mind())
    return [base.model_copy(update={"status": s, "answer": a}) for s, a in said]


@pytest.mark.parametrize(
    ("said", "index", "agreed"),
    [
        ([("answered", "12,300 people"), ("answered", "12.3 thousand people")], 0, 2),
        (
            [
                ("answered", "on 3 May 2026"),
                ("answered", "on 4 May 2026"),
                ("answered", "2026-05-03"),
            ],
            0,
            2,
        ),
        ([("gave_up", ""), ("gave_up", ""), ("answered", "It is 7.")], 2, 1),
        ([("answered", "Yes."), ("answered", "No."), ("answered", "no")], 1, 2),
        ([("partial", "7"), ("partial", "")], 0, 1),
        ([("answered", "7"), ("answered", "8")], 0, 1),
    ],
    ids=["numbers", "dates", "status", "words", "something", "first of equals"],
)
def test_the_winner_is_chosen_by_values(
    shelf: Shelf, said: list[tuple[str, str]], index: int, agreed: int
) -> None:
    choice = count_votes(outcomes(shelf, *said))
    assert (choice.index, choice.agreed) == (index, agreed)


def test_nothing_cannot_be_chosen_from() -> None:
    with pytest.raises(ValueError, match="nothing"):
        count_votes([])
