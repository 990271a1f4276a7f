"""One wish for several values is several calls; by the matcher that ships."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.priors import Silent, Tuned

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_registry.functions import FunctionList
from toolsrv_runtime.contract.format import Action, Step
from toolsrv_runtime.planner.scene import Offer, Scene
from toolsrv_runtime.planner.several import Several

APIS = {api.id.rpartition("/")[2]: api for api in load_offline_catalog().apis}


def after(task: str, name: str, *calls: dict[str, str], ok: bool = True) -> Scene:
    """Return the scene of a task after calls of one function, the last of them as ``ok`` says."""
    function = next(iter(FunctionList([APIS[name]])))
    path = tuple(
        Step(Action("", function.name, json.dumps(one), about="x"), "", ok=ok or one != calls[-1])
        for one in calls
    )
    return Scene(task, (Offer(1, function),), path, path, ())


def all_calls(scene: Scene) -> list[dict[str, Any]]:
    """Return the arguments of the calls that follow until there is nothing more to call."""
    found: list[dict[str, Any]] = []
    while another := Several(scene, Tuned()).next():
        assert another.words in scene.task
        found.append(another.arguments)
        assert len(found) < 20
        move = Action(
            "", another.offer.function.name, json.dumps(another.arguments), about=another.words
        )
        path = (*scene.path, Step(move, "", ok=True))
        scene = replace(scene, path=path, attempts=path)
    return found


@pytest.mark.parametrize(
    ("task", "name", "first", "more"),
    [
        (
            "What are the capitals of Peru and Chile?",
            "capital_city",
            {"country": "Peru"},
            [{"country": "Chile"}],
        ),
        (
            "what are the capitals of peru, chile and bolivia",
            "capital_city",
            {"country": "chile"},
            [{"country": "peru"}, {"country": "bolivia"}],
        ),
        (
            "I want to borrow 15000 at 6.9 percent. What a month over 5 years, and what over 7 years?",
            "loan_payment",
            {"loan": "15000", "rate": "6.9", "years": "7"},
            [{"loan": "15000", "rate": "6.9", "years": "5"}],
        ),
        (
            "Convert 5 km and 12 km to miles",
            "convert_units",
            {"amount": "5", "from_unit": "km", "to_unit": "miles"},
            [{"amount": "12", "from_unit": "km", "to_unit": "miles"}],
        ),
        (
            "Convert 5 and 12 km to miles",
            "convert_units",
            {"amount": "12", "from_unit": "km", "to_unit": "miles"},
            [{"amount": "5", "from_unit": "km", "to_unit": "miles"}],
        ),
        (
            "How far is it from Oslo to Bergen and to Trondheim?",
            "distance_between_cities",
            {"from_city": "Oslo", "to_city": "Bergen"},
            [{"from_city": "Oslo", "to_city": "Trondheim"}],
        ),
        (
            "Convert 5 km to miles and 20 kg to pounds",
            "convert_units",
            {"amount": "5", "from_unit": "km", "to_unit": "miles"},
            [{"amount": "20", "from_unit": "kg", "to_unit": "pounds"}],
        ),
        (
            "Convert 5 km and 3 miles to metres",
            "convert_units",
            {"amount": "3", "from_unit": "miles", "to_unit": "metres"},
            [{"amount": "5", "from_unit": "km", "to_unit": "metres"}],
        ),
        (
            "how far is it from Rome to Oslo and from Lima to Quito",
            "distance_between_cities",
            {"from_city": "Lima", "to_city": "Quito"},
            [{"from_city": "Rome", "to_city": "Oslo"}],
        ),
        (
            "When is sunrise in Rome on 3 May 2027 and in Oslo on 5 June 2027?",
            "sunrise_and_sunset",
            {"city": "Rome", "date": "2027-05-03"},
            [{"city": "Oslo", "date": "2027-06-05"}],
        ),
        (
            "what are the symbols of gold, silver and tin?",
            "element_information",
            {"element": "gold"},
            [{"element": "silver"}, {"element": "tin"}],
        ),
        (
            "Does 2100 have a 29 February? And 2400?",
            "leap_year",
            {"year": "2100"},
            [{"year": "2400"}],
        ),
        (
            "What's the capital of Peru? And what about Chile? And of Bolivia?",
            "capital_city",
            {"country": "Peru"},
            [{"country": "Chile"}, {"country": "Bolivia"}],
        ),
        (
            'give me "user profile image" in camelCase and in snake_case',
            "change_case",
            {"text": "user profile image", "case": "snake"},
            [{"text": "user profile image", "case": "camel"}],
        ),
        (
            'Hash "secret" with md5 and sha256',
            "hash_text",
            {"text": "secret", "algorithm": "md5"},
            [{"text": "secret", "algorithm": "sha256"}],
        ),
        (
            "what notes are in a C major chord and an A minor chord?",
            "chord_notes",
            {"root": "C", "kind": "major"},
            [{"root": "A", "kind": "minor"}],
        ),
        (
            "UTC offsets of Asia/Kathmandu and Australia/Adelaide?",
            "time_zone_details",
            {"zone": "Asia/Kathmandu"},
            [{"zone": "Australia/Adelaide"}],
        ),
        (
            "molar masses of Ca(OH)2 and H2SO4 please",
            "molar_mass",
            {"formula": "Ca(OH)2"},
            [{"formula": "H2SO4"}],
        ),
        (
            "What's the square root of 1764, and the cube of 5?",
            "calculate",
            {"expression": "sqrt(1764)"},
            [{"expression": "5^3"}],
        ),
    ],
)
def test_what_is_called_for_one_of_a_list_is_called_for_each(
    task: str, name: str, first: dict[str, str], more: list[dict[str, str]]
) -> None:
    assert all_calls(after(task, name, first)) == more


@pytest.mark.parametrize(
    ("task", "name", "first"),
    [
        ("What is the capital of Peru?", "capital_city", {"country": "Peru"}),
        ("What is the capital of Trinidad and Tobago?", "capital_city",
         {"country": "Trinidad and Tobago"}),
        ("How far is it from Oslo to Bergen?", "distance_between_cities",
         {"from_city": "Oslo", "to_city": "Bergen"}),
        ("How far apart are Oslo and Bergen?", "distance_between_cities",
         {"from_city": "Oslo", "to_city": "Bergen"}),
        ("Convert 5 km to miles and tell me about 20 kg of flour", "convert_units",
         {"amount": "5", "from_unit": "km", "to_unit": "miles"}),
        ("What's the population of Paris, France?", "city_information", {"city": "Paris"}),
        ("What's the population of Portland, Oregon?", "city_information", {"city": "Portland"}),
        ("Tell Anna and Bob what the capital of Peru is", "capital_city", {"country": "Peru"}),
        ("What are the capitals of Peru and Chile?", "capital_city", {"country": "Lima"}),
        ("What is the capital of Peru? My aunt lives in Chile.", "capital_city",
         {"country": "Peru"}),
        ("Which notes are in a G minor seventh chord?", "chord_notes",
         {"root": "G", "kind": "minor_seventh"}),
        ("How far is Reykjavik from Helsinki?", "time_difference",
         {"from_city": "Helsinki", "to_city": "Reykjavík"}),
    ],
)  # fmt: skip
def test_what_is_no_list_is_called_once(task: str, name: str, first: dict[str, str]) -> None:
    assert all_calls(after(task, name, first)) == []


@pytest.mark.parametrize(
    ("task", "name", "mixed", "straight"),
    [
        (
            "What's 15% of 80 and 20% of 45?",
            "percentage_of_number",
            {"percent": "15", "number": "45"},
            {"percent": "15", "number": "80"},
        ),
        (
            "how far is it from Rome to Oslo and from Lima to Quito",
            "distance_between_cities",
            {"from_city": "Rome", "to_city": "Quito"},
            {"from_city": "Rome", "to_city": "Oslo"},
        ),
    ],
)
def test_values_told_side_by_side_stay_together(
    task: str, name: str, mixed: dict[str, str], straight: dict[str, str]
) -> None:
    scene = after(task, name)
    (offer,) = scene.offers
    several = Several(scene, Tuned())
    assert several.straightened(offer.function, mixed) == straight
    assert several.straightened(offer.function, straight) == straight
    other = dict.fromkeys(mixed, "elsewhere")
    assert several.straightened(offer.function, other) == other
    (rest,) = all_calls(after(task, name, straight))
    assert Several(after(task, name, straight), Tuned()).straightened(offer.function, mixed) == rest


def test_each_of_a_list_is_called_with_each_of_another() -> None:
    task = "How do you write 3 May 2027 and 4 June 2027 in French and Spanish?"
    first = {"date": "2027-05-03", "language": "French"}
    assert sorted(map(str, all_calls(after(task, "date_in_language", first)))) == sorted(
        str({"date": date, "language": language})
        for date in ("2027-05-03", "2027-06-04")
        for language in ("French", "Spanish")
        if (date, language) != ("2027-05-03", "French")
    )


def test_one_that_failed_is_told_and_not_tried_again() -> None:
    task = "What is the capital of Peru and Wakanda?"
    calls = ({"country": "Peru"}, {"country": "Wakanda"})
    several = Several(after(task, "capital_city", *calls, ok=False), Tuned())
    assert several.next() is None
    assert several.failed() == several.unanswered() == ["Wakanda"]
    answered = Several(after(task, "capital_city", *calls), Tuned())
    assert answered.next() is None
    assert answered.failed() == answered.unanswered() == []
    begun = Several(after(task, "capital_city", calls[0]), Tuned())
    assert begun.failed() == []
    assert begun.unanswered() == ["Wakanda"]


def test_without_a_matcher_or_an_answer_there_is_nothing_more() -> None:
    task = "What are the capitals of Peru and Chile?"
    assert Several(after(task, "capital_city", {"country": "Peru"}), Silent()).next() is None
    assert Several(after(task, "capital_city"), Tuned()).next() is None
    failed = after(task, "capital_city", {"country": "Peru"}, ok=False)
    assert Several(failed, Tuned()).next() is None


def test_answers_of_like_calls_come_in_the_order_of_these() -> None:
    function = next(iter(FunctionList([APIS["capital_city"]])))
    path = tuple(
        Step(Action("", function.name, json.dumps({"country": country}), about=country), "",
             ok=True, response={"country": country, "capital": capital})
        for country, capital in (("Hungary", "Budapest"), ("Slovenia", "Ljubljana"))
    )  # fmt: skip
    task = "How far is it between the capitals of Hungary and Slovenia?"
    far = next(iter(FunctionList([APIS["distance_between_cities"]])))
    several = Several(Scene(task, (Offer(1, function), Offer(2, far)), path, path, ()), Tuned())
    straight = {"from_city": "Budapest", "to_city": "Ljubljana"}
    turned = {"from_city": "Ljubljana", "to_city": "Budapest"}
    assert several.straightened(far, turned) == straight
    assert several.straightened(far, straight) == straight
    one = {"from_city": "Ljubljana", "to_city": "Rome"}
    assert several.straightened(far, one) == one


@pytest.mark.parametrize(
    ("name", "arguments", "straight"),
    [
        ("distance_between_cities", {"from_city": "Peru", "to_city": "Lima"}, ("Lima", "Santiago")),
        (
            "distance_between_cities",
            {"from_city": "Santiago", "to_city": "Lima"},
            ("Lima", "Santiago"),
        ),
        ("distance_between_cities", {"from_city": "Peru", "to_city": "Chile"}, ("Peru", "Chile")),
        ("city_information", {"city": "Lima", "country": "Peru"}, ("Lima", "Peru")),
    ],
)
def test_answers_of_like_calls_come_in_their_order(
    name: str, arguments: dict[str, str], straight: tuple[str, str]
) -> None:
    task = "What's the distance between the capitals of Peru and Chile?"
    asked, function = FunctionList([APIS["capital_city"], APIS[name]])
    path = tuple(
        Step(
            Action("", asked.name, json.dumps({"country": country}), about="x"),
            "",
            ok=True,
            response={"country": country, "capital": capital},
        )
        for country, capital in (("Peru", "Lima"), ("Chile", "Santiago"))
    )
    scene = Scene(task, (Offer(1, asked), Offer(2, function)), path, path, ())
    made = Several(scene, Silent()).straightened(function, arguments)
    assert tuple(made.values()) == straight
