"""Tasks that go on from other runs: what those were asked, answered and found is known."""

from __future__ import annotations

import asyncio
import json

from tests.agents import (
    CAPITAL,
    CAPITAL_API,
    Judge,
    Searched,
    capital,
    kind,
    model,
    prompts_of,
    solve,
)

from toolsrv_runtime.agent.candidates import ApiRetriever
from toolsrv_runtime.calls.caller import default_caller
from toolsrv_runtime.contract.models import ChatRequest, UserMessage
from toolsrv_runtime.engine.scripted import ScriptedEngine
from toolsrv_runtime.options import EarlierCall, EarlierRun
from toolsrv_runtime.outcome import Outcome
from toolsrv_runtime.profiles import Profile
from toolsrv_runtime.solve import SolveOptions, Solver

PERU = EarlierRun(
    task="What is the capital of Peru?",
    answer="The capital is Lima.",
    calls=(
        EarlierCall(
            CAPITAL_API, "another_name", {"country": "Peru"}, {"country": "Peru", "capital": "Lima"}
        ),
    ),
    run_id="run_of_peru",
)
SILENT = Judge(silent=True)


def asked(request: ChatRequest) -> str:
    """Return what the user says in a request, last."""
    return [one.text for one in request.messages if isinstance(one, UserMessage)][-1]


def test_a_follow_up_is_answered_from_what_was_found_before(retriever: ApiRetriever) -> None:
    chat = model(more=["I know it."], answer=["That is Lima."])
    outcome = solve(
        Searched(retriever, SILENT),
        chat,
        "Which letter does that city begin with?",
        earlier=(PERU,),
    )
    assert (outcome.status, outcome.answer) == ("answered", "That is Lima.")
    assert outcome.continues == "run_of_peru"
    assert not outcome.evidence
    assert "Lima" in [one.text for one in outcome.supported]
    assert not outcome.unsupported
    assert any("goes on from" in one for one in outcome.notes)
    first, *_ = prompts_of(chat, "more")
    assert "The capital is Lima." in asked(first)
    assert CAPITAL in asked(first)
    written = asked(prompts_of(chat, "answer")[0])
    assert "Lima" in written
    assert "Peru" in written


def test_what_was_called_before_is_offered_again_and_called(retriever: ApiRetriever) -> None:
    japan = capital("Japan")
    chat = model(more=[japan, "done"], answer=["It is Tokyo."])
    task = "and of Japan?"
    outcome = solve(Searched(retriever, SILENT), chat, task, earlier=(PERU,))
    assert CAPITAL_API in outcome.candidates
    (made,) = outcome.evidence
    assert (made.api_id, made.arguments) == (CAPITAL_API, {"country": "Japan"})
    assert (outcome.status, outcome.answer) == ("answered", "It is Tokyo.")


def test_what_an_interrupted_run_had_called_is_not_called_again(retriever: ApiRetriever) -> None:
    found = {"country": "Peru", "capital": "Lima, as it was found"}
    call = EarlierCall(CAPITAL_API, CAPITAL, {"country": "Peru"}, found, 200, "offline")
    for interrupted, calls in ((True, 1), (False, 2)):
        before = EarlierRun("capitals", "", (call,), "run_before", interrupted=interrupted)
        chat = model(more=[capital(), capital("Japan"), "done"], answer=["Lima and Tokyo."])
        outcome = solve(Searched(retriever, SILENT), chat, "capitals", earlier=(before,))
        assert outcome.usage.calls == calls
        assert [one.arguments["country"] for one in outcome.evidence] == ["Peru", "Japan"]
        assert (outcome.evidence[0].response == found) is interrupted


def test_only_the_last_runs_of_a_chain_count_as_interrupted(retriever: ApiRetriever) -> None:
    call = EarlierCall(CAPITAL_API, CAPITAL, {"country": "Peru"}, {"capital": "Lima"})
    chain = (EarlierRun("capitals", "", (call,), "run_a", interrupted=True), PERU)
    chat = model(more=[capital(), "done"], answer=["Lima."])
    assert solve(Searched(retriever, SILENT), chat, "again", earlier=chain).usage.calls == 1


def test_values_of_earlier_results_are_no_made_up_ones(retriever: ApiRetriever) -> None:
    chat = model(more=["done"], answer=["Lima, of Peru."])
    outcome = solve(Searched(retriever, SILENT), chat, "Say that again.", earlier=(PERU,))
    assert {one.text for one in outcome.supported} >= {"Lima", "Peru"}
    alone = model(call=[capital()], more=["done"], answer=["Quito."])
    told = solve(Searched(retriever, SILENT), alone, "What is the capital of Peru?")
    assert [one.text for one in told.unsupported] == ["Quito"]


def test_without_an_earlier_run_nothing_is_said_of_one(retriever: ApiRetriever) -> None:
    chat = model(call=[capital()], answer=["It is Lima."])
    outcome = solve(Searched(retriever, SILENT), chat, "What is the capital of Peru?")
    assert outcome.continues == ""
    assert all("before (data" not in asked(one) for one in chat.requests)
    assert {kind(one) for one in chat.requests} >= {"call", "answer"}


def test_a_long_earlier_result_is_known_whole_and_read_cut(retriever: ApiRetriever) -> None:
    rows = [{"city": f"Town{n}", "note": "x" * 50} for n in range(300)]
    long = EarlierCall(CAPITAL_API, CAPITAL, {"country": "Peru"}, rows)
    before = EarlierRun("List the towns.", "y" * 9_000, (long,) * 20)
    chat = model(more=["done"], answer=["Town299."], context=8_192)
    outcome = solve(Searched(retriever, SILENT), chat, "Which is the last?", earlier=(before,))
    assert outcome.status == "answered"
    assert [one.text for one in outcome.supported] == ["Town299"]
    assert max(len(asked(one)) for one in prompts_of(chat, "more")) < 8_000


def test_a_toolllama_reads_earlier_runs_in_the_request(retriever: ApiRetriever) -> None:
    arguments = json.dumps({"return_type": "give_answer", "final_answer": "It is Lima."})
    engine = ScriptedEngine(
        [f"Thought: known\nAction: Finish\nAction Input: {arguments}"], loop=True
    )
    profile = Profile(name="toolllama-2", format="toolllama", context=8192)

    async def main() -> Outcome:
        async with default_caller() as caller:
            solver = Solver(retriever=retriever, engine=engine, profile=profile, caller=caller)
            return await solver.solve("Which city was it?", SolveOptions(earlier=(PERU,)))

    outcome = asyncio.run(main())
    assert (outcome.status, outcome.answer) == ("answered", "It is Lima.")
    assert "Lima" in [one.text for one in outcome.supported]
    assert "The capital is Lima." in engine.prompts[0]
