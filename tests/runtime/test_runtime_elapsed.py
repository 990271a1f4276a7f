"""Days counted from today or up to it."""

from __future__ import annotations

import datetime as dt

import pytest

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_runtime.planner.reading import elapsed
from toolsrv_runtime.planner.reading.elapsed import TODAY
from toolsrv_runtime.planner.reading.wish import Wish

APIS = {api.id.rpartition("/")[2]: api for api in load_offline_catalog().apis}
BETWEEN, ADD = APIS["days_between_dates"], APIS["add_to_date"]


def ends(part: str, context: str = "") -> tuple[str, ...]:
    return tuple(
        elapsed.told(one, BETWEEN, Wish(part, context or part)) for one in BETWEEN.required
    )


@pytest.mark.parametrize(
    ("part", "start", "end"),
    [
        ("How many days until 1 January 2030?", TODAY, "1 January 2030"),
        ("how long till 25 December 2026 in days", TODAY, "25 December 2026"),
        ("how many working days are left until 31 December 2026", TODAY, "31 December 2026"),
        ("how far off is 3 May 2027", TODAY, "3 May 2027"),
        ("How many days have passed since 4 July 2020", "4 July 2020", TODAY),
        ("4 March 2026, how many days ago was that", "4 March 2026", TODAY),
        ("how many days until then", TODAY, ""),
        ("how many days until that day", TODAY, ""),
        ("how many days from Thanksgiving until 25 December 2026", "", ""),
        ("how many days before 25 December 2026 is Thanksgiving", "", ""),
        ("how many days from today until 25 December 2026", TODAY, "25 December 2026"),
        ("how many days from 4 July 2020 to 1 January 2030", "", ""),
        ("how many days until 1 May 2027 from 1 May 2026", "", ""),
        ("how many days are there from then until 1 May 2027", "", ""),
        ("how many days between 1 May 2027 and Easter", "", ""),
        ("which weekday is 1 May 2027", "", ""),
    ],
)
def test_one_day_alone_is_counted_from_today_or_up_to_it(part: str, start: str, end: str) -> None:
    assert ends(part) == (start, end)


def test_a_day_that_leads_up_to_the_words_counts_too() -> None:
    assert ends(
        "How many days ago was that?", "I moved here on 4 March 2026. How many days ago?"
    ) == (
        "4 March 2026",
        TODAY,
    )
    both = "My lease started 1 June 2026. How many days until 1 June 2027?"
    assert ends("How many days until 1 June 2027", both) == ("", "")


@pytest.mark.parametrize(
    ("said", "today", "ahead", "meant"),
    [
        ("3 May", dt.date(2026, 11, 25), True, "3 May 2027"),
        ("3 May", dt.date(2026, 11, 25), False, "3 May"),
        ("December 24th", dt.date(2026, 11, 25), True, "December 24th"),
        ("December 24th", dt.date(2026, 11, 25), False, "December 24th 2025"),
        ("25 November", dt.date(2026, 11, 25), True, "25 November"),
        ("3 May 2026", dt.date(2026, 11, 25), True, "3 May 2026"),
        ("29 February", dt.date(2026, 11, 25), True, "29 February"),
        ("the 3rd", dt.date(2026, 11, 25), True, "the 3rd"),
    ],
)
def test_a_day_without_a_year_is_the_one_that_comes_or_the_last_one(
    said: str, today: dt.date, ahead: bool, meant: str
) -> None:
    assert elapsed._with_year(said, today, ahead=ahead) == meant


def test_what_is_left_of_a_year_ends_with_it() -> None:
    last = dt.date(dt.datetime.now().astimezone().year, 12, 31).isoformat()
    assert ends("how many days are left this year") == (TODAY, last)
    assert ends("how many days are left of it") == (TODAY, "")


@pytest.mark.parametrize(
    ("part", "context", "date"),
    [
        ("What date is it in 90 days?", "", TODAY),
        ("what was the date forty-five days ago", "", TODAY),
        ("which day is three weeks from now", "", TODAY),
        ("in two months, please", "", TODAY),
        ("45 days before that", "", ""),
        ("what date is 90 days later", "", ""),
        ("in 90 days of rain", "", ""),
        ("in 90 days", "My visa began on 3 May 2026. What date is it in 90 days", ""),
        ("90 days from 3 May 2026", "", ""),
    ],
)
def test_a_function_counts_from_today_where_no_day_is_named(
    part: str, context: str, date: str
) -> None:
    assert elapsed.told(ADD.required[0], ADD, Wish(part, context or part)) == date


def test_no_other_function_is_told_a_day() -> None:
    for api in APIS.values():
        if len([one for one in api.required if "date" in one.name]) == 1:
            continue
        for parameter in api.parameters:
            if parameter.name not in {"start", "end", "date"}:
                assert elapsed.told(parameter, api, Wish("how many days until 1 May 2027")) == ""
