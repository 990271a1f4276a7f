"""Numbers that words put below zero, and the scale that stands beside a number."""

from __future__ import annotations

import pytest

from toolsrv_registry.api import Api, Parameter
from toolsrv_runtime.planner.reading import scales
from toolsrv_runtime.planner.reading.below import below_zero
from toolsrv_runtime.planner.reading.wish import Wish

NUMBER = Parameter(name="temperature_c", type="NUMBER")
SCALE = Parameter(name="scale", type="ENUM", enum=("celsius", "fahrenheit", "gas_mark"))


@pytest.mark.parametrize(
    ("value", "text", "read"),
    [
        ("6", "the skipper says minus 6 degrees", "-6"),
        ("6", "minus 6 degrees, wind 26", "-6"),
        ("40", "negative 40 F", "-40"),
        ("6", "6 degrees below zero", "-6"),
        ("15", "15°C below freezing", "-15"),
        ("3.5", "minus 3.5 C", "-3.5"),
        ("6", "10 minus 6", "6"),
        ("6", "(3) minus 6", "6"),
        ("6", "6 below average", "6"),
        ("6", "minus 6.5", "6"),
        ("0", "minus 0", "0"),
        ("10", "minus 10 there, 10 here", "10"),
        ("-6", "minus 6", "-6"),
        ("six", "minus six", "six"),
    ],
)
def test_a_number_has_the_sign_that_words_give_it(value: str, text: str, read: str) -> None:
    assert below_zero(NUMBER, value, text, text) == read


def test_the_part_counts_before_the_task_and_texts_stay() -> None:
    task = "Yesterday minus 6, and what about 6 degrees today?"
    assert below_zero(NUMBER, "6", "what about 6 degrees today", task) == "6"
    assert below_zero(NUMBER, "6", "how does that feel", "It is minus 6.") == "-6"
    assert below_zero(Parameter(name="text"), "6", "minus 6", "minus 6") == "6"


@pytest.mark.parametrize(
    ("text", "scale"),
    [
        ("375 fahrenheit, what gas mark is that", "fahrenheit"),
        ("the recipe says gas mark 6, what is that in celsius", "gas_mark"),
        ("180°C in fahrenheit", "celsius"),
        ("180 degrees C for gas mark", "celsius"),
        ("what is 350F in celsius", "fahrenheit"),
        ("180 in celsius", ""),
        ("180 celsius or 350 fahrenheit", ""),
    ],
)
def test_a_number_is_told_in_the_scale_beside_it(text: str, scale: str) -> None:
    api = Api(id="f/k/oven", category="f", tool="k", name="oven", required=(NUMBER, SCALE))
    assert scales.told(SCALE, api, Wish(text, task=text)) == scale


def test_where_there_are_two_lists_one_is_wanted() -> None:
    into = SCALE.model_copy(update={"name": "from_scale"})
    api = Api(id="f/k/oven", category="f", tool="k", name="oven", required=(NUMBER, SCALE, into))
    assert scales.told(SCALE, api, Wish("375 fahrenheit", task="375 fahrenheit")) == ""
