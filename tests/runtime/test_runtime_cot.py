"""CoT@N: several chains until one answers, by models that draw and by models that do not."""

from __future__ import annotations

import asyncio

import pytest
from pydantic import ValidationError
from tests.toolllama_replies import GIVE_UP, answer, call

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_registry.functions import FunctionList
from toolsrv_runtime.calls.caller import default_caller
from toolsrv_runtime.engine.scripted import ScriptedEngine
from toolsrv_runtime.outcome import Event, Outcome
from toolsrv_runtime.profiles import Profile
from toolsrv_runtime.solve import ApiRetriever, SolveOptions, Solver
from toolsrv_runtime.toolbench.answer_files import CotAnswer
from toolsrv_runtime.toolbench.answer_writer import answer_of, method_of

GREEDY = Profile(name="toolllama-2", format="toolllama", context=8192)
DRAWN = GREEDY.model_copy(update={"temperature": 0.5, "anew_after_give_up": False})
COT = SolveOptions(strategy="cot")


def solve(
    retriever: ApiRetriever,
    engine: ScriptedEngine,
    *,
    profile: Profile = GREEDY,
    options: SolveOptions = COT,
    events: list[Event] | None = None,
) -> Outcome:
    async def main() -> Outcome:
        async with default_caller() as caller:
            solver = Solver(retriever=retriever, engine=engine, profile=profile, caller=caller)
            heard: list[Event] = [] if events is None else events
            return await solver.solve("capital of Peru", options, on_event=heard.append)

    return asyncio.run(main())


def test_the_first_chain_that_answers_ends_it(retriever: ApiRetriever) -> None:
    script = [call("Atlantis"), GIVE_UP, call("Peru"), answer("Lima"), call("Chile")]
    events: list[Event] = []
    engine = ScriptedEngine(script)
    outcome = solve(retriever, engine, events=events)
    assert (outcome.status, outcome.answer, outcome.chains) == ("answered", "Lima", 5)
    assert len(engine.prompts) == 4
    assert [node.parent for node in outcome.tree if node.depth == 1] == [0, 0]
    assert [e.reason for e in events if e.kind == "backtrack"] == ["a new chain"]
    assert [(e.arguments["country"], e.used) for e in outcome.evidence] == [
        ("Atlantis", False),
        ("Peru", True),
    ]


def test_a_model_that_always_says_the_same_is_told_what_was_tried(retriever: ApiRetriever) -> None:
    engine = ScriptedEngine([call("Atlantis"), GIVE_UP, call("Peru"), answer("Lima")])
    solve(retriever, engine)
    assert "Atlantis" in engine.prompts[2]
    assert "led to no answer" in engine.prompts[2]


def test_a_model_that_always_says_the_same_is_not_asked_on_and_on(retriever: ApiRetriever) -> None:
    engine = ScriptedEngine([GIVE_UP], loop=True)
    assert solve(retriever, engine).status == "gave_up"
    assert len(engine.prompts) == 2


def test_chains_that_are_drawn_know_nothing_of_each_other(retriever: ApiRetriever) -> None:
    engine = ScriptedEngine([call("Atlantis"), GIVE_UP, call("Peru"), answer("Lima")])
    outcome = solve(retriever, engine, profile=DRAWN)
    assert outcome.status == "answered"
    assert engine.prompts[2] == engine.prompts[0]


@pytest.mark.parametrize("chains", [1, 3])
def test_drawn_chains_are_as_many_as_asked_for(retriever: ApiRetriever, chains: int) -> None:
    engine = ScriptedEngine([GIVE_UP], loop=True)
    options = SolveOptions(strategy="cot", chains=chains)
    outcome = solve(retriever, engine, profile=DRAWN, options=options)
    assert outcome.status == "gave_up"
    assert len(engine.prompts) == chains


def test_one_chain_is_react(retriever: ApiRetriever) -> None:
    script = [call("Atlantis"), GIVE_UP, call("Peru"), answer("Lima")]
    react, cot = (
        solve(retriever, ScriptedEngine(script), options=options)
        for options in (SolveOptions(strategy="react"), SolveOptions(strategy="cot", chains=1))
    )
    assert [n.text for n in react.tree] == [n.text for n in cot.tree]
    assert (react.status, react.chains) == (cot.status, cot.chains) == ("gave_up", 1)


def test_an_answer_file_holds_a_try_for_each_chain(retriever: ApiRetriever) -> None:
    script = [call("Atlantis"), GIVE_UP, call("Peru"), answer("Lima")]
    outcome = solve(retriever, ScriptedEngine(script))
    apis = {api.id: api for api in load_offline_catalog().apis}
    offered = FunctionList([apis[one] for one in outcome.candidates])
    written = answer_of(outcome, offered.to_json())
    assert isinstance(written, CotAnswer)
    assert method_of(outcome) == "CoT@5"
    assert (written.win, written.try_count, written.forward_args["pass_at"]) == (True, 2, 5)
    assert [len(one.chain) for one in written.trys] == [6, 6]


def test_there_is_at_least_one_chain() -> None:
    with pytest.raises(ValidationError):
        SolveOptions(strategy="cot", chains=0)
