"""Words that point back at two values, or at one of them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.priors import Tuned

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_registry.functions import FunctionList
from toolsrv_runtime.contract.format import Action, Step
from toolsrv_runtime.planner.pointing import pointed, unnamed
from toolsrv_runtime.planner.scene import Offer, Scene
from toolsrv_runtime.planner.several import Several

APIS = {api.id.rpartition("/")[2]: api for api in load_offline_catalog().apis}

Call = tuple[str, dict[str, str], dict[str, Any]]

CLOCKS: tuple[Call, ...] = tuple(
    (
        "convert_time",
        {"time": "2027-03-04 09:15", "from_zone": "Oslo", "to_zone": city},
        {"converted_time": time},
    )
    for city, time in (("Manila", "2027-03-04 16:15"), ("Lima", "2027-03-04 03:15"))
)
WAY: tuple[Call, ...] = (
    ("distance_between_cities", {"from_city": "Bonn", "to_city": "Graz"}, {"distance_km": 718}),
)
FLIGHT: tuple[Call, ...] = (
    ("flight_distance", {"from_airport": "JNB", "to_airport": "PER"}, {"distance_km": 8310}),
)
CAPITALS: tuple[Call, ...] = tuple(
    ("capital_city", {"country": country}, {"country": country, "capital": capital})
    for country, capital in (("Chile", "Santiago"), ("Kenya", "Nairobi"), ("Peru", "Lima"))
)


def scene(task: str, calls: tuple[Call, ...], name: str, about: str = "x") -> Scene:
    """Return the scene of a task after some calls, with one more function on offer."""
    names = dict.fromkeys([*(call[0] for call in calls), name])
    functions = {one: FunctionList([APIS[one]]) for one in names}
    offers = tuple(Offer(at, next(iter(one))) for at, one in enumerate(functions.values(), start=1))
    by_name = dict(zip(names, offers, strict=True))
    path = tuple(
        Step(
            Action("", by_name[one].function.name, json.dumps(given), about=about),
            "",
            ok=True,
            response={**given, **told},
        )
        for one, given, told in calls
    )
    return Scene(task, offers, path, path, ())


def meant(
    task: str, part: str, calls: tuple[Call, ...], name: str, chosen: dict[str, str]
) -> dict[str, str]:
    """Return the arguments that a chosen call for a part of a task is made with."""
    found = scene(task, calls, name)
    return pointed(part, found, found.offers[-1].function, chosen)


@pytest.mark.parametrize(
    ("words", "calls", "chosen", "values"),
    [
        ("how many hours lie between those two", CLOCKS, ("Oslo", "Lima"), ("Manila", "Lima")),
        ("how many hours apart are the two of them", CLOCKS, ("Lima", "Manila"), ("Manila", "Lima")),
        ("how many hours are between them", CLOCKS, ("Lima", "Oslo"), ("Manila", "Lima")),
        ("what is the difference between them both", WAY, ("Graz", "Bonn"), ("Bonn", "Graz")),
        ("how far are these two apart", CAPITALS[:2], ("Nairobi", "Chile"), ("Chile", "Kenya")),
        ("how far are these two apart", CAPITALS[:2], ("Nairobi", "Oslo"), ("Santiago", "Nairobi")),
        ("how far are the first two apart", CAPITALS, ("Nairobi", "Lima"), ("Santiago", "Nairobi")),
        ("how far are the last two apart", CAPITALS, ("Santiago", "Lima"), ("Nairobi", "Lima")),
    ],
)  # fmt: skip
def test_two_values_are_those_that_calls_had_in_turn(
    words: str, calls: tuple[Call, ...], chosen: tuple[str, str], values: tuple[str, str]
) -> None:
    task = f"Oslo time in Manila and in Lima, Bonn to Graz, Chile, Kenya, Peru. And {words}?"
    given = dict(zip(("from_city", "to_city"), chosen, strict=True))
    assert tuple(meant(task, words, calls, "time_difference", given).values()) == values


@pytest.mark.parametrize(
    ("words", "calls", "chosen"),
    [
        ("how many hours lie between Oslo and Lima, the two cities", CLOCKS, ("Oslo", "Lima")),
        ("how many hours lie between Oslo and Lima", CLOCKS, ("Oslo", "Lima")),
        ("how many hours lie between those two", CLOCKS, ("Rome", "Quito")),
        ("how many hours lie between those two", CAPITALS, ("Santiago", "Lima")),
        ("how many hours lie between those two", (), ("Santiago", "Lima")),
    ],
)
def test_two_values_that_are_named_or_not_known_stay(
    words: str, calls: tuple[Call, ...], chosen: tuple[str, str]
) -> None:
    given = dict(zip(("from_city", "to_city"), chosen, strict=True))
    assert meant(f"First this. And {words}?", words, calls, "time_difference", given) == given


@pytest.mark.parametrize(
    ("words", "calls", "name", "chosen", "value"),
    [
        ("what's that airport called", FLIGHT, "airport_by_code", "JNB", "PER"),
        ("the time in the latter", WAY, "current_time", "Bonn", "Graz"),
        ("the time in the former", WAY, "current_time", "Graz", "Bonn"),
        ("the time in the first of them", WAY, "current_time", "Graz", "Bonn"),
        ("the time in the second city of the two", WAY, "current_time", "Bonn", "Graz"),
        ("the time in the latter", CAPITALS[:2], "current_time", "Santiago", "Nairobi"),
        ("the time in the third of those", CAPITALS, "current_time", "Santiago", "Lima"),
        ("the time in the last one", CAPITALS, "current_time", "Santiago", "Lima"),
        ("the time in the latter", WAY, "current_time", "Rome", "Graz"),
    ],
)
def test_one_of_several_is_that_in_its_place(
    words: str, calls: tuple[Call, ...], name: str, chosen: str, value: str
) -> None:
    task = f"JNB to PER; Bonn to Graz; Chile, Kenya, Peru. And the second of those, {words}?"
    if name == "current_time":
        task = task.replace("the second of those, ", "")
    key = next(iter(FunctionList([APIS[name]]))).parameters
    assert list(meant(task, words, calls, name, {next(iter(key)): chosen}).values()) == [value]


@pytest.mark.parametrize(
    ("words", "calls", "chosen"),
    [
        ("the time in Bonn, the former capital", WAY, "Bonn"),
        ("the time in the latter", CAPITALS, "Santiago"),
        ("the time in the third of those", WAY, "Bonn"),
        ("the time to the second", WAY, "Bonn"),
        ("the time in the latter", (), "Bonn"),
    ],
)
def test_what_is_named_or_of_no_such_place_stays(
    words: str, calls: tuple[Call, ...], chosen: str
) -> None:
    given = {"city": chosen}
    assert meant(f"First this. And {words}?", words, calls, "current_time", given) == given


def test_of_mixed_colours_the_latter_is_one_that_was_mixed() -> None:
    mixed: Call = ("mix_colors", {"first": "teal", "second": "coral"}, {"hex": "#7f7f68"})
    task = "Mix teal with coral. And what is the hex code of the latter?"
    words = "the hex code of the latter"
    given = {"color": "#7f7f68"}
    assert meant(task, words, (mixed,), "color_to_hex", given) == {"color": "coral"}


def test_the_other_one_has_had_no_call_since() -> None:
    task = "How far is it from Bonn to Graz? The time in Graz, and the sunrise in the other one?"
    words = "the sunrise in the other one"
    given = {"city": "Graz"}
    asked: Call = ("current_time", {"city": "Graz"}, {"time": "12:00"})
    for calls, city in (((*WAY, asked), "Bonn"), (WAY, "Graz")):
        assert meant(task, words, calls, "sunrise_and_sunset", given) == {"city": city}


def test_what_failed_is_not_tried_again() -> None:
    words = "the time in the latter"
    task = f"How far is it from Bonn to Graz? And {words}?"
    found = scene(task, WAY, "current_time")
    function = found.offers[-1].function
    tried = Step(Action("", function.name, json.dumps({"city": "Graz"}), about=words), "", ok=False)
    again = replace(found, attempts=(*found.attempts, tried))
    assert pointed(words, found, function, {"city": "Bonn"}) == {"city": "Graz"}
    assert pointed(words, again, function, {"city": "Bonn"}) == {"city": "Bonn"}


def test_a_call_for_one_of_two_is_made_for_no_other() -> None:
    words = "when does the sun set today in the former"
    task = f"What's the difference in hours between Perth and Dublin? And {words}?"
    calls: tuple[Call, ...] = (("sunrise_and_sunset", {"city": "Perth", "date": "today"}, {}),)
    back = scene(task, calls, "sunrise_and_sunset", about=words)
    assert unnamed(back.path[0], back) == {"Perth"}
    assert Several(back, Tuned()).next() is None
    task = "When does the sun set today in the two cities Perth and Dublin?"
    listed = scene(task, calls, "sunrise_and_sunset", about=task.rstrip("?"))
    assert unnamed(listed.path[0], listed) == set()
    another = Several(listed, Tuned()).next()
    assert another is not None
    assert another.arguments == {"city": "Dublin", "date": "today"}


@pytest.mark.parametrize(
    ("words", "country"),
    [
        ("what is the capital of the first of them", "Cambodia"),
        ("what is the capital of the last one", "Vietnam"),
        ("what is the capital of the third of those", "Myanmar"),
        ("what is the capital of the former", "Laos"),
        ("what is its capital", "Laos"),
    ],
)
def test_a_list_that_a_call_answered_has_its_places(words: str, country: str) -> None:
    names = ["Cambodia", "China", "Myanmar", "Thailand", "Vietnam"]
    calls = (("neighbouring_countries", {"country": "Laos"}, {"count": 5, "neighbours": names}),)
    task = f"Which countries border Laos, and {words}?"
    assert meant(task, words, calls, "capital_city", {"country": "Laos"}) == {"country": country}
    cities = ["Nairobi (4,397,073)", "Kakamega (1,867,579)"]
    largest = (("largest_cities", {"country": "Kenya"}, {"cities": cities}),)
    task = "The largest cities of Kenya, and the time in the second of them?"
    part = "the time in the second of them"
    assert meant(task, part, largest, "current_time", {"city": "Kenya"}) == {"city": "Kakamega"}
    days = (("largest_cities", {"country": "Kenya"}, {"cities": ["1 May 2027", "2 May 2027"]}),)
    assert meant(task, part, days, "current_time", {"city": "Kenya"}) == {"city": "Kenya"}
