"""What functions work out by arithmetic, held against what they answer, and a calculator instead."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_catalogs.offline.expression import evaluate
from toolsrv_catalogs.offline.testing import OfflineClient
from toolsrv_registry.api import Api, Parameter
from toolsrv_registry.functions import FunctionList
from toolsrv_runtime.contract.format import Action, Step
from toolsrv_runtime.planner.calculating import is_told_twice, worked_out
from toolsrv_runtime.planner.formulas import expression, takes_expression
from toolsrv_runtime.planner.scene import Offer, Scene

APIS = {api.id.rpartition("/")[2]: api for api in load_offline_catalog().apis}


@pytest.fixture(scope="module")
def offline() -> Iterator[OfflineClient]:
    with OfflineClient() as client:
        yield client


def numbers(value: Any) -> Iterator[float]:
    if isinstance(value, dict):
        for one in value.values():
            yield from numbers(one)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield float(value)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("percentage_of_number", {"percent": "18", "number": "2450"}),
        ("percentage_of_number", {"percent": "7.5", "number": "1840"}),
        ("percent_change", {"old_value": "80", "new_value": "62"}),
        ("average_speed", {"distance": "387 km", "hours": "4.5"}),
        ("right_triangle", {"first_side": "2.4", "second_side": "3.2"}),
        ("discount", {"price": "1340", "percent": "15"}),
        ("sales_tax", {"price": "1139", "tax_percent": "21"}),
        ("scale_recipe", {"amount": "250", "servings": "8", "wanted_servings": "30"}),
        ("percentage_of_number", {"percent": "0.5%", "number": "12,400"}),
        ("average_speed", {"distance": "120 miles", "hours": "2"}),
        ("travel_time", {"distance": "210 km", "speed_kmh": "84"}),
        ("travel_time", {"distance": "120 miles", "speed_kmh": "80"}),
        ("split_bill_with_tip", {"bill": "231.40", "people": "7", "tip_percent": "12"}),
        ("split_bill_with_tip", {"bill": "84", "tip_percent": "15"}),
        ("compound_interest", {"amount": "5000", "rate": "3", "years": "10"}),
        (
            "compound_interest",
            {"amount": "5000", "rate": "3", "years": "10", "times_per_year": "12"},
        ),
        ("inflation", {"amount": "5000", "rate": "3.5", "years": "8"}),
        ("loan_payment", {"loan": "240000", "rate": "3.9", "years": "25"}),
        ("savings_goal", {"goal": "3000", "monthly_saving": "250"}),
        ("battery_runtime", {"capacity_mah": "3200", "current_ma": "250"}),
        ("ohms_law", {"volts": "230", "amps": "4.2"}),
        ("fuel_cost", {"distance": "420 km", "liters_per_100km": "6.5", "price_per_liter": "1.8"}),
        ("fuel_cost", {"distance": "420 km", "liters_per_100km": "6.5"}),
        ("body_mass_index", {"weight": "72 kg", "height": "178 cm"}),
        ("body_mass_index", {"weight": "72 kg", "height": "1.78 m"}),
        ("body_mass_index", {"weight": "154 lb", "height": "5'9\""}),
        ("beat_length", {"bpm": "128"}),
        ("average_and_statistics", {"numbers": "23, 41, 18.5, 30 and 27.5"}),
        ("average_and_statistics", {"numbers": "12,15,9"}),
        ("convert_units", {"amount": "3", "from_unit": "km", "to_unit": "miles"}),
        ("convert_units", {"amount": "3.5", "from_unit": "pounds", "to_unit": "grams"}),
        (
            "convert_temperature",
            {"temperature": "98.6", "from_scale": "fahrenheit", "to_scale": "celsius"},
        ),
        (
            "convert_temperature",
            {"temperature": "21", "from_scale": "celsius", "to_scale": "kelvin"},
        ),
    ],
)
def test_a_formula_gives_what_the_api_answers(
    name: str, arguments: dict[str, str], offline: OfflineClient
) -> None:
    text = expression(APIS[name], arguments)
    answer = offline.answer(urlsplit(APIS[name].url).path, **arguments)
    assert any(
        math.isclose(evaluate(text), one, rel_tol=2e-3, abs_tol=5e-3) for one in numbers(answer)
    ), (text, answer)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("travel_time", {"distance": "120 nmi", "speed_kmh": "80"}),
        ("average_and_statistics", {"numbers": "7"}),
        ("average_and_statistics", {"numbers": "3, x, 5"}),
        ("body_mass_index", {"weight": "11 stone", "height": "178 cm"}),
        ("convert_units", {"amount": "3", "from_unit": "km", "to_unit": "hours"}),
        ("savings_goal", {"goal": "3000", "monthly_saving": "250", "rate": "2"}),
        ("average_speed", {"distance": "far", "hours": "2"}),
        ("average_speed", {"distance": "800 m", "hours": "0.05"}),
        ("average_speed", {"distance": "0,125", "hours": "2"}),
        ("average_speed", {"distance": "٣", "hours": "2"}),
        ("percent_change", {"old_value": "-80", "new_value": "62"}),
        ("percentage_of_number", {"percent": "18", "number": "2 M"}),
        ("average_speed", {"hours": "2"}),
        ("leap_year", {"year": "1996"}),
        ("capital_city", {"country": "Peru"}),
    ],
)
def test_what_is_no_plain_arithmetic_has_no_formula(name: str, arguments: dict[str, str]) -> None:
    assert expression(APIS[name], arguments) == ""


def test_another_provider_s_function_is_known_by_its_words() -> None:
    api = Api(
        id="Finance/calc/pct",
        category="Finance",
        tool="calc",
        name="PercentageOf",
        url="https://calc.example/pct",
        description="Returns the given percentage of a value.",
        required=(Parameter(name="percentValue"), Parameter(name="amount")),
    )
    assert expression(api, {"amount": 1_200, "percentValue": "5"}) == "1200 * 5 / 100"


@pytest.mark.parametrize(
    ("name", "arguments", "asked", "worked_out"),
    [
        ("discount", {"price": "1340", "percent": "15"}, "how much do I save", "1340 * 15 / 100"),
        ("discount", {"price": "340", "percent": "35"}, "what do we knock off it", "340 * 35 / 100"),
        ("right_triangle", {"first_side": "3", "second_side": "4"}, "what area has it", "3 * 4 / 2"),
        ("right_triangle", {"first_side": "3", "second_side": "4"}, "its perimeter", ""),
        ("sales_tax", {"price": "100", "tax_percent": "21"}, "how much tax is that", "100 * 21 / 100"),
        ("ohms_law", {"volts": "12", "amps": "2"}, "the resistance", "12 / 2"),
        ("average_and_statistics", {"numbers": "1, 2, 6"}, "the median", ""),
        ("split_bill_with_tip", {"bill": "80", "people": "4", "tip_percent": "10"},
         "how much tip is that", "80 * 10 / 100"),
        ("split_bill_with_tip", {"bill": "80", "people": "4", "tip_percent": "10"},
         "what does each one pay", "80 * (1 + 10 / 100) / 4"),
        ("compound_interest", {"amount": "80", "rate": "4", "years": "2"},
         "how much interest", "80 * (1 + 4 / 100 / 1)^(1 * 2) - 80"),
        ("electricity_cost", {"watts": "60", "hours_per_day": "11", "price_per_kwh": "0.29"},
         "what does it cost me a year", "60 / 1000 * 11 * 365 * 0.29"),
        ("electricity_cost", {"watts": "60", "hours_per_day": "11", "price_per_kwh": "0.29"},
         "what does it cost per month", "60 / 1000 * 11 * 30 * 0.29"),
        ("electricity_cost", {"watts": "60", "hours_per_day": "11", "price_per_kwh": "0.29"},
         "per month and per year", ""),
        ("running_pace", {"distance": "10 km", "time": "52:30"}, "pace", "(52 + 30 / 60) / 10"),
        ("running_pace", {"distance": "10 km", "time": "1h 5min"}, "in km/h", "10 / 65 * 60"),
        ("finish_time", {"distance": "8 km", "pace": "6.5"}, "", "8 * 6.5"),
        ("network_details", {"network": "192.168.40.0/26"}, "how many devices", "2^(32 - 26) - 2"),
        ("network_details", {"network": "192.168.40.0/26"}, "its netmask", ""),
        ("network_details", {"network": "192.168.40.0/32"}, "how many devices", ""),
        ("savings_goal", {"goal": "4200", "monthly_saving": "175", "rate": "0"}, "", "4200 / 175"),
        ("finish_time", {"distance": "half marathon", "pace": "5:30"}, "", "21.0975 * (5 + 30 / 60)"),
    ],
)  # fmt: skip
def test_what_is_asked_for_decides_what_is_worked_out(
    name: str, arguments: dict[str, str], asked: str, worked_out: str
) -> None:
    assert expression(APIS[name], arguments, asked) == worked_out


@pytest.mark.parametrize(
    ("name", "description", "arguments"),
    [
        ("Income tax", "Tax on an income.", {"amount": "50000", "tax_year": "2024"}),
        ("Net", "Removes VAT from a gross price.", {"price": "119", "vat_rate": "19"}),
        ("Discount", "Applies a discount to a price.", {"price": "9", "discount_amount": "5"}),
        ("Inflation", "Percentage change", {"start_year": "2010", "end_year": "2020"}),
        ("Base", "The number that a value is the given percentage of a number.",
         {"percent": "20", "value": "18"}),
        ("Pace", "Average speed", {"distance": "10", "time_minutes": "50"}),
        ("Sides", "The hypotenuse", {"a": "1e3", "b": "2"}),
    ],
)  # fmt: skip
def test_functions_that_only_sound_alike_have_no_formula(
    name: str, description: str, arguments: dict[str, str]
) -> None:
    api = Api(
        id=f"C/t/{name}",
        category="C",
        tool="t",
        name=name,
        url="https://t.example/x",
        description=description,
        required=tuple(Parameter(name=one) for one in arguments),
    )
    assert expression(api, arguments) == ""


@given(
    arguments=st.dictionaries(
        st.sampled_from(("percent", "number", "distance", "hours", "price", "x")),
        st.one_of(st.text(max_size=20), st.floats(), st.integers()),
        max_size=3,
    )
)
def test_whatever_is_given_an_expression_is_arithmetic(arguments: dict[str, Any]) -> None:
    for name in ("percentage_of_number", "average_speed", "discount"):
        assert set(expression(APIS[name], arguments)) <= set("0123456789.+-*/^() ")


def calculator(description: str, takes: str = "The expression") -> Api:
    return Api(
        id="C/t/x",
        category="C",
        tool="t",
        name="x",
        url="https://t.example/x",
        description=description,
        required=(Parameter(name="expression", description=takes),),
    )


def test_a_calculator_is_known_by_what_it_does_and_takes() -> None:
    assert takes_expression(APIS["calculate"], "sqrt(2^2 + 3^2)") == "expression"
    for name in ("percentage_of_number", "prime_check", "list_fonts"):
        assert takes_expression(APIS[name], "1 + 1") == ""
    assert takes_expression(calculator("Evaluates a maths expression."), "1 / 3") == "expression"
    assert takes_expression(calculator("Evaluates a maths expression."), "2^2") == ""
    assert takes_expression(calculator("Evaluates it.", "with ^ for powers"), "2^2") == "expression"
    for does in ("Calculates the derivative.", "Explains a cron expression.", "Calculate a regex"):
        assert takes_expression(calculator(does), "1 + 1") == ""


@pytest.mark.parametrize(("down", "text"), [(True, "2450 * 18 / 100"), (False, "")])
def test_only_for_a_function_that_is_down_something_is_worked_out(down: bool, text: str) -> None:
    functions = FunctionList([APIS["percentage_of_number"]])
    function = next(iter(functions))
    move = Action("", function.name, json.dumps({"percent": "18", "number": "2450"}), about="x")
    step = Step(move, "", ok=False, down=down)
    scene = Scene("x", (Offer(1, function),), (step,), (step,), ())
    assert worked_out(scene, step) == text


@pytest.mark.parametrize(
    ("expression", "twice"),
    [
        ("441 * 18 / 100", True),
        ("441 * 5 / 100", False),  # "and 5 % of that"
        ("900 * 18 / 100", False),
        ("2450 * 18 / 100", False),  # the same call, which the path answers
    ],
)
def test_an_answer_is_not_put_back_into_what_it_came_from(expression: str, twice: bool) -> None:
    function = next(iter(FunctionList([APIS["calculate"]])))
    move = Action("", function.name, json.dumps({"expression": "2450 * 18 / 100"}), about="x")
    step = Step(move, "", ok=True, response={"expression": "2450 * 18 / 100", "result": 441})
    scene = Scene("x", (Offer(1, function),), (step,), (step,), ())
    assert is_told_twice(expression, scene) == twice
    assert not is_told_twice(expression, Scene("x", (Offer(1, function),), (), (), ()))
