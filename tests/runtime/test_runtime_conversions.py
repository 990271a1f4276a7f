"""Times, speeds and spoons in other units, by the words of the task alone."""

from __future__ import annotations

import json
import time

import pytest

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_registry.functions import FunctionList
from toolsrv_runtime.contract.format import Action, Step
from toolsrv_runtime.planner.conversions import (
    converter,
    find,
    in_its_unit,
    is_answered_so,
    is_idle,
    told,
)
from toolsrv_runtime.planner.reading.wish import Wish
from toolsrv_runtime.planner.scene import Offer, Scene

APIS = {api.id.rpartition("/")[2]: api for api in load_offline_catalog().apis}
CONVERT = APIS["convert_units"]


def stated(part: str) -> tuple[str, ...]:
    by_name = {one.name: one for one in CONVERT.parameters}
    return tuple(
        told(by_name[name], CONVERT, Wish(part)) for name in ("amount", "from_unit", "to_unit")
    )


@pytest.mark.parametrize(
    ("text", "amount", "unit", "wanted"),
    [
        ("how many minutes is 3.5 hours", "3.5", "hours", "minutes"),
        ("How many seconds are there in 1,200 days?", "1200", "days", "seconds"),
        ("how many minutes are in an hour", "1", "hour", "minutes"),
        ("how many days make up twelve weeks", "12", "weeks", "days"),
        ("what's 90 minutes in hours?", "90", "minutes", "hours"),
        ("convert half an hour into seconds", "0.5", "hour", "seconds"),
        ("how many days are 5 days", "", "", ""),
        ("how many days is 3 weeks from today", "", "", ""),
        ("how many hours and minutes is it to Lima", "", "", ""),
        ("how many litres are 40 gallons", "", "", ""),
        ("2 hours in minutes and 3 days in hours", "", "", ""),
        ("how tall is 5'11\" in cm", "71", "inches", "cm"),
        ("6 ft 2 in metres", "74", "inches", "metres"),
        ("how many cm is 5 foot 9", "69", "inches", "cm"),
        ("from 5'11 to 6 at noon", "", "", ""),
        ("in 2-3 hours in minutes", "", "", ""),
        ("Convert 72 mph into metres per second", "72", "mph", "metres per second"),
        ("40 knots in km/h?", "40", "knots", "km/h"),
        ("60mph in feet per second", "60", "mph", "feet per second"),
        ("how many teaspoons are in 5 tablespoons?", "5", "tablespoons", "teaspoons"),
        ("how many teaspoons are in 2 cups of flour", "", "", ""),
        ("40 knots in tablespoons", "", "", ""),
    ],
)
def test_what_is_converted_is_spelled_out(text: str, amount: str, unit: str, wanted: str) -> None:
    assert stated(text) == (amount, unit, wanted)


@pytest.mark.parametrize(
    ("function", "name", "value", "read"),
    [
        ("beaufort_scale", "wind_kmh", "51.785075", "83.34"),
        ("beaufort_scale", "wind_kmh", "45", "45"),  # given, not answered
        ("heat_index", "temperature_c", "51.785075", "51.785075"),  # another measure
        ("prime_check", "number", "51.785075", "51.785075"),
    ],
)
def test_a_result_is_taken_on_in_the_unit_of_the_parameter(
    function: str, name: str, value: str, read: str
) -> None:
    given = {"amount": 45, "from_unit": "knots", "to_unit": "mph"}
    response = {"amount": 45, "from_unit": "knot", "to_unit": "mile/hour", "result": 51.785075}
    move = Action("", "convert_units", json.dumps(given))
    parameter = next(one for one in APIS[function].parameters if one.name == name)
    done = Step(move, "", ok=True, response=response)
    assert in_its_unit(parameter, value, [done]) == read
    assert in_its_unit(parameter, value, [Step(move, "", ok=False, response=response)]) == value
    assert in_its_unit(parameter, value, []) == value


def test_only_a_converter_of_units_takes_them() -> None:
    task = "What is 15 percent of 80, and how many weeks are 100 days?"
    names = ("percentage_of_number", "convert_temperature", "convert_units", "number_to_words")
    offers = tuple(
        Offer(at, one) for at, one in enumerate(FunctionList([APIS[name] for name in names]), 1)
    )
    scene = Scene(task, offers, (), (), ())
    (found,) = find(task)
    assert found.words == "how many weeks are 100 days"
    assert task[found.begin :].startswith(found.words)
    offer = converter(found.words, scene)
    assert offer is not None
    assert offer.function.api is CONVERT
    assert converter("15 percent of 80", scene) is None
    assert converter(found.words, Scene(task, offers[:2], (), (), ())) is None
    for name, api in APIS.items():
        for parameter in api.parameters if name != "convert_units" else ():
            assert not told(parameter, api, Wish(found.words))


def test_a_hostile_text_is_cut_and_quick() -> None:
    began = time.process_time()
    for text in ("how many minutes is are in " * 3_000, "1 day in " * 9_000, "a " * 40_000):
        find(text)
    assert time.process_time() - began < 5


def test_what_is_left_of_the_question_is_another_conversion() -> None:
    task = "How many seconds are in 3 weeks? And in 2.5 days, or 4 hours?"
    found = [(one.words, one.amount, one.unit, one.wanted) for one in find(task)]
    assert found == [
        ("How many seconds are in 3 weeks", "3", "weeks", "seconds"),
        ("in 2.5 days", "2.5", "days", "seconds"),
        ("4 hours", "4", "hours", "seconds"),
    ]
    amount = next(one for one in CONVERT.parameters if one.name == "amount")
    assert told(amount, CONVERT, Wish("in 2.5 days", "", task)) == "2.5"


@pytest.mark.parametrize(
    ("unit", "wanted", "idle"),
    [
        ("km", "kilometers", True),
        ("km", "km", True),
        ("parsec", "parsecs", True),
        ("km", "miles", False),
        ("parsec", "km", False),
    ],
)
def test_an_amount_in_the_wanted_unit_is_left_alone(unit: str, wanted: str, idle: bool) -> None:
    assert is_idle(CONVERT, {"amount": 3, "from_unit": unit, "to_unit": wanted}) is idle
    assert not is_idle(APIS["travel_time"], {"distance": unit, "speed_kmh": wanted})


@pytest.mark.parametrize(
    ("source", "target", "amount", "answered"),
    [
        ("fahrenheit", "celsius", 45.1, True),
        ("celsius", "fahrenheit", 45.1, False),
        ("fahrenheit", "celsius", 95, False),
        ("celsius", "celsius", 45.1, False),
    ],
)
def test_an_answer_is_not_taken_for_another_unit(
    source: str, target: str, amount: float, answered: bool
) -> None:
    move = Action("", "heat_index", json.dumps({"temperature_c": 35, "humidity": 60}))
    done = Step(move, "", ok=True, response={"temperature_c": 35, "feels_like_c": 45.1})
    given = {"temperature": amount, "from_scale": source, "to_scale": target}
    assert is_answered_so(given, [done]) is answered
    assert not is_answered_so(given, [])
