"""What a car uses, told in miles to the gallon and kilometers to the liter."""

from __future__ import annotations

import pytest

from toolsrv_registry.api import Api, Parameter
from toolsrv_runtime.planner.reading.mileage import is_untold, told
from toolsrv_runtime.planner.reading.wish import Wish

API = Api(id="cars/trip/fuel", category="Cars", tool="trip", name="fuel")
LITERS = Parameter(name="liters_per_100km", type="NUMBER")
UNIT = Parameter(name="unit", type="STRING", enum=("mpg_us", "mpg_uk", "l_per_100km"))


def read(parameter: Parameter, text: str) -> str:
    return told(parameter, API, Wish(text, task=text))


@pytest.mark.parametrize(
    ("text", "liters"),
    [
        ("300 miles at 35 mpg", "6.72"),
        ("a car that does 40 miles to the gallon", "5.88"),
        ("45 mpg, it is a British car", "6.28"),
        ("50 miles per imperial gallon", "5.65"),
        ("it runs 15 km per litre", "6.67"),
        ("12.5 km/l", "8"),
        ("6.5 l/100 km", ""),
        ("0 mpg", ""),
        ("30 mpg or 35 mpg", ""),
    ],
)
def test_consumption_in_other_words(text: str, liters: str) -> None:
    assert read(LITERS, text) == liters


def test_a_document_may_say_what_a_parameter_is() -> None:
    consumption = Parameter(name="use", type="NUMBER", description="In liters per 100 km")
    assert read(consumption, "at 35 mpg") == "6.72"
    assert read(Parameter(name="use", type="NUMBER", description="In liters"), "at 35 mpg") == ""


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("35 mpg in l/100 km", "mpg_us"),
        ("35 mpg (UK) in l/100 km", "mpg_uk"),
        ("7 l/100 km in mpg", "l_per_100km"),
        ("6.2 litres/100km in uk and us mpg", "l_per_100km"),
        ("12 km per litre in mpg", ""),
    ],
)
def test_a_gallon_is_american_unless_the_text_says_otherwise(text: str, unit: str) -> None:
    assert read(UNIT, text) == unit


def test_what_the_part_tells_stands_before_what_the_task_says() -> None:
    task = "It does 11 miles to the gallon. Our own van: 640 km at 8.2 l/100km"
    assert told(LITERS, API, Wish("Our own van: 640 km at 8.2 l/100km", task=task)) == ""


def test_what_a_car_uses_is_told_by_its_words_or_not_at_all() -> None:
    assert is_untold(LITERS, "620 km at 105 an hour in the diesel van")
    for task in (
        "it burns 7 per 100 km",
        "6.5 l/100 km",
        "7/100",
        "it uses 7",
        "35 mpg",
        "7 litres",
    ):
        assert not is_untold(LITERS, task)
    assert not is_untold(UNIT, "620 km")
    assert not is_untold(Parameter(name="distance", type="STRING"), "620 km")
