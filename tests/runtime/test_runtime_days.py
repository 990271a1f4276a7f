"""Days told by their distance from today."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsrv_runtime.values import dates, kinds

FRIDAY = dt.date(2026, 11, 20)


@pytest.mark.parametrize(
    ("said", "day"),
    [
        ("next Friday", "2026-11-27"),
        ("this Friday", "2026-11-20"),
        ("coming Friday", "2026-11-20"),
        ("last Friday", "2026-11-13"),
        ("next monday", "2026-11-23"),
        ("last Thursday", "2026-11-19"),
        ("The day after  tomorrow", "2026-11-22"),
        ("the day before yesterday", "2026-11-18"),
        ("tomorrow", "tomorrow"),
        ("Friday", "Friday"),
        ("next week", "next week"),
        ("", ""),
    ],
)
def test_a_day_is_read_as_seen_from_today(said: str, day: str) -> None:
    assert dates.resolve_day(said, FRIDAY) == day
    assert dates.is_relative(said) is (day != said or said in dates.NEAR_DAYS)


@given(st.dates(dt.date(1900, 1, 1), dt.date(2200, 1, 1)), st.integers(0, 6))
def test_next_and_last_are_a_week_around_today(today: dt.date, weekday: int) -> None:
    name = f"{dt.date(2026, 11, 16 + weekday):%A}"
    ahead = dt.date.fromisoformat(dates.resolve_day(f"next {name}", today)) - today
    back = today - dt.date.fromisoformat(dates.resolve_day(f"last {name}", today))
    assert 1 <= ahead.days <= 7
    assert 1 <= back.days <= 7


def test_such_a_day_is_found_in_a_text_and_read_by_the_clock() -> None:
    text = "When does the sun set in Oslo next Friday, and is it longer light than today?"
    assert kinds.find_values("date", text)[0] == "next Friday"
    day = dt.date.fromisoformat(kinds.normalise_value("date", "next Friday"))
    assert day.weekday() == 4
    assert 1 <= (day - dt.datetime.now().astimezone().date()).days <= 7


def test_a_clock_time_on_such_a_day_is_read_with_its_date() -> None:
    day = kinds.normalise_value("date", "next Friday")
    (said,) = kinds.find_values("time", "Call me next Friday at 5 pm, please")
    assert kinds.normalise_value("time", said) == f"{day} 17:00"
    assert kinds.normalise_value("time", "5 pm") == "5 pm"
