"""A day whose month or year only the other end of its range tells."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsrv_runtime.planner.reading.ranges import completed
from toolsrv_runtime.values import dates


@pytest.mark.parametrize(
    ("said", "text", "whole"),
    [
        ("the 3rd", "from the 3rd to the 19th of May 2027", "3 May 2027"),
        ("3", "moon phases, 3-9 June 2027", "3 June 2027"),
        ("2nd", "the 2nd until 28 July 2026; back before June 4th, 2029", "2 July 2026"),
        ("the 31st", "May 2027 in France, from the 1st to the 31st, how many", "31 May 2027"),
        ("the 1st", "May 2027 in France, from the 1st to the 31st, how many", "1 May 2027"),
        (
            "3rd",
            "23rd April 2026 to 1st May 2026, from the 3rd to the 9th of June 2027",
            "3 June 2027",
        ),
        ("4 March", "between 4 March and 9 April 2028", "4 March 2028"),
        ("28 December", "days from 28 December to 3 January 2027", "28 December 2026"),
        ("3 January", "from 28 December 2026 to 3 January", "3 January 2027"),
        ("June 5", "born on May 3, 1990. How old will I be on June 5?", "June 5"),
        ("October 12", "moved here in March 2019. Is October 12 a holiday?", "October 12"),
        ("the 3rd", "Berlin Marathon 2026, the moon on the 3rd", "the 3rd"),
        ("the 5th", "Mars 2020 landed; sunrise on the 5th?", "the 5th"),
        ("the 19th", "the 19th century, May 2027", "the 19th"),
        ("4 March 2025", "4 March 2025 to 9 April 2028", "4 March 2025"),
        ("Monday", "Monday to 5 May 2027", "Monday"),
        ("", "May 2027", ""),
    ],
)
def test_a_date_takes_what_it_lacks_from_the_other_end(said: str, text: str, whole: str) -> None:
    assert completed(said, text) == whole


@given(st.text(max_size=30), st.text(max_size=80))
def test_whatever_is_said_is_completed_or_stays(said: str, text: str) -> None:
    found = completed(said, f"{text} {said} to 5 May 2027")
    assert found.strip() == said.strip() or found.endswith(("2026", "2027"))


def test_a_range_without_years_may_end_in_the_next() -> None:
    text = "working days from 21 dec to 8 jan"
    assert completed("8 jan", text) == f"8 jan {dates.today().year + 1}"
    assert completed("21 dec", text) == "21 dec"
    assert completed("8 May", "from 3 March to 8 May") == "8 May"
