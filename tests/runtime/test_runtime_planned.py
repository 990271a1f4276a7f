"""Which functions a whole task needs, for which words, in what order; by the matcher that ships."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.priors import Silent, Tuned

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_registry.functions import FunctionList
from toolsrv_runtime.contract.format import Action, Step
from toolsrv_runtime.planner.need import Need
from toolsrv_runtime.planner.planned import Planned
from toolsrv_runtime.planner.scene import Offer, Scene, news

APIS = {api.id.rpartition("/")[2]: api for api in load_offline_catalog().apis}


def scene(task: str, *names: str) -> Scene:
    functions = FunctionList([APIS[name] for name in names])
    offers = tuple(Offer(at, one) for at, one in enumerate(functions, start=1))
    return Scene(task, offers, (), (), ())


def called(before: Scene, need: Need, arguments: dict[str, Any], response: object) -> Scene:
    """Return the scene after a call that serves the need."""
    move = Action("", need.function.name, json.dumps(arguments), about=need.words)
    step = Step(move, "", ok=response is not None, response=response)
    path = (*before.path, step)
    seen = tuple(fact for one in path if one.ok for fact in news(one))
    return replace(before, path=path, attempts=path, seen=seen)


def short(need: Need | None) -> str:
    return need.function.api.id.rpartition("/")[2] if need else ""


def names(planned: Planned) -> list[str]:
    return [short(need) for need in planned.needs]


def test_each_function_that_a_task_needs_gets_its_words() -> None:
    task = (
        "Bhutan! Capital, flag emoji for the slide, and what do you dial in front to phone there?"
    )
    offered = scene(
        task, "capital_city", "country_flag", "calling_code_of_country", "leap_year", "check_iban"
    )
    planned = Planned(offered, Tuned())
    assert names(planned) == ["capital_city", "country_flag", "calling_code_of_country"]
    for need, words in zip(planned.needs, ("Capital", "flag", "dial"), strict=True):
        assert words in need.words
        assert task[need.begin : need.end] == need.words


def test_a_function_may_be_needed_twice() -> None:
    task = "How many litres are 40 gallons, and how many kilometres are 26 miles?"
    planned = Planned(scene(task, "convert_units", "leap_year"), Tuned())
    assert names(planned) == ["convert_units"] * 2
    assert "gallons" in planned.needs[0].words
    assert "miles" in planned.needs[1].words


def test_what_an_earlier_call_must_answer_comes_after_it() -> None:
    task = "When does the sun come up on 21 June 2027 in the capital of Iceland?"
    offered = scene(task, "sunrise_and_sunset", "capital_city", "leap_year")
    first = Planned(offered, Tuned()).next()
    assert first is not None
    assert short(first) == "capital_city"
    answered = called(offered, first, {"country": "Iceland"}, {"capital": "Reykjavik"})
    second = Planned(answered, Tuned()).next()
    assert second is not None
    assert short(second) == "sunrise_and_sunset"
    done = called(answered, second, {"city": "Reykjavik"}, {"sunrise": "02:54"})
    assert Planned(done, Tuned()).next() is None


def test_a_need_in_the_words_of_another_is_served_first() -> None:
    task = "how is 365 spelled out in the main language of Hungary?"
    offered = scene(task, "official_languages", "number_to_words", "leap_year")
    first = Planned(offered, Tuned()).next()
    assert first is not None
    assert short(first) == "official_languages"
    assert not first.late
    answered = called(offered, first, {"country": "Hungary"}, {"main_language": "Hungarian"})
    second = Planned(answered, Tuned()).next()
    assert second is not None
    assert (short(second), second.late) == ("number_to_words", True)
    assert Planned(answered, Tuned()).next([second]) is None


def test_words_whose_function_had_its_call_ask_for_it_no_more_once_more_is_known() -> None:
    task = (
        "Offer for Jansen BV: list price 1250 euro, I give them 12 % off, then 21 % VAT comes on "
        "top of the reduced price. What's the price after discount and what with the VAT?"
    )
    offered = scene(task, "discount", "sales_tax", "check_vat_number", "inflation")
    twice = [need for need in Planned(offered, Tuned()).needs if short(need) == "discount"]
    assert len(twice) == 2
    first = Planned(offered, Tuned()).next()
    assert first == twice[0]
    reduced = called(offered, first, {"price": 1250, "percent": 12}, {"sale_price": 1100})
    second = next(one for one in Planned(reduced, Tuned()).needs if short(one) == "sales_tax")
    assert second.words == twice[1].words
    both = called(reduced, second, {"price": 1100, "tax_percent": 21}, {"gross_price": 1331})
    assert Planned(both, Tuned()).next() is None


def test_words_that_point_back_are_not_served_first() -> None:
    task = "gas mark 7 on the dial, what is that in celsius?"
    offered = scene(task, "oven_temperature", "convert_temperature", "leap_year")
    assert short(Planned(offered, Tuned()).next()) == "oven_temperature"


def test_a_need_whose_call_failed_or_that_was_passed_is_not_the_next() -> None:
    task = "Was 1996 a leap year, and how many litres are 40 gallons?"
    offered = scene(task, "leap_year", "convert_units")
    first = Planned(offered, Tuned()).next()
    assert first is not None
    failed = called(offered, first, {"year": 1996}, None)
    for planned, passed in (
        (Planned(failed, Tuned()), ()),
        (Planned(offered, Tuned()), [first]),
    ):
        assert short(planned.next(passed)) not in {"", short(first)}


@pytest.mark.parametrize("task", ["Write me a poem about the sea, please.", "Hello there", "?"])
def test_a_task_may_need_nothing_that_is_on_offer(task: str) -> None:
    assert Planned(scene(task, "leap_year", "check_iban", "prime_check"), Tuned()).needs == []


def test_without_a_matcher_nothing_is_planned() -> None:
    planned = Planned(scene("Was 1996 a leap year?", "leap_year"), Silent())
    assert planned.needs == []
    assert planned.next() is None


def test_a_question_may_ask_for_more_once_its_first_answer_is_known() -> None:
    task = "Where else could I spend the cash I'd have left over after a holiday in Liechtenstein?"
    offered = scene(task, "national_currency", "countries_using_currency", "neighbouring_countries")
    first = Planned(offered, Tuned()).next()
    assert short(first) == "national_currency"
    assert first is not None
    money = {"country": "Liechtenstein", "currency": "CHF", "name": "Swiss Franc"}
    answered = called(offered, first, {"country": "Liechtenstein"}, money)
    second = Planned(answered, Tuned()).next()
    assert short(second) == "countries_using_currency"
    assert second is not None
    assert second.words == first.words
    assert Planned(answered, Tuned()).next([second]) is None
    done = called(answered, second, {"currency": "CHF"}, {"countries": ["Switzerland"]})
    assert Planned(done, Tuned()).next() is None


def test_a_question_that_has_its_answer_asks_for_no_more() -> None:
    task = "What money do they use in Mongolia?"
    offered = scene(task, "national_currency", "countries_using_currency", "currency_information")
    first = Planned(offered, Tuned()).next()
    assert first is not None
    answered = called(offered, first, {"country": "Mongolia"}, {"currency": "MNT"})
    assert Planned(answered, Tuned()).next() is None


@pytest.mark.parametrize(
    ("task", "name", "arguments", "answer", "later"),
    [
        (
            "How many kilometres lie between Warsaw and the capital of Portugal?",
            "capital_city",
            {"country": "Portugal"},
            {"country": "Portugal", "capital": "Lisbon"},
            "distance_between_cities",
        ),
        (
            "What's the earliest that I'd see the sun on 9 June 2027 in the biggest city of Chile?",
            "largest_cities",
            {"country": "Chile"},
            {"country": "Chile", "cities": [{"city": "Santiago", "population": 4837295}]},
            "sunrise_and_sunset",
        ),
        (
            "What is the capital of Portugal?",
            "capital_city",
            {"country": "Portugal"},
            {"country": "Portugal", "capital": "Lisbon"},
            "",
        ),
        (
            "I'm off to the biggest city of Chile. Which one is that?",
            "largest_cities",
            {"country": "Chile"},
            {"country": "Chile", "cities": [{"city": "Santiago", "population": 4837295}]},
            "",
        ),
    ],
)
def test_a_function_may_be_a_need_only_once_its_values_are_answered(
    task: str, name: str, arguments: dict[str, str], answer: dict[str, Any], later: str
) -> None:
    others = ("distance_between_cities", "sunrise_and_sunset", "day_length", "city_information")
    offered = scene(task, name, *others)
    first = Planned(offered, Tuned()).next()
    assert short(first) == name
    assert first is not None
    answered = called(offered, first, arguments, answer)
    second = Planned(answered, Tuned()).next()
    assert short(second) == later
    if second is not None:
        failed = called(answered, second, {}, None)
        planned = later in names(Planned(offered, Tuned()))
        assert Planned(failed, Tuned()).is_extra(failed.path[-1]) != planned
        assert short(Planned(failed, Tuned()).next()) != later


@pytest.mark.parametrize(
    ("task", "words", "served"),
    [
        ("Translate 'good morning' into Thai.", "Translate 'good morning' into Thai", False),
        ("What is Peru called in Dutch?", "What is Peru called in Dutch", True),
    ],
)
def test_words_far_from_all_on_offer_are_left(task: str, words: str, served: bool) -> None:
    offered = scene(task, "country_name_in_language", "date_in_language", "leap_year")
    assert Planned(offered, Tuned()).may_serve(words) == served


def test_what_answers_a_waiting_need_comes_before_it() -> None:
    task = "What's the earliest that I'd see the sun on 9 June 2027 in the biggest city of Chile?"
    planned = Planned(scene(task, "sunrise_and_sunset", "largest_cities", "leap_year"), Tuned())
    assert "largest_cities" not in names(planned)
    assert short(planned.next()) == "largest_cities"
    without = Planned(scene(task, "sunrise_and_sunset", "leap_year"), Tuned())
    assert short(without.next()) == "sunrise_and_sunset"
