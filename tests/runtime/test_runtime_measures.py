"""Numbers told in another unit than their parameter's."""

from __future__ import annotations

import itertools

import pint
import pytest

from toolsrv_registry.api import Api, Parameter
from toolsrv_runtime.planner.reading.measures import (
    fits,
    has_unit,
    in_its_unit,
    is_of_another,
    is_rate,
    is_share,
    lasting,
    may_be,
    origins,
    told,
    unit_of_answer,
    whole_unit,
)
from toolsrv_runtime.planner.reading.wish import Wish
from toolsrv_runtime.values.lexicon import UNITS, same_dimension

API = Api(id="sports/pace/speed", category="Sports", tool="pace", name="speed")


def parameter(name: str, description: str = "", kind: str = "NUMBER") -> Parameter:
    return Parameter(name=name, type=kind, description=description)


@pytest.mark.parametrize(
    ("name", "description", "value", "text", "read"),
    [
        ("wind_kmh", "", "40", "The wind is 40 knots.", "74.08"),
        ("wind_kmh", "", "25", "25mph and -10 C", "40.23"),
        ("wind_kmh", "", "25", "25 miles an hour", "40.23"),
        ("wind_kmh", "", "12.5", "a breeze of 12.5 m/s", "45"),
        ("wind_kmh", "", "40", "40 km/h", "40"),
        ("wind_kmh", "", "40", "40 knots there, 40 mph here", "40"),
        ("wind_kmh", "", "40", "140 knots, 40.5 knots", "40"),
        ("wind_kmh", "", "40", "40 years", "40"),
        ("wind_kmh", "", "40", "40 kg", "40"),
        ("wind_kmh", "", "forty", "forty knots", "forty"),
        ("temperature_c", "", "98", "98 Fahrenheit", "36.67"),
        ("temperature_c", "", "98", "98\u00b0F with 60%", "36.67"),
        ("temperature_c", "", "-10", "-10 degrees Fahrenheit", "-23.33"),
        ("temp", "Air temperature in Celsius", "98", "98 F", "36.67"),
        ("temp", "In Celsius or in Fahrenheit", "98", "98 F", "98"),
        ("weightKg", "", "5", "5 g of it", "0.005"),
        ("weight", "Body weight in pounds", "70", "70 kg", "154.32"),
        ("capacity_mah", "", "5", "a 5 Ah battery", "5000"),
        ("current_ma", "", "0.5", "at 0.5 A", "500"),
        ("volts", "", "12", "12 kV and 30 mA", "12000"),
        ("amps", "", "30", "12 kV and 30 mA", "0.03"),
        ("panel_watts", "", "3.2", "3.2 kW of panels", "3200"),
        ("amps", "", "5", "5 a day", "5"),
        ("vitamin_c", "", "98", "98 F", "98"),
        ("liters_per_100km", "", "5", "5 gallons", "5"),
        ("price", "Price in dollars per mile", "5", "5 km", "5"),
    ],
)
def test_a_number_is_read_in_the_unit_of_its_parameter(
    name: str, description: str, value: str, text: str, read: str
) -> None:
    assert in_its_unit(parameter(name, description), value, text, text) == read


def test_the_part_counts_before_the_task() -> None:
    wind = parameter("wind_kmh")
    task = "At sea 40 knots; on land, 40 mph: how strong is that?"
    assert in_its_unit(wind, "40", "on land, 40 mph", task) == "64.37"
    assert in_its_unit(wind, "40", "how strong is that?", "At sea 40 knots.") == "74.08"


def test_texts_and_names_are_left_alone() -> None:
    assert in_its_unit(parameter("wind_kmh", kind="STRING"), "40", "40 knots", "") == "40"
    assert in_its_unit(parameter("number"), "40", "40 knots", "40 knots") == "40"


def test_the_second_of_two_is_no_time() -> None:
    assert in_its_unit(parameter("second"), "18", "12 and 18 minutes", "") == "18"
    assert in_its_unit(parameter("seconds"), "18", "18 minutes", "") == "1080"


@pytest.mark.parametrize(
    ("name", "seen", "task", "unit"),
    [
        ("from_unit", [("distance_km", "2462"), ("hours", "3.4")], "in nautical miles", "km"),
        ("unit", [("speedKmh", "2462")], "in knots", "km/h"),
        ("from_unit", [("distance_km", "2462")], "2462 of them in miles", ""),
        ("from_unit", [("distance_km", "2462"), ("weight_kg", "2462")], "in miles", ""),
        ("from_unit", [("population", "2462")], "in miles", ""),
        ("to_unit", [("distance_km", "2462")], "in miles", ""),
        ("from_city", [("distance_km", "2462")], "in miles", ""),
        ("from_unit", [], "in miles", ""),
    ],
)
def test_a_number_of_an_answer_is_in_the_unit_of_its_name(
    name: str, seen: list[tuple[str, str]], task: str, unit: str
) -> None:
    assert unit_of_answer(parameter(name), {"2462", "miles"}, seen, task) == unit


def test_a_unit_has_all_its_words() -> None:
    task = "How far in nautical miles or square feet?"
    assert whole_unit(parameter("to_unit"), "nautical", task) == "nautical miles"
    assert whole_unit(parameter("to_unit"), "miles", task) == "miles"
    assert whole_unit(parameter("to_unit"), "square", task) == "square"
    assert whole_unit(parameter("city"), "nautical", task) == "nautical"


@pytest.mark.parametrize(
    ("part", "read"),
    [
        ("42 km took 1 h 45 min", "1.75"),
        ("in 2 hours and 20 minutes", "2.33333"),
        ("1 hour 30 mins, yes 1 hour 30 mins", "1.5"),
        ("1 h 45 min or 2 h 10 min", ""),
        ("at 1 h", ""),
        ("1:45", ""),
    ],
)
def test_a_time_of_hours_and_minutes_is_one_number(part: str, read: str) -> None:
    assert lasting(parameter("hours"), API, Wish(part)) == read
    assert lasting(parameter("distance_km"), API, Wish(part)) == ""


def test_months_are_years_and_minutes_hours() -> None:
    text = "over 18 months, in 90 minutes"
    assert in_its_unit(parameter("years"), "18", text, text) == "1.5"
    assert in_its_unit(parameter("hours"), "90", text, text) == "1.5"


@pytest.mark.parametrize(
    ("said", "task", "rate"),
    [
        ("22 km", "by bike at 22 km/h", True),
        ("100 km", "with 7 l per 100 km", True),
        ("70 km", "70 km an hour, so 70 km", False),
        ("22", "at 22 km/h", False),
        ("22 km", "from here", False),
    ],
)
def test_a_number_within_rates_alone_is_no_distance(said: str, task: str, rate: bool) -> None:
    assert is_rate(said, task) is rate


def test_a_default_of_any_kind_is_fine() -> None:
    odd = Parameter(name="hours", type="NUMBER", default=[1, {"a": 2}])
    assert lasting(odd, API, Wish("in 1 h 30 min")) == "1.5"
    assert in_its_unit(odd, "90", "90 minutes", "90 minutes") == "1.5"


@pytest.mark.parametrize(
    ("name", "fact", "fits"),
    [
        ("temperature_c", "beaufort_force", False),
        ("temperature_c", "result", True),
        ("temperature_c", "temperature", True),
        ("temperature_c", "feels_like_f", True),
        ("temperature_c", "distance_km", False),
        ("distance_km", "distance_miles", True),
        ("number", "beaufort_force", True),
        ("weight_kg", "grams", True),
    ],
)
def test_an_answer_fits_a_parameter_of_its_measure(name: str, fact: str, fits: bool) -> None:
    assert may_be(parameter(name), fact) is fits


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("10 Ah battery, 500 mA load", ("10000", "500")),
        ("Battery runtime: 1.2 Ah at 0.3 A", ("1200", "300")),
        ("a 20,000 mAh power bank at 1A", ("20000", "1000")),
        ("5 Ah or 10 Ah at 1 A", ("", "1000")),
        ("how long does it last", ("", "")),
    ],
)
def test_an_amount_belongs_to_the_parameter_of_its_measure(
    text: str, values: tuple[str, str]
) -> None:
    takes = (parameter("capacity_mah"), parameter("current_ma"))
    api = API.model_copy(update={"required": takes})
    assert tuple(told(one, api, Wish(text, task=text)) for one in takes) == values


def test_of_two_parameters_of_one_measure_nothing_is_said() -> None:
    takes = (parameter("first_kg"), parameter("second_kg"))
    api = API.model_copy(update={"required": takes})
    assert told(takes[0], api, Wish("5 kg and 3 g", task="5 kg and 3 g")) == ""
    speed = parameter("speed_kmh")
    alone = API.model_copy(update={"required": (speed,)})
    assert told(speed, alone, Wish("at 50 mph", task="at 50 mph")) == "80.47"
    assert told(parameter("distance_km"), alone, Wish("at 7 l/100 km", task="")) == ""


def test_a_number_with_a_unit_is_no_share() -> None:
    assert is_share(parameter("humidity"))
    assert not is_share(parameter("temperature_c"))
    assert has_unit("40kph", "2 degrees, wind 40kph")
    assert not has_unit("40", "40 kph at 40 percent")
    assert not has_unit("dry", "dry")
    assert fits(parameter("current_ma"), "10 Ah, 500 mA", 13)
    assert not fits(parameter("current_ma"), "10 Ah, 500 mA", 2)


def test_a_number_with_a_unit_of_another_measure_is_none_of_its() -> None:
    speed, task = parameter("speed_kmh"), "450 km in 5 hours, or 90 and 80 km/h"
    assert is_of_another(speed, "450", task)
    assert is_of_another(speed, "5", task)
    assert not is_of_another(speed, "90", task)
    assert not is_of_another(speed, "80", task)
    assert not is_of_another(speed, "72", task)
    assert not is_of_another(parameter("number"), "450", task)


def test_miles_to_a_gallon_are_no_distance() -> None:
    task = "It does 26 miles to a US gallon, 15 km to the litre, and went 430 miles to the coast"
    assert is_rate("26 miles", task)
    assert is_rate("15 km", task)
    assert not is_rate("430 miles", task)


def test_a_value_is_known_by_what_the_task_told() -> None:
    text = "10 Ah battery, 500 mA load"
    assert origins(parameter("capacity_mah"), "10000", text) == {"10"}
    assert origins(parameter("current_ma"), "500", text) == {"500"}
    assert origins(parameter("number"), "500", text) == set()


def test_units_measure_the_same_where_pint_says_so() -> None:
    registry: pint.UnitRegistry[float] = pint.UnitRegistry(cache_folder=None)
    for one, other in itertools.product(UNITS, repeat=2):
        same = registry.Unit(one).dimensionality == registry.Unit(other).dimensionality
        assert same_dimension(one, other) is same, (one, other)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("minus 6 Fahrenheit and wind", "-21.11"),
        ("-6 F", "-21.11"),
        ("10 minus 6 F", "-14.44"),
    ],
)
def test_an_amount_keeps_the_sign_that_words_give_it(text: str, value: str) -> None:
    takes = parameter("temperature_c")
    api = API.model_copy(update={"required": (takes,)})
    assert told(takes, api, Wish(text, task=text)) == value
