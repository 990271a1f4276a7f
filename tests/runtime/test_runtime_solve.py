"""Whole solves: the shipped model on the offline catalog, and every way a solve can end."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from toolsrv_catalogs.offline import OFFLINE_HOST, load_offline_catalog
from toolsrv_registry.api import Api
from toolsrv_registry.errors import NotFoundError, UsageError
from toolsrv_registry.matcher import Asked, Match
from toolsrv_registry.registry import Registry
from toolsrv_runtime.calls.caller import Caller, default_caller
from toolsrv_runtime.engine.base import Engine
from toolsrv_runtime.engine.scripted import ScriptedEngine
from toolsrv_runtime.errors import ContextError
from toolsrv_runtime.events import Event
from toolsrv_runtime.outcome import Limits, Outcome
from toolsrv_runtime.profile import Profile
from toolsrv_runtime.solve import TASK_LIMIT, Finder, SolveOptions, Solver
from toolsrv_runtime.stop import Stop

CHAT = Profile(name="chat", format="chat", context=8192)
CAPITAL = "capital_city_for_country_facts"
TWO_CALLS = "What is the capital of Peru, and what is 15 percent of 240?"


@pytest.fixture(scope="session")
def retriever(tmp_path_factory: pytest.TempPathFactory) -> Finder:
    registry = Registry.open(tmp_path_factory.mktemp("registry"), [load_offline_catalog()])
    registry.ensure_index()
    return registry.retriever


def call(country: str, thought: str = "look it up") -> str:
    arguments = json.dumps({"country": country})
    return f"Thought: {thought}\nAction: {CAPITAL}\nAction Input: {arguments}"


def answer(text: str) -> str:
    arguments = json.dumps({"return_type": "give_answer", "final_answer": text})
    return f"Thought: done\nAction: Finish\nAction Input: {arguments}"


GIVE_UP = 'Thought: no\nAction: Finish\nAction Input: {"return_type": "give_up_and_restart"}'


def run(
    task: str,
    retriever: Finder,
    engine: Engine,
    *,
    profile: Profile = CHAT,
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
    retriever: Finder, loaded: tuple[Engine, Profile]
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


@pytest.mark.parametrize(
    ("task", "arguments"),
    [
        (
            'They say I lean on "very". Count it here: "A very long day. It was very, very hot."',
            {"text": "A very long day. It was very, very hot.", "find": "very"},
        ),
        (
            'How often does the word banana stand in "banana split, banana bread, no banana"?',
            {"text": "banana split, banana bread, no banana", "find": "banana"},
        ),
        (
            "What resistance makes 52.5 amps of 10,918 volts?",
            {"volts": 10918, "amps": 52.5},
        ),
        (
            "gas mark 7 on the dial, what is that in celsius? the roast was 147.20",
            {"temperature": 7, "scale": "gas_mark"},
        ),
        (
            "I ran 13 km in 1:08:00 this morning, what was my pace per km?",
            {"distance": "13 km", "time": "1:08:00"},
        ),
        (
            "I got through 12 km in 1:03:30 yesterday. What was my pace?",
            {"distance": "12 km", "time": "1:03:30"},
        ),
        (
            "Is #708090 lettering on ivory readable? I'd like the contrast ratio.",
            {"foreground": "#708090", "background": "ivory"},
        ),
        (
            "For the punch: how many millilitres go into 12 fluid ounces?",
            {"amount": 12, "from_unit": "fluid ounces", "to_unit": "millilitres"},
        ),
        (
            "My piano teacher wants a G minor seventh chord. Which notes do I press?",
            {"root": "G", "kind": "minor_seventh"},
        ),
        (
            "A colleague claims dusty and study are the same letters just shuffled, true?",
            {"first": "dusty", "second": "study"},
        ),
        (
            "How many litres are a couple of pints?",
            {"amount": 2, "from_unit": "pints", "to_unit": "litres"},
        ),
        (
            "Our rent is now 1,250, last year it was 1,100. What's the change in percent?",
            {"old_value": 1100, "new_value": 1250},
        ),
        ("how would a swede write 1984 in words", {"number": 1984, "language": "Swedish"}),
        (
            "A shirt costs nineteen ninety-nine dollars. What do I pay with 20 percent off?",
            {"price": 19.99, "percent": 20},
        ),
        ("What's the biggest city of Kazakhstan?", {"country": "Kazakhstan", "limit": 1}),
    ],
)
def test_the_shipped_model_takes_values_whole(
    task: str, arguments: dict[str, Any], retriever: Finder, loaded: tuple[Engine, Profile]
) -> None:
    outcome = run(task, retriever, loaded[0], profile=loaded[1])
    assert [e.arguments for e in outcome.evidence if e.used][:1] == [arguments]


def test_an_answer_longer_than_a_reply_tells_all_that_is_news(
    retriever: Finder, loaded: tuple[Engine, Profile]
) -> None:
    short = loaded[1].model_copy(update={"max_reply_tokens": 24})
    whole, cut = (run(TWO_CALLS, retriever, loaded[0], profile=one) for one in (loaded[1], short))
    assert (whole.status, cut.status) == ("answered", "answered")
    assert cut.answer == "capital is Lima; result is 36"


def test_a_give_up_without_a_call_speaks_of_no_failure(
    retriever: Finder, loaded: tuple[Engine, Profile]
) -> None:
    outcome = run("Write me a poem", retriever, loaded[0], profile=loaded[1])
    assert (outcome.status, outcome.evidence) == ("gave_up", ())
    assert not [node for node in outcome.tree if "failed" in node.thought]


def test_an_answer_tells_calls_of_one_function_apart(
    retriever: Finder, loaded: tuple[Engine, Profile]
) -> None:
    task = "md5 and sha256 of deploy-2026-11"
    outcome = run(task, retriever, loaded[0], profile=loaded[1])
    assert "algorithm is md5" in outcome.answer
    assert "algorithm is sha256" in outcome.answer


@pytest.mark.parametrize(
    ("task", "calls"),
    [
        (
            "I have a stopover in WAW, which currency do I need there?",
            [("airport_by_code", {"code": "WAW"}), ("national_currency", {"country": "Poland"})],
        ),
        (
            "Which languages do people speak in Antwerp?",
            [("city_information", {"city": "Antwerp"}), ("official_languages", {"country": "Belgium"})],
        ),
        (
            "always with seed 3: an invented company, an invented Italian person",
            [("fake_company", {"seed": 3}), ("fake_person", {"style": "italian", "seed": 3})],
        ),
        (
            "For the text Blue Heron: its SHA-256, its base64 form, and its CRC32",
            [("hash_text", {"text": "Blue Heron", "algorithm": "sha256"}),
             ("base64_encode", {"text": "Blue Heron"}), ("crc32_checksum", {"text": "Blue Heron"})],
        ),
        (
            "Dots were .-- .- .. - so what's that in letters? And what is NO TIME in dots and dashes?",
            [("morse_code_to_text", {"morse": ".-- .- .. -"}),
             ("text_to_morse_code", {"text": "NO TIME"})],
        ),
        (
            "md5 and sha256 of deploy-2026-11",
            [("hash_text", {"text": "deploy-2026-11", "algorithm": "md5"}),
             ("hash_text", {"text": "deploy-2026-11", "algorithm": "sha256"})],
        ),
        (
            '"Open, Sesame!": its CRC32, its hex, and is it good as a password?',
            [("crc32_checksum", {"text": "Open, Sesame!"}),
             ("hex_encode", {"text": "Open, Sesame!"}),
             ("password_strength", {"password": "Open, Sesame!"})],
        ),
        (
            "Take the note G3 up 6 semitones. What frequency does the new note have?",
            [("transpose_note", {"note": "G3", "semitones": 6}),
             ("note_frequency", {"note": "C#4"})],
        ),
        (
            ("The call is at 9:15 on 4 March 2027, Oslo time. What will the clocks say in Manila, "
             "and in Lima? And how many hours lie between those two?"),
            [("convert_time", {"time": "2027-03-04 09:15", "from_zone": "Oslo", "to_zone": city})
             for city in ("Manila", "Lima")]
            + [("time_difference", {"from_city": "Manila", "to_city": "Lima"})],
        ),
        (
            ("JNB to PER, how long would one sit in the plane? "
             "And the second of those, what's that airport called?"),
            [("flight_distance", {"from_airport": "JNB", "to_airport": "PER"}),
             ("airport_by_code", {"code": "PER"})],
        ),
        (
            ("Borrowing 240,000 at 3.9 percent over twenty-five years, what do I pay a month? "
             "And if I stretched it to thirty? Or hurried it into twenty?"),
            [("loan_payment", {"loan": 240000, "rate": 3.9, "years": years})
             for years in (25, 30, 20)],
        ),
        (
            "What is the wind of 40 knots on the Beaufort scale?",
            [("beaufort_scale", {"wind_kmh": 74.08})],
        ),
        (
            ("We sit in Santiago de Chile and have a video meeting with people in Auckland on 20 January "
             "2027. How many hours are they ahead of us that day?"),
            [("time_difference",
              {"from_city": "Santiago de Chile", "to_city": "Auckland", "date": "2027-01-20"})],
        ),
        (
            ("The client in New York wants to talk on Feb 10th 2027 at 3:30 pm his time. I'm sitting in "
             "Kolkata, so what will my clock say?"),
            [("convert_time",
              {"time": "2027-02-10 15:30", "from_zone": "New York", "to_zone": "Kolkata"})],
        ),
        (
            "I sit in Seoul. My colleague is in Chicago. It's 8 am for me; what time is it for her?",
            [("convert_time", {"time": "8 am", "from_zone": "Seoul", "to_zone": "Chicago"})],
        ),
        (
            "I live in Oslo, my aunt in Lima. What's the distance from her to me?",
            [("distance_between_cities", {"from_city": "Lima", "to_city": "Oslo"})],
        ),
    ],
)  # fmt: skip
def test_the_shipped_model_makes_these_calls_alone(
    task: str,
    calls: list[tuple[str, dict[str, Any]]],
    retriever: Finder,
    loaded: tuple[Engine, Profile],
) -> None:
    outcome = run(task, retriever, loaded[0], profile=loaded[1])
    used = [(e.api_id.rpartition("/")[2], e.arguments) for e in outcome.evidence if e.used]
    assert sorted(used, key=str) == sorted(calls, key=str)


def test_the_same_solve_again_is_the_same_tree(
    retriever: Finder, loaded: tuple[Engine, Profile]
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
    task: str, retriever: Finder, loaded: tuple[Engine, Profile]
) -> None:
    options = SolveOptions(limits=Limits(seconds=10, calls=6))
    outcome = run(task, retriever, loaded[0], profile=loaded[1], options=options)
    assert outcome.status in {"answered", "gave_up", "partial"}


@pytest.mark.parametrize(
    "task", ["", "  \n\t ", "\u200b\u202e", "x" * (TASK_LIMIT + 1), "x" * 100_000]
)
def test_an_empty_or_endless_task_is_refused(task: str, retriever: Finder) -> None:
    with pytest.raises(UsageError) as caught:
        run(task, retriever, ScriptedEngine([]))
    assert caught.value.hint


# ---------------------------------------------------------------- ways to end
def test_an_answer_carries_the_path_it_rests_on(retriever: Finder) -> None:
    script = [call("Atlantis"), GIVE_UP, call("Peru"), answer("Lima")]
    outcome = run("capital of Peru", retriever, ScriptedEngine(script))
    assert (outcome.status, outcome.answer) == ("answered", "Lima")
    assert [(e.arguments["country"], e.status, e.used) for e in outcome.evidence] == [
        ("Atlantis", 404, False),
        ("Peru", 200, True),
    ]
    kinds = [node.kind for node in outcome.tree]
    assert kinds == ["root", "call", "give_up", "call", "answer"]


def test_the_diversity_message_tells_what_was_tried(retriever: Finder) -> None:
    engine = ScriptedEngine([call("Atlantis"), GIVE_UP, call("Peru"), answer("Lima")])
    run("capital of Peru", retriever, engine)
    assert "already tried" not in engine.prompts[1]
    assert "already tried" in engine.prompts[2]
    assert "Atlantis" in engine.prompts[2]


def test_giving_up_is_told_as_giving_up(retriever: Finder) -> None:
    engine = ScriptedEngine([GIVE_UP], loop=True)
    outcome = run("capital of Peru", retriever, engine)
    assert outcome.status == "gave_up"
    assert len(engine.prompts) == 2


def test_react_makes_one_chain(retriever: Finder) -> None:
    engine = ScriptedEngine([call("Atlantis"), GIVE_UP, call("Peru"), answer("Lima")])
    outcome = run("capital of Peru", retriever, engine, options=SolveOptions(strategy="react"))
    assert outcome.status == "gave_up"
    assert len(engine.prompts) == 2


def test_a_reply_that_cannot_be_read_is_a_failed_node(retriever: Finder) -> None:
    outcome = run("capital of Peru", retriever, ScriptedEngine(["Thought: x"], loop=True))
    assert outcome.status == "partial"
    assert {node.kind for node in outcome.tree} == {"root", "failed"}


def test_bad_arguments_become_an_observation_not_a_fault(retriever: Finder) -> None:
    bad = f'Thought: x\nAction: {CAPITAL}\nAction Input: {{"planet": "Mars"}}'
    outcome = run("capital of Peru", retriever, ScriptedEngine([bad, call("Peru"), answer("ok")]))
    assert outcome.status == "answered"
    assert outcome.evidence[0].status == 0
    assert "planet" in outcome.evidence[0].error


def test_the_same_call_is_made_once(retriever: Finder) -> None:
    outcome = run(
        "capital of Peru", retriever, ScriptedEngine([call("Peru"), call("Peru"), answer("Lima")])
    )
    assert outcome.usage.calls == 1
    assert [one.times for one in outcome.evidence] == [2]


def slow_script(retriever: Finder, limits: Limits, stop: Stop | None = None) -> Outcome:
    engine = ScriptedEngine([call("Peru"), call("Chile"), call("Bolivia")], loop=True)
    return run(
        "capital of Peru",
        retriever,
        engine,
        options=SolveOptions(limits=limits, depth=96),
        stop=stop,
    )


def test_out_of_calls_gives_the_best_partial_answer(retriever: Finder) -> None:
    outcome = slow_script(retriever, Limits(calls=2))
    assert outcome.status == "partial"
    assert "2 calls" in outcome.reason
    assert (
        outcome.answer == "country is Peru, capital is Lima; country is Chile, capital is Santiago"
    )


def test_out_of_tokens_gives_a_partial_answer(retriever: Finder) -> None:
    outcome = slow_script(retriever, Limits(tokens=20))
    assert (outcome.status, "tokens" in outcome.reason) == ("partial", True)


def test_out_of_time_gives_a_partial_answer_in_time(retriever: Finder) -> None:
    engine = ScriptedEngine([call("Peru"), call("Chile")], seconds=1.0, loop=True)
    started = time.monotonic()
    options = SolveOptions(limits=Limits(seconds=3), depth=96)
    outcome = run("capital of Peru", retriever, engine, options=options)
    assert (outcome.status, "time" in outcome.reason) == ("partial", True)
    assert "Lima" in outcome.answer
    assert time.monotonic() - started < 5  # the budget of 3 s, and at most 2 s to stop


def test_stop_ends_a_reply_and_keeps_what_was_found(retriever: Finder) -> None:
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


def test_stop_ends_a_call_that_never_returns(retriever: Finder) -> None:
    stop = Stop()

    async def hang(*_: Any) -> None:
        stop.set()
        await asyncio.Event().wait()

    outcome = run("capital of Peru", retriever, ScriptedEngine([call("Peru")]), stop=stop, app=hang)
    assert outcome.status == "cancelled"


def test_cancelling_the_coroutine_stops_the_model(retriever: Finder) -> None:
    engine = ScriptedEngine([GIVE_UP], seconds=60)

    async def main() -> float:
        async with default_caller() as caller:
            solver = Solver(retriever=retriever, engine=engine, profile=CHAT, caller=caller)
            task = asyncio.ensure_future(solver.solve("capital of Peru"))
            while not engine.prompts and not task.done():  # noqa: ASYNC110 - the fake has no event
                await asyncio.sleep(0.01)
            started = time.monotonic()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return time.monotonic() - started

    assert asyncio.run(main()) < 1  # the contract: stopped within a second


def test_an_api_that_answers_500_is_seen_by_the_model(retriever: Finder) -> None:
    async def broken(*_: Any) -> None:
        raise RuntimeError("inside the API")

    engine = ScriptedEngine([call("Peru"), GIVE_UP], loop=True)
    outcome = run("capital of Peru", retriever, engine, app=broken)
    assert outcome.evidence[0].status == 500
    assert "HTTP status 500" in engine.prompts[1]


def test_an_unknown_category_is_refused(retriever: Finder) -> None:
    with pytest.raises(NotFoundError):
        run("x", retriever, ScriptedEngine([]), options=SolveOptions(category="Nowhere"))


class Nothing:
    """A finder that finds nothing."""

    class _None:
        hits = ()
        nothing_fits = True
        nearest_categories = ()
        dead_left_out = 0

    def search(self, text: str, limit: int = 5, *, category: str | None = None) -> Any:
        del text, limit, category
        return self._None()

    def match(self, asked: Asked, apis: Sequence[Api]) -> list[Match]:  # noqa: ARG002
        return []

    def affinity(self, text: str, apis: Sequence[Api]) -> Sequence[float]:
        del text
        return [0.0] * len(apis)

    likeness = affinity


def test_no_candidates_is_an_honest_give_up() -> None:
    outcome = run("anything", Nothing(), ScriptedEngine([]))
    assert (outcome.status, outcome.evidence) == ("gave_up", ())


def test_what_no_api_serves_is_given_up_without_a_call(
    retriever: Finder, loaded: tuple[Engine, Profile]
) -> None:
    outcome = run("What is the stock price of Apple?", retriever, loaded[0], profile=loaded[1])
    assert (outcome.status, outcome.evidence) == ("gave_up", ())
    assert "no API in the catalog fits" in outcome.reason


def test_an_outcome_survives_json(retriever: Finder) -> None:
    outcome = run("capital of Peru", retriever, ScriptedEngine([call("Peru"), answer("Lima")]))
    assert Outcome.model_validate_json(outcome.model_dump_json()) == outcome
    assert Path(outcome.model).name == "scripted"
    assert set(outcome.versions) >= {"python", "llama-cpp-python", "chromadb"}


def test_exact_and_long_data_reaches_the_call_unchanged(
    retriever: Finder, loaded: tuple[Engine, Profile]
) -> None:
    for text in ("C:\\temp", "a  b\tc", "x7" * 700):
        task = f'What is the SHA-256 hash of "{text}"?'
        outcome = run(task, retriever, loaded[0], profile=loaded[1])
        assert outcome.status == "answered"
        assert outcome.evidence[0].arguments["text"] == text


def test_what_could_not_be_served_makes_the_answer_partial(
    retriever: Finder, loaded: tuple[Engine, Profile]
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


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ("What are the capitals of Peru, Chile and Bolivia?", ["Lima", "Santiago", "Sucre"]),
        ("What's 15% of 80 and 20% of 45?", ["result is 12", "result is 9"]),
        (
            "How many kilometres lie between the capitals of Portugal and Poland?",
            ["Lisbon", "2759.5"],
        ),
        ("How far apart are the capitals of Portugal and Poland?", ["Lisbon", "2759.5"]),
        ("What's the distance between the capitals of Peru and Chile?", ["Lima", "2467.8"]),
        ("Which symbol does the currency of Israel have?", ["ILS", "₪"]),
        (
            "What is the capital of Peru, what is the capital of Chile, and which money has Peru?",
            ["Lima", "Santiago", "PEN"],
        ),
        ("What's 12 times 7 in Roman numerals?", ["84", "LXXXIV"]),
        ("What is 12 times 7, and is 7 a prime number?", ["84", "number is 7, is prime is true"]),
        ("What's the square root of 1764?", ["result is 42"]),
        ("12 ounces in grams, 350 F in C and 6 feet in metres", ["340.19", "176.67", "1.8288"]),
        (
            "Above the door it says MDCCXLVIII, which year is that? I was married there in 2014, how would they have carved that one?",
            ["1748", "MMXIV"],
        ),
        (
            "What is the largest city in Tanzania, and when will the sun set there on 1 May 2027?",
            ["city is Dar es Salaam", "18:15"],
        ),
        (
            "Our club is named Green Turtle Rescue Fund. I'd like its acronym and a slug for the web.",
            ["GTRF", "green-turtle-rescue-fund"],
        ),
        (
            "1) symbol for the Vietnamese dong? 2) how would a German write 1849.9 euros on a bill?",
            ["VND", "1.849,90"],
        ),
    ],
)
def test_one_wish_for_several_values_is_answered_for_each(
    retriever: Finder, loaded: tuple[Engine, Profile], task: str, said: list[str]
) -> None:
    engine, profile = loaded
    outcome = run(task, retriever, engine, profile=profile)
    assert outcome.status == "answered"
    for one in said:
        assert one in outcome.answer


def test_what_a_budget_left_of_several_values_is_missing(
    retriever: Finder, loaded: tuple[Engine, Profile]
) -> None:
    engine, profile = loaded
    task = "What are the capitals of Peru, Chile and Bolivia?"
    options = SolveOptions(limits=Limits(calls=1))
    outcome = run(task, retriever, engine, profile=profile, options=options)
    assert outcome.status == "partial"
    assert outcome.missing == ("Chile", "Bolivia")


def test_a_task_that_does_not_fit_the_model_is_told_as_that(retriever: Finder) -> None:
    class Narrow(ScriptedEngine):
        def generate(self, *_: Any, **__: Any) -> Any:
            raise ContextError(
                "the prompt has 9 tokens and the model's context 8", hint="shorten it"
            )

    outcome = run("capital of Peru", retriever, Narrow([]))
    assert outcome.status == "partial"
    assert "context 8" in outcome.reason


def test_a_failed_call_is_no_evidence_for_an_answer(retriever: Finder) -> None:
    script = [call("Atlantis"), call("Peru"), answer("Lima")]
    outcome = run("capital of Peru", retriever, ScriptedEngine(script))
    assert [(e.status, e.used) for e in outcome.evidence] == [(404, False), (200, True)]


def test_a_question_after_what_a_decoded_text_says_is_not_open(
    retriever: Finder, loaded: tuple[Engine, Profile]
) -> None:
    task = "Gur pnxr vf va gur bira, or so my roommate's note says. It's rot13. What is she telling me?"
    outcome = run(task, retriever, loaded[0], profile=loaded[1])
    assert (outcome.status, outcome.missing) == ("answered", ())
    assert "The cake is in the oven" in outcome.answer
