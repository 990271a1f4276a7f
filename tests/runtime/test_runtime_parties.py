"""How many people share something, and what there is none of."""

from __future__ import annotations

import pytest

from toolsrv_registry.api import Api, Parameter
from toolsrv_runtime.planner.reading import denied, parties
from toolsrv_runtime.planner.reading.wish import Wish

API = Api(id="food/bill/split", category="Food", tool="bill", name="split")
PEOPLE = Parameter(name="people", type="NUMBER")


@pytest.mark.parametrize(
    ("text", "people"),
    [
        ("split between my wife and me", "2"),
        ("me and two friends", "3"),
        ("my two sisters and I", "3"),
        ("between me and my best friend", "2"),
        ("I ate with four colleagues", "5"),
        ("We had dinner with our three kids", "4"),
        ("for the three of us", "3"),
        ("the four of us, me and three friends", "4"),
        ("120 dollars four ways", "4"),
        ("lunch for two", "2"),
        ("between Anna, Ben and Carla", "3"),
        ("between Tom and me", "2"),
        ("among 5 people", ""),
        ("the two of us, or the five of us", ""),
        ("my wife says hello", ""),
    ],
)
def test_people_are_counted_with_the_one_who_speaks(text: str, people: str) -> None:
    assert parties.told(PEOPLE, API, Wish(text, task=text)) == people


def test_only_for_numbers_of_people() -> None:
    seats = Parameter(name="servings", type="NUMBER")
    assert parties.told(seats, API, Wish("me and two friends", task="me and two friends")) == ""


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("tip_percent", "75 between the three of us, no tip", "0"),
        ("tip", "without a tip", "0"),
        ("tip_percent", "the tip is already included", "0"),
        ("tip_percent", "tip 10 percent", ""),
        ("tax_percent", "no tip", ""),
        ("rate", "at no rate below 3", ""),
        ("rate", "an interest-free loan", "0"),
        ("amount", "an interest-free loan", ""),
    ],
)
def test_what_there_is_none_of_is_zero(name: str, text: str, value: str) -> None:
    parameter = Parameter(name=name, type="NUMBER")
    assert denied.told(parameter, API, Wish(text, task=text)) == value


def test_no_interest_on_one_thing_is_none_on_another_that_tells_its_rate() -> None:
    rate = Parameter(name="rate", type="NUMBER")
    task = "150 a month (no interest), when is it 4,200? And 2,500 at 3.2% a year for 18 years?"
    assert denied.told(rate, API, Wish("2,500 at 3.2% a year for 18 years", task=task)) == ""
    assert denied.told(rate, API, Wish("150 a month (no interest)", task=task)) == "0"
