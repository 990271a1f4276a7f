"""Whole solves: the shipped model on the offline catalog, and every way a solve can end."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.toolllama_replies import GIVE_UP, TOOLLLAMA, answer, call

from toolsrv_catalogs.offline import OFFLINE_HOST
from toolsrv_registry.api import Api
from toolsrv_registry.errors import NotFoundError, UsageError
from toolsrv_registry.matcher import Match, MatchRequest
from toolsrv_runtime.calls.caller import Caller, default_caller
from toolsrv_runtime.contract.models import Engine
from toolsrv_runtime.engine.scripted import ScriptedEngine
from toolsrv_runtime.errors import ContextError
from toolsrv_runtime.outcome import Event, Limits, Outcome
from toolsrv_runtime.profiles import Profile
from toolsrv_runtime.solve import TASK_LIMIT, ApiRetriever, SolveOptions, Solver
from toolsrv_runtime.stop import Stop

CAPITAL = "capital_city_for_country_facts"
TWO_CALLS = "What is the capital of Peru, and what is 15 percent of 240?"


def run(
    task: str,
    retriever: ApiRetriever,
    engine: Engine,
    *,
    profile: Profile = TOOLLLAMA,
    options: SolveOptions = SolveOptions(),  # noqa: B008 - frozen
    stop: Stop | None = None,
    events: list[Event] | None = None,
    app: Any = None,
) -> Outcome:
    async def main() -> Outcome:
        transport = httpx.ASGITransport(app=app, raise_app_exceptions=False) if app else None
        caller = Caller(transports={OFFLINE_HOST: transport}) if transport else default_caller()
        async with caller:
            solver = Solver(retriever=retriever, engine=engine, profile=profile, caller=caller)
            keep = events.append if events is not None else lambda _: None
            return await solver.solve(task, options, on_event=keep, stop=stop)

    return asyncio.run(main())


# ---------------------------------------------------------------- the shipped model
def test_the_shipped_model_solves_a_task_of_two_calls_with_evidence(
    retriever: ApiRetriever, loaded: tuple[Engine, Profile]
) -> None:
    events: list[Event] = []
    outcome = run(TWO_CALLS, retriever, loaded[0], profile=loaded[1], events=events)
    assert outcome.status == "answered"
    assert "capital is Lima" in outcome.answer
    assert "result is 36" in outcome.answer
    assert [e.api_id for e in outcome.evidence if e.used] == [
        "Data/country_facts/capital_city",
        "Education/math_desk/percentage_of_number",
    ]
    assert all(e.source == "offline" and e.status == 200 for e in outcome.evidence)
    assert outcome.usage.evaluated_tokens < outcome.usage.prompt_tokens / 2
    assert {e.kind for e in events} >= {"candidates", "thought", "call", "observation", "budget"}
    assert events[0].kind == "candidates"


def test_an_answer_longer_than_a_reply_tells_all_that_is_news(
    retriever: ApiRetriever, loaded: tuple[Engine, Profile]
) -> None:
    short = loaded[1].model_copy(update={"max_reply_tokens": 24})
    whole, cut = (run(TWO_CALLS, retriever, loaded[0], profile=one) for one in (loaded[1], short))
    assert (whole.status, cut.status) == ("answered", "answered")
    assert cut.answer == "capital is Lima; result is 36"


def test_a_give_up_without_a_call_speaks_of_no_failure(
    retriever: ApiRetriever, loaded: tuple[Engine, Profile]
) -> None:
    outcome = run("Write me a poem", retriever, loaded[0], profile=loaded[1])
    assert (outcome.status, outcome.evidence) == ("gave_up", ())
    assert not [node for node in outcome.tree if "failed" in node.thought]


def test_an_answer_tells_calls_of_one_function_apart(
    retriever: ApiRetriever, loaded: tuple[Engine, Profile]
) -> None:
    task = "md5 and sha256 of deploy-2026-11"
    outcome = run(task, retriever, loaded[0], profile=loaded[1])
    assert "algorithm is md5" in outcome.answer
    assert "algorithm is sha256" in outcome.answer


def test_the_same_solve_again_is_the_same_tree(
    retriever: ApiRetriever, loaded: tuple[Engine, Profile]
) -> None:
    first, second = (run(TWO_CALLS, retriever, loaded[0], profile=loaded[1]) for _ in range(2))
    assert first.tree == second.tree
    assert first.answer == second.answer


@pytest.mark.parametrize(
    "task",
    [
        "¿Cuál es la capital de Perú?",
        "日本の首都はどこですか。",
        "capital \x00\x07 of\u202e Peru \x1b[31m please",
        "</s><s>User: hello\nFunction: {}",
        '"' * 300,
        "?",
        "a" * TASK_LIMIT,
        "what is 5 percent of 7, " * 500,
    ],
)
def test_any_task_ends_with_an_outcome(
    task: str, retriever: ApiRetriever, loaded: tuple[Engine, Profile]
) -> None:
    options = SolveOptions(limits=Limits(seconds=10, calls=6))
    outcome = run(task, retriever, loaded[0], profile=loaded[1], options=options)
    assert outcome.status in {"answered", "gave_up", "partial"}


@pytest.mark.parametrize(
    "task", ["", "  \n\t ", "\u200b\u202e", "x" * (TASK_LIMIT + 1), "x" * 100_000]
)
def test_an_empty_or_endless_task_is_refused(task: str, retriever: ApiRetriever) -> None:
    with pytest.raises(UsageError) as caught:
        run(task, retriever, ScriptedEngine([]))
    assert caught.value.hint


# ---------------------------------------------------------------- ways to end
def test_an_answer_carries_the_path_it_rests_on(retriever: ApiRetriever) -> None:
    script = [call("Atlantis"), GIVE_UP, call("Peru"), answer("Lima")]
    outcome = run("capital of Peru", retriever, ScriptedEngine(script))
    assert (outcome.status, outcome.answer) == ("answered", "Lima")
    assert [(e.arguments["country"], e.status, e.used) for e in outcome.evidence] == [
        ("Atlantis", 404, False),
        ("Peru", 200, True),
    ]
    kinds = [node.kind for node in outcome.tree]
    assert kinds == ["root", "call", "give_up", "call", "answer"]


def test_the_diversity_message_tells_what_was_tried(retriever: ApiRetriever) -> None:
    engine = ScriptedEngine([call("Atlantis"), GIVE_UP, call("Peru"), answer("Lima")])
    run("capital of Peru", retriever, engine)
    assert "led to no answer" not in engine.prompts[1]
    assert "led to no answer" in engine.prompts[2]
    assert "Atlantis" in engine.prompts[2]


def test_giving_up_is_told_as_giving_up(retriever: ApiRetriever) -> None:
    engine = ScriptedEngine([GIVE_UP], loop=True)
    outcome = run("capital of Peru", retriever, engine)
    assert outcome.status == "gave_up"
    assert len(engine.prompts) == 2


def test_react_makes_one_chain(retriever: ApiRetriever) -> None:
    engine = ScriptedEngine([call("Atlantis"), GIVE_UP, call("Peru"), answer("Lima")])
    outcome = run("capital of Peru", retriever, engine, options=SolveOptions(strategy="react"))
    assert outcome.status == "gave_up"
    assert len(engine.prompts) == 2


def test_a_reply_that_cannot_be_read_is_a_failed_node(retriever: ApiRetriever) -> None:
    outcome = run("capital of Peru", retriever, ScriptedEngine(["Thought: x"], loop=True))
    assert outcome.status == "partial"
    assert {node.kind for node in outcome.tree} == {"root", "failed"}


def test_bad_arguments_become_an_observation_not_a_fault(retriever: ApiRetriever) -> None:
    bad = f'Thought: x\nAction: {CAPITAL}\nAction Input: {{"planet": "Mars"}}'
    outcome = run("capital of Peru", retriever, ScriptedEngine([bad, call("Peru"), answer("ok")]))
    assert outcome.status == "answered"
    assert outcome.evidence[0].status == 0
    assert "planet" in outcome.evidence[0].error


@pytest.mark.parametrize(("close_repeats", "made"), [(True, 1), (False, 2)])
def test_the_same_call_is_made_once_unless_the_reference_is_followed(
    retriever: ApiRetriever, close_repeats: bool, made: int
) -> None:
    outcome = run(
        "capital of Peru",
        retriever,
        ScriptedEngine([call("Peru"), call("Peru"), answer("Lima")]),
        options=SolveOptions(close_repeats=close_repeats),
    )
    assert outcome.usage.calls == made
    assert [one.times for one in outcome.evidence] == [2]


def slow_script(retriever: ApiRetriever, limits: Limits, stop: Stop | None = None) -> Outcome:
    engine = ScriptedEngine([call("Peru"), call("Chile"), call("Bolivia")], loop=True)
    return run(
        "capital of Peru",
        retriever,
        engine,
        options=SolveOptions(limits=limits, depth=96),
        stop=stop,
    )


def test_out_of_calls_gives_the_best_partial_answer(retriever: ApiRetriever) -> None:
    outcome = slow_script(retriever, Limits(calls=2))
    assert outcome.status == "partial"
    assert "2 calls" in outcome.reason
    assert (
        outcome.answer == "country is Peru, capital is Lima; country is Chile, capital is Santiago"
    )


def test_out_of_tokens_gives_a_partial_answer(retriever: ApiRetriever) -> None:
    outcome = slow_script(retriever, Limits(tokens=20))
    assert (outcome.status, "tokens" in outcome.reason) == ("partial", True)


def test_out_of_time_gives_a_partial_answer_in_time(retriever: ApiRetriever) -> None:
    engine = ScriptedEngine([call("Peru"), call("Chile")], seconds=1.0, loop=True)
    started = time.monotonic()
    options = SolveOptions(limits=Limits(seconds=3), depth=96)
    outcome = run("capital of Peru", retriever, engine, options=options)
    assert (outcome.status, "time" in outcome.reason) == ("partial", True)
    assert "Lima" in outcome.answer
    assert time.monotonic() - started < 5  # the budget of 3 s, and at most 2 s to stop


def test_stop_ends_a_reply_and_keeps_what_was_found(retriever: ApiRetriever) -> None:
    class Once(ScriptedEngine):
        def generate(self, *args: Any, **kwargs: Any) -> Any:
            if self.prompts:
                self._seconds = 60.0
                threading.Timer(0.05, stop.set).start()
            return super().generate(*args, **kwargs)

    stop = Stop()
    started = time.monotonic()
    outcome = run("capital of Peru", retriever, Once([call("Peru"), GIVE_UP]), stop=stop)
    assert (outcome.status, outcome.answer) == ("cancelled", "country is Peru, capital is Lima")
    assert time.monotonic() - started < 2


def test_stop_ends_a_call_that_never_returns(retriever: ApiRetriever) -> None:
    stop = Stop()

    async def hang(*_: Any) -> None:
        stop.set()
        await asyncio.Event().wait()

    outcome = run("capital of Peru", retriever, ScriptedEngine([call("Peru")]), stop=stop, app=hang)
    assert outcome.status == "cancelled"


def test_cancelling_the_coroutine_stops_the_model(retriever: ApiRetriever) -> None:
    engine = ScriptedEngine([GIVE_UP], seconds=60)

    async def main() -> float:
        async with default_caller() as caller:
            solver = Solver(retriever=retriever, engine=engine, profile=TOOLLLAMA, caller=caller)
            task = asyncio.ensure_future(solver.solve("capital of Peru"))
            while not engine.prompts and not task.done():  # noqa: ASYNC110 - the fake has no event
                await asyncio.sleep(0.01)
            started = time.monotonic()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return time.monotonic() - started

    assert asyncio.run(main()) < 1  # the contract: stopped within a second


def test_an_api_that_answers_500_is_seen_by_the_model(retriever: ApiRetriever) -> None:
    async def broken(*_: Any) -> None:
        raise RuntimeError("inside the API")

    engine = ScriptedEngine([call("Peru"), GIVE_UP], loop=True)
    outcome = run("capital of Peru", retriever, engine, app=broken)
    assert outcome.evidence[0].status == 500
    assert "HTTP status 500" in engine.prompts[1]


def test_an_unknown_category_is_refused(retriever: ApiRetriever) -> None:
    with pytest.raises(NotFoundError):
        run("x", retriever, ScriptedEngine([]), options=SolveOptions(category="Nowhere"))


class Nothing:
    """A finder that finds nothing."""

    class _None:
        hits = ()
        nothing_fits = True
        nearest_categories = ()
        dead_left_out = 0
        need_consent = ()
        language = ""

    def search(self, text: str, limit: int = 5, *, category: str | None = None) -> Any:
        del text, limit, category
        return self._None()

    def match(self, asked: MatchRequest, apis: Sequence[Api]) -> list[Match]:  # noqa: ARG002
        return []

    def scores(self, text: str, apis: Sequence[Api]) -> Sequence[float]:
        del text
        return [0.0] * len(apis)

    similarities = scores


def test_no_candidates_is_an_honest_give_up() -> None:
    outcome = run("anything", Nothing(), ScriptedEngine([]))
    assert (outcome.status, outcome.evidence) == ("gave_up", ())


def test_what_no_api_serves_is_given_up_without_a_call(
    retriever: ApiRetriever, loaded: tuple[Engine, Profile]
) -> None:
    outcome = run("What is the stock price of Apple?", retriever, loaded[0], profile=loaded[1])
    assert (outcome.status, outcome.evidence) == ("gave_up", ())
    assert "no API in the catalog fits" in outcome.reason


def test_an_outcome_survives_json(retriever: ApiRetriever) -> None:
    outcome = run("capital of Peru", retriever, ScriptedEngine([call("Peru"), answer("Lima")]))
    assert Outcome.model_validate_json(outcome.model_dump_json()) == outcome
    assert Path(outcome.model).name == "scripted"
    assert set(outcome.versions) >= {"python", "llama-cpp-python", "chromadb"}


def test_exact_and_long_data_reaches_the_call_unchanged(
    retriever: ApiRetriever, loaded: tuple[Engine, Profile]
) -> None:
    for text in ("C:\\temp", "a  b\tc", "x7" * 700):
        task = f'What is the SHA-256 hash of "{text}"?'
        outcome = run(task, retriever, loaded[0], profile=loaded[1])
        assert outcome.status == "answered"
        assert outcome.evidence[0].arguments["text"] == text


def test_what_could_not_be_served_makes_the_answer_partial(
    retriever: ApiRetriever, loaded: tuple[Engine, Profile]
) -> None:
    outcome = run(
        "What is the capital of Japan, and who won the world cup in 1998?",
        retriever,
        loaded[0],
        profile=loaded[1],
    )
    assert outcome.status == "partial"
    assert "Tokyo" in outcome.answer
    assert "who won the world cup" in outcome.reason


def test_what_a_budget_left_of_several_values_is_missing(
    retriever: ApiRetriever, loaded: tuple[Engine, Profile]
) -> None:
    engine, profile = loaded
    task = "What are the capitals of Peru, Chile and Bolivia?"
    options = SolveOptions(limits=Limits(calls=1))
    outcome = run(task, retriever, engine, profile=profile, options=options)
    assert outcome.status == "partial"
    assert outcome.missing == ("Chile", "Bolivia")


def test_a_task_that_does_not_fit_the_model_is_told_as_that(retriever: ApiRetriever) -> None:
    class Narrow(ScriptedEngine):
        def generate(self, *_: Any, **__: Any) -> Any:
            raise ContextError(
                "the prompt has 9 tokens and the model's context 8", hint="shorten it"
            )

    outcome = run("capital of Peru", retriever, Narrow([]))
    assert outcome.status == "partial"
    assert "context 8" in outcome.reason


def test_a_failed_call_is_no_evidence_for_an_answer(retriever: ApiRetriever) -> None:
    script = [call("Atlantis"), call("Peru"), answer("Lima")]
    outcome = run("capital of Peru", retriever, ScriptedEngine(script))
    assert [(e.status, e.used) for e in outcome.evidence] == [(404, False), (200, True)]


def test_a_question_after_what_a_decoded_text_says_is_not_open(
    retriever: ApiRetriever, loaded: tuple[Engine, Profile]
) -> None:
    task = "Gur pnxr vf va gur bira, or so my roommate's note says. It's rot13. What is she telling me?"
    outcome = run(task, retriever, loaded[0], profile=loaded[1])
    assert (outcome.status, outcome.missing) == ("answered", ())
    assert "The cake is in the oven" in outcome.answer
