"""Amounts for each of a span, read for parameters that are named so."""

from __future__ import annotations

import pytest

from toolsrv_registry.api import Api, Parameter
from toolsrv_runtime.planner.reading import frequencies
from toolsrv_runtime.planner.reading.rates import told
from toolsrv_runtime.planner.reading.wish import Wish

API = Api(id="energy/power/cost", category="Energy", tool="power", name="cost")


def read(name: str, text: str, *, task: str = "") -> str:
    return told(Parameter(name=name, type="NUMBER"), API, Wish(text, task=task or text))


@pytest.mark.parametrize(
    ("text", "hours"),
    [
        ("runs 15 minutes a day at 30 cents", "0.25"),
        ("4 hours daily", "4"),
        ("10 hours a week", "1.428571"),
        ("half an hour a day", "0.5"),
        ("5 h/day", "5"),
        ("two hours per night", "2"),
        ("an hour and a half each evening", "1.5"),
        ("burning day and night", "24"),
        ("it is on 24/7", "24"),
        ("30 minutes", ""),
        ("15 kilometers a day", ""),
        ("2 hours a day and 3 hours a day", ""),
        ("24 hours a week", "3.428571"),
    ],
)
def test_an_amount_for_a_span_is_read_as_its_parameter_has_it(text: str, hours: str) -> None:
    assert read("hours_per_day", text) == hours


def test_the_part_counts_before_the_task() -> None:
    task = "3 hours a day; and the other one 20 minutes a day?"
    assert read("hours_per_day", "the other one 20 minutes a day", task=task) == "0.333333"
    assert read("hours_per_day", "what does it cost", task="3 hours a day") == "3"


def test_other_units_spans_and_parameters() -> None:
    assert read("km_per_week", "I run 5 miles every day") == "56.35"
    assert read("hours", "3 hours a day") == ""
    assert read("price_per_kwh", "3 hours a day") == ""
    assert read("apples_per_day", "3 hours a day") == ""


@pytest.mark.parametrize(
    ("text", "times"),
    [
        ("10k at 6.5% compounded monthly for 20 years", "12"),
        ("7% daily compounding on 20,000", "365"),
        ("interest is paid quarterly", "4"),
        ("compounded monthly or compounded daily", ""),
        ("save 50 monthly at 3% interest", ""),
        ("I visit weekly", ""),
    ],
)
def test_how_often_a_year(text: str, times: str) -> None:
    parameter = Parameter(name="times_per_year", type="NUMBER")
    assert frequencies.told(parameter, API, Wish(text, task=text)) == times
    assert frequencies.told(Parameter(name="years"), API, Wish(text, task=text)) == ""


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("If I save 50 a week", "217.41"),
        ("putting aside 1,200 a year", "100"),
        ("$10 daily", "304.38"),
        ("save 300 a month", "300"),
        ("save 300", ""),
        ("50 a week or 60 a week", ""),
    ],
)
def test_money_for_a_span_is_told_as_its_parameter_has_it(text: str, amount: str) -> None:
    assert read("monthly_saving", text) == amount
    assert read("monthly_rate", text) == ""
