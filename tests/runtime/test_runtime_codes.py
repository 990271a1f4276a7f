"""Names where a function takes codes: which calls come first, with the matcher that ships."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

import pytest
from tests.priors import Silent, Tuned

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_registry.functions import FunctionList
from toolsrv_runtime.contract.format import Action, Step
from toolsrv_runtime.planner.codes import coded
from toolsrv_runtime.planner.scene import Offer, Scene

FLIGHT, AIRPORTS, MONEY = "flight_distance", "airports_of_a_city", "currency_information"
TASK = "How long is a flight from Vienna to Zurich?"


@pytest.fixture(scope="module")
def offers() -> tuple[Offer, ...]:
    wanted = {FLIGHT, AIRPORTS, MONEY, "prime_check"}
    apis = [one for one in load_offline_catalog().apis if one.id.rpartition("/")[2] in wanted]
    return tuple(Offer(at, one) for at, one in enumerate(FunctionList(apis), start=1))


def step(
    offers: tuple[Offer, ...],
    name: str,
    about: str,
    given: Mapping[str, object],
    response: object = None,
) -> Step:
    function = next(one.function for one in offers if one.function.name.startswith(name))
    move = Action("", function.name, json.dumps(given), about=about)
    return Step(move, json.dumps(response), ok=response is not None, response=response)


def scene(offers: tuple[Offer, ...], *steps: Step, task: str = TASK) -> Scene:
    return Scene(task, offers, tuple(one for one in steps if one.ok), steps, ())


def airports(offers: tuple[Offer, ...], city: str, *found: str) -> Step:
    return step(offers, AIRPORTS, city, {"city": city}, {"city": city, "airports": list(found)})


def test_each_name_s_code_is_asked_and_then_the_function_is_called(
    offers: tuple[Offer, ...],
) -> None:
    vienna = airports(offers, "Vienna", "VIE Vienna International Airport")
    zurich = airports(offers, "Zurich", "ZRH Zurich Airport")
    made = [
        coded(scene(offers, *steps), Tuned(), meant=not steps)
        for steps in ((), (vienna,), (vienna, zurich))
    ]
    assert [one.arguments for one in made if one] == [
        {"city": "Vienna"},
        {"city": "Zurich"},
        {"from_airport": "VIE", "to_airport": "ZRH"},
    ]
    called = step(offers, FLIGHT, "x", {"from_airport": "VIE", "to_airport": "ZRH"}, {"km": 600})
    assert coded(scene(offers, vienna, zurich, called), Tuned(), meant=False) is None


def test_a_refused_call_keeps_its_codes(offers: tuple[Offer, ...]) -> None:
    task = "How far do I fly from Nairobi to JFK?"
    refused = step(offers, FLIGHT, task[:-1], {"from_airport": "Nairobi", "to_airport": "JFK"})
    first = coded(scene(offers, refused, task=task), Tuned(), meant=False)
    assert first is not None
    assert first.arguments == {"city": "Nairobi"}
    found = airports(offers, "Nairobi", "NBO Jomo Kenyatta", "WIL Wilson")
    again = coded(scene(offers, refused, found, task=task), Tuned(), meant=False)
    assert again is not None
    assert again.arguments == {"from_airport": "NBO", "to_airport": "JFK"}


@pytest.mark.parametrize("declined", [True, False], ids=["declined", "down"])
def test_a_function_that_is_left_alone_is_not_called_with_codes(
    offers: tuple[Offer, ...], declined: bool
) -> None:
    names = step(offers, FLIGHT, TASK[:-1], {"from_airport": "Vienna", "to_airport": "Zurich"})
    assert coded(scene(offers, names), Tuned(), meant=True) is not None
    left = replace(names, declined=declined, down=not declined)
    assert coded(scene(offers, names, left), Tuned(), meant=True) is None


@pytest.mark.parametrize(
    "task",
    [
        "Write me a poem about flying from Vienna to Zurich",
        "Book me a flight from Oslo to Bergen on Friday",
        "Which airlines fly from Oslo to Bergen?",
        "Is 97 a prime number?",
    ],
)
def test_other_words_about_such_names_ask_for_nothing(task: str, offers: tuple[Offer, ...]) -> None:
    assert coded(scene(offers, task=task), Tuned(), meant=True) is None


def test_what_takes_names_too_needs_no_codes(offers: tuple[Offer, ...]) -> None:
    task = "Tell me about the lek"
    refused = step(offers, MONEY, task, {"currency": "lek"})
    assert coded(scene(offers, refused, task=task), Tuned(), meant=True) is None


def test_an_answer_without_a_code_ends_it(offers: tuple[Offer, ...]) -> None:
    nothing = airports(offers, "Vienna")
    assert coded(scene(offers, nothing), Tuned(), meant=True) is None
    assert coded(scene(offers), Silent(), meant=True) is None
