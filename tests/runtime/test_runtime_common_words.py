"""Words that are no proper name, though a town may have it."""

from __future__ import annotations

import pytest

from toolsrv_registry.api import Api, Parameter
from toolsrv_runtime.planner.reading.common import is_common

CITY = Parameter(name="city", default="Tokyo")
CLOCK = Api(
    id="Location/clock/current_time",
    category="Location",
    tool="clock",
    name="current_time",
    description="Get the local time, date and weekday in a city.",
    url="https://clock.example/time",
    required=(CITY,),
)


@pytest.mark.parametrize("said", ["What", "am", "date", "time", "in time", "city"])
def test_a_word_of_every_sentence_or_of_the_api_itself_names_no_place(said: str) -> None:
    assert is_common(said, CITY, CLOCK)


@pytest.mark.parametrize(
    "said", ["Date", "paris", "Paris", "Of Town", "IT", "AM", "today's", "date 7", "", "San Juan"]
)
def test_a_capitalised_or_a_foreign_word_may_name_one(said: str) -> None:
    assert not is_common(said, CITY, CLOCK)


def test_only_a_parameter_whose_example_is_a_name_takes_names() -> None:
    word = Parameter(name="word", default="time")
    described = Parameter(name="place", description="Where, e.g. Oslo or Bergen")
    listed = Parameter(name="unit", default="Day", enum=("Day", "time"))
    assert not is_common("time", word, CLOCK)
    assert is_common("time", described, CLOCK)
    assert not is_common("time", listed, CLOCK)
