"""Days that are told apart from their year."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsrv_runtime.planner.reading.yearless import with_year

TODAY = dt.date(2026, 11, 24)


@pytest.mark.parametrize(
    ("said", "dated"),
    [
        ("in Oslo in 2027 on the 21st of June?", "in Oslo in 2027 on the 21st of June 2027?"),
        ("midsummer's day 2027, the 21st of June", "midsummer's day 2027, the 21st of June 2027"),
        ("I plan 2027. Sunrise on 21 June?", "I plan 2027. Sunrise on 21 June 2027?"),
        ("In 1969, on July 20, man landed", "In 1969, on July 20 1969, man landed"),
        ("Which weekday was July 20 in 1969?", "Which weekday was July 20 1969?"),
        ("3 May, in the year 2030", "3 May 2030"),
        ("In 2027, is 1 May a Sunday?", "In 2027, is 1 May 2027 a Sunday?"),
        (
            "It's 2027: from 3 May to 4 June",
            "It's 2027: from 3 May 2027 to 4 June 2027",
        ),
    ],
)
def test_a_day_gets_the_year_that_the_text_tells(said: str, dated: str) -> None:
    assert with_year(said, TODAY) == dated


@pytest.mark.parametrize(
    "said",
    [
        "born in 1998, party on 14 May",
        "on 21 June 2027 in Oslo",
        "for 2027: costs 2030 euros on 4 May",
        "in 2027 I may 3 times go",
        "in 2027 we march 20 miles",
        'What is "In 2027 on 21 June" in capitals?',
        "May 3rd, 2027",
        "the fern on 21 June",
        "in 2025, 3 in May",
    ],
)
def test_everything_else_stays_as_it_is(said: str) -> None:
    assert with_year(said, TODAY) == said


@given(st.text(alphabet='in 2027 on the 21st of June, May 3 "', max_size=200))
def test_any_text_can_be_read(said: str) -> None:
    once = with_year(said, TODAY)
    assert with_year(once, TODAY) == once or '"' in said
