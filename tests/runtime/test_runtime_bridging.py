"""Calls between a value of the task and the function that refused it, with the matcher that ships."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

import pytest
from tests.priors import Tuned

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_registry.functions import Function, FunctionList
from toolsrv_runtime.contract.format import Action, Step
from toolsrv_runtime.planner.bridging import bridge, crossed, questions
from toolsrv_runtime.planner.scene import Offer, Scene

CURRENCY, CITY, AIRPORT = "national_currency", "city_information", "airport_by_code"


@pytest.fixture(scope="module")
def offers() -> tuple[Offer, ...]:
    apis = [
        api
        for api in load_offline_catalog().apis
        if api.id.rpartition("/")[2]
        in {CURRENCY, CITY, AIRPORT, "continent", "prime_check", "find_holiday_date"}
    ]
    return tuple(Offer(at, one) for at, one in enumerate(FunctionList(apis), start=1))


def function(offers: tuple[Offer, ...], name: str) -> Function:
    return next(one.function for one in offers if one.function.name.startswith(name))


def scene(task: str, offers: tuple[Offer, ...], *steps: Step) -> Scene:
    return Scene(task, offers, steps, steps, ())


def step(
    function: Function,
    about: str,
    given: Mapping[str, object],
    response: object = None,
    *,
    down: bool = False,
) -> Step:
    move = Action("", function.name, json.dumps(given), about=about)
    ok = response is not None
    return Step(move, json.dumps(response), ok=ok, response=response, down=down)


@pytest.mark.parametrize(
    ("task", "value", "name", "key"),
    [
        ("What currency do I need in Medellin?", "Medellin", CITY, "city"),
        ("I have a stopover in WAW, which currency is that?", "WAW", AIRPORT, "code"),
        ("I change planes at ADD. What currency does that country have?", "ADD", AIRPORT, "code"),
    ],
)  # fmt: skip
def test_what_a_refused_value_stands_in_is_asked_first(
    task: str, value: str, name: str, key: str, offers: tuple[Offer, ...]
) -> None:
    refused = step(function(offers, CURRENCY), task[-9:], {"country": value})
    over = bridge(scene(task, offers, refused), Tuned())
    assert over is not None
    assert (over.offer.function.name, over.arguments) == (function(offers, name).name, {key: value})
    answer = {key: value, "country": "Peru", "population": 7}
    between = step(over.offer.function, over.words, over.arguments, answer)
    again = crossed(scene(task, offers, refused, between))
    assert again is not None
    assert again.offer.function.name == function(offers, CURRENCY).name
    assert (again.words, again.arguments) == (task[-9:], {"country": "Peru"})


def test_nothing_is_asked_about_a_value_of_a_declined_call(offers: tuple[Offer, ...]) -> None:
    task = "What currency do I need in Medellin?"
    refused = step(function(offers, CURRENCY), task[-9:], {"country": "Medellin"})
    assert bridge(scene(task, offers, refused), Tuned()) is not None
    assert bridge(scene(task, offers, replace(refused, declined=True)), Tuned()) is None


def test_of_several_names_the_one_counts_that_was_refused(offers: tuple[Offer, ...]) -> None:
    task = "Is Epiphany off in Warsaw?"
    holiday = function(offers, "find_holiday_date")
    given = {"country": "Warsaw", "holiday": "Epiphany", "year": 2027}
    refused = step(holiday, "x", given)
    assert questions(scene(task, offers, refused)) == ()
    told = replace(refused, observation="no country 'Warsaw'")
    assert questions(scene(task, offers, told))[0] == "Which country is Warsaw in?"


def test_nothing_stands_in_for_what_is_no_place(offers: tuple[Offer, ...]) -> None:
    refused = step(function(offers, CURRENCY), "the currency of it", {"country": "it"})
    assert (
        bridge(scene("I had soup, what is the currency of it?", offers, refused), Tuned()) is None
    )


def test_other_failures_ask_nothing(offers: tuple[Offer, ...]) -> None:
    currency, prime = function(offers, CURRENCY), function(offers, "prime_check")
    task = "What currency do I need in Lima, and is 91 prime?"
    for one in (
        step(currency, "x", {"country": "Lima"}, down=True),
        step(currency, "x", {"country": "Cusco"}),
        step(currency, "x", {"country": "Lima"}, {"currency": "PEN"}),
        step(prime, "x", {"number": 91}),
    ):
        assert questions(scene(task, offers, one)) == ()
        assert crossed(scene(task, offers, one, one)) is None
    assert questions(scene(task, offers)) == ()
    lima = step(currency, "x", {"country": "Lima"})
    assert questions(scene(task, offers, lima))[0] == "Which country is Lima in?"


def test_an_answer_without_what_is_wanted_leads_nowhere(offers: tuple[Offer, ...]) -> None:
    lima = step(function(offers, CURRENCY), "x", {"country": "Lima"})
    between = step(function(offers, CITY), "Lima", {"city": "Lima"}, {"population": 7})
    assert crossed(scene("What currency do I need in Lima?", offers, lima, between)) is None
