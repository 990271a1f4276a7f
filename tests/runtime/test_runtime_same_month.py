"""Days of a month that was told before."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsrv_runtime.planner.reading.same_month import in_full


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            "On 4 October 2027 it begins, until the 29th of that month.",
            "On 4 October 2027 it begins, until 29 October 2027.",
        ),
        (
            "the week of 3 Sept 2027, and from the 6th of that month to 29 Oct 2027",
            "the week of 3 Sept 2027, and from 6 Sept 2027 to 29 Oct 2027",
        ),
        (
            "3 May 2027, then February 3rd, 2028: is the 11th of the same month free?",
            "3 May 2027, then February 3rd, 2028: is 11 February 2028 free?",
        ),
    ],
)
def test_a_day_of_that_month_is_told_in_full(said: str, told: str) -> None:
    assert in_full(said) == told


@pytest.mark.parametrize(
    "text",
    [
        "the 29th of that month",
        "4 October, until the 29th of that month",
        'On 4 October 2027 he wrote "until the 29th of that month"',
        "4 October 2027 and the 29th of the month after",
        "4 October 2027, 45th of that month",
    ],
)
def test_other_days_stay_as_they_are(text: str) -> None:
    assert in_full(text) == text


@given(st.text(max_size=200))
def test_no_text_breaks_it(text: str) -> None:
    in_full(f"4 October 2027 {text} the 29th of that month")
