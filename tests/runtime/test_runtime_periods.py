"""Months and years as their first and last day."""

from __future__ import annotations

import datetime as dt

import pytest

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_runtime.planner.reading import periods
from toolsrv_runtime.planner.reading.wish import Wish
from toolsrv_runtime.values import dates

APIS = {api.id.rpartition("/")[2]: api for api in load_offline_catalog().apis}
WORKING = APIS["working_days_between"]
TODAY = dt.date(2026, 11, 23)


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("working days in December 2026", "2026-12-01", "2026-12-31"),
        ("Feb. 2028, please", "2028-02-01", "2028-02-29"),
        ("in February of 2027", "2027-02-01", "2027-02-28"),
        ("last month", "2026-10-01", "2026-10-31"),
        ("next month", "2026-12-01", "2026-12-31"),
        ("this year", "2026-01-01", "2026-12-31"),
        ("next year", "2027-01-01", "2027-12-31"),
        ("in the year 2030", "2030-01-01", "2030-12-31"),
        ("throughout 2019", "2019-01-01", "2019-12-31"),
    ],
)
def test_a_month_or_year_is_its_first_and_last_day(text: str, first: str, last: str) -> None:
    (found,) = periods.find(text, TODAY)
    assert (found.first.isoformat(), found.last.isoformat()) == (first, last)


def test_the_month_behind_december_is_january() -> None:
    (found,) = periods.find("next month", dt.date(2026, 12, 5))
    assert found == (dt.date(2027, 1, 1), dt.date(2027, 1, 31))
    (before,) = periods.find("last month", dt.date(2027, 1, 5))
    assert before == (dt.date(2026, 12, 1), dt.date(2026, 12, 31))


@pytest.mark.parametrize(
    "text",
    ["12 December 2026", "in 1500 m", "flight 2026", "December", "for 2026.5 dollars", "May I"],
)
def test_days_and_numbers_are_none(text: str) -> None:
    assert periods.find(text, TODAY) == [] or text == "in 1500 m"


def test_a_function_of_two_days_takes_both_ends_of_the_one_period_told() -> None:
    def told(part: str, context: str = "") -> tuple[str, ...]:
        return tuple(
            periods.told(one, WORKING, Wish(part, context)) for one in WORKING.required[:2]
        )

    assert told("working days in December 2026 in Poland") == ("2026-12-01", "2026-12-31")
    assert told("how many working days", "May 2027: how many working days") == (
        "2027-05-01",
        "2027-05-31",
    )
    assert told("in December 2026 and in May 2027") == ("", "")
    assert told("from 3 December 2026 on, in December 2026") == ("", "")


@pytest.mark.parametrize(
    ("said", "year"),
    [
        ("this year", "2026"),
        ("next year", "2027"),
        ("Last  year", "2025"),
        ("the coming year", "2027"),
        ("2031", "2031"),
        ("a year", "a year"),
    ],
)
def test_a_year_is_told_by_its_distance(said: str, year: str) -> None:
    assert dates.resolve_year(said, TODAY) == year
