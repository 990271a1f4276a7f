"""Named days of a fixed date: read with their year, and told by it unless the date is asked for."""

from __future__ import annotations

import datetime as dt

import pytest

from toolsrv_runtime.values import kinds
from toolsrv_runtime.values.dates import resolve_holiday, with_holiday_dates

TODAY = dt.date(2026, 11, 23)


@pytest.mark.parametrize(
    ("said", "day"),
    [
        ("Christmas 2031", "2031-12-25"),
        ("christmas day, 2031", "2031-12-25"),
        ("Christmas Eve of 2030", "2030-12-24"),
        ("New Year’s Eve 2027", "2027-12-31"),
        ("Halloween in 2029", "2029-10-31"),
        ("Christmas", "Christmas"),
        ("Easter 2031", "Easter 2031"),
        ("Christmas 20311", "Christmas 20311"),
        ("Christmas 0000", "Christmas 0000"),
    ],
)
def test_a_named_day_with_a_year_is_a_date(said: str, day: str) -> None:
    assert resolve_holiday(said) == day
    assert kinds.normalise_value("date", said) == day
    assert (kinds.find_values("date", said) == [said]) is (said != day)


def test_a_task_tells_the_date_itself() -> None:
    assert (
        with_holiday_dates("Which weekday is Christmas 2031?", TODAY)
        == "Which weekday is 25 December 2031?"
    )
    assert with_holiday_dates("Is Christmas 0000 a Sunday?", TODAY) == "Is Christmas 0000 a Sunday?"
    asked = "When is Boxing Day 2030 in Ghana?"
    assert with_holiday_dates(asked, TODAY) == asked


@pytest.mark.parametrize(
    ("task", "read"),
    [
        ("how many days until Christmas?", "how many days until 25 December 2026?"),
        ("days till Halloween", "days till 31 October 2027"),
        ("weekday of Christmas Eve this year", "weekday of 24 December 2026"),
        ("Halloween next year, a Sunday?", "31 October 2027, a Sunday?"),
        ("ready for Christmas dinner", "ready for Christmas dinner"),
        ("a tree for Christmas 2031", "a tree for 25 December 2031"),
        ("Merry Christmas in Morse", "Merry Christmas in Morse"),
        ("When is sunset on New Year's Eve?", "When is sunset on 31 December 2026?"),
        ("a holiday on Bastille Day?", "a holiday on 14 July 2027?"),
        ("sunset on Guy Fawkes Night", "sunset on 5 November 2027"),
        ("When is Halloween this year?", "When is Halloween this year?"),
        ("Which date is good for Christmas?", "Which date is good for Christmas?"),
    ],
)
def test_a_named_day_without_a_year_is_the_next(task: str, read: str) -> None:
    assert with_holiday_dates(task, TODAY) == read
