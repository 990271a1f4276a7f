"""Prices as they are spoken, and in cents."""

from __future__ import annotations

import pytest

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_registry.api import Parameter
from toolsrv_runtime.planner.reading.prices import in_main_unit, told
from toolsrv_runtime.planner.reading.wish import Wish

APIS = {api.id.rpartition("/")[2]: api for api in load_offline_catalog().apis}


def price(function: str, part: str, task: str = "") -> list[str]:
    api = APIS[function]
    return [told(one, api, Wish(part, part, task or part)) for one in api.parameters]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("diesel at one sixty-nine a litre", "1.69"),
        ("fuel at one eighty per litre", "1.80"),
        ("it's two fifty each", "2.50"),
        ("nineteen ninety-nine dollars", "19.99"),
        ("forty-nine ninety euros", "49.90"),
        ("Four ninety-nine pounds", "4.99"),
        ("two oh five a litre", "2.05"),
        ("seventeen fifty an hour", "17.50"),
        ("bread at three twenty a loaf", "3.20"),
        ("nineteen ninety-nine", ""),
        ("at one sixty-nine it is", ""),
        ("one fifty dollars", ""),
        ("two fifty a night", ""),
        ("twenty thirty euros", ""),
        ("twenty five euros", ""),
        ("twenty-five euros", ""),
        ("one hundred fifty euros", ""),
        ("two fifty each, three fifty each", ""),
        ("1.69 a litre", ""),
    ],
)
def test_two_numbers_before_a_currency_or_a_rate_are_a_price(text: str, said: str) -> None:
    assert price("fuel_cost", text) == ["", "", said]
    assert price("discount", text) == [said, ""]


def test_the_task_counts_where_the_part_lacks_a_number() -> None:
    task = "With 15% off, how much is a mug at seven twenty-five each?"
    assert price("discount", "With 15% off", task) == ["7.25", ""]
    assert price("discount", "15% off 40", task) == ["", ""]


def test_only_the_one_price_of_a_function_is_read_so() -> None:
    text = "nineteen ninety-nine dollars"
    assert not any(price("percentage_of_number", text) + price("number_to_words", text))


@pytest.mark.parametrize(
    ("name", "value", "text", "read"),
    [
        ("price_per_kwh", "31", "at 31 cents per kWh", "0.31"),
        ("price_per_kwh", "28.5", "28.5 ct a kWh", "0.285"),
        ("price", "99", "99p each", "0.99"),
        ("price", "99", "99 pounds", "99"),
        ("price", "31", "131 cents", "31"),
        ("semitones", "100", "100 cents", "100"),
        ("price", "a cent", "a cent", "a cent"),
    ],
)
def test_a_price_in_cents_is_told_in_the_main_unit(
    name: str, value: str, text: str, read: str
) -> None:
    assert in_main_unit(Parameter(name=name, type="NUMBER"), value, text, text) == read


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("price_per_liter", "gas is $3.50 a gallon", "0.9246"),
        ("price_per_kwh", "at 15p per kwh", "0.15"),
        ("price_per_kwh", "0.31 per kWh", ""),
        ("price_per_liter", "1.80 a liter", ""),
        ("price_per_liter", "3 euros a kilo", ""),
        ("price", "3.50 a gallon", ""),
    ],
)
def test_a_price_is_told_for_the_unit_of_its_parameter(name: str, text: str, said: str) -> None:
    parameter = Parameter(name=name, type="NUMBER")
    api = APIS["fuel_cost"].model_copy(update={"required": (parameter,), "optional": ()})
    assert told(parameter, api, Wish(text, task=text)) == said
