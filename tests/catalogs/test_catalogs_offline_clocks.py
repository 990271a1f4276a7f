"""Clocks: zones by name and offset, local times that a clock leaps over or shows twice."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from toolsrv_catalogs.offline.testing import OfflineClient
from toolsrv_catalogs.offline.values.city import find_city
from toolsrv_catalogs.offline.values.day import parse_moment
from toolsrv_catalogs.offline.values.zone import parse_zone
from toolsrv_registry.errors import NotFoundError, UsageError


@pytest.mark.parametrize(
    ("text", "zone", "offset"),
    [
        ("UTC", "UTC", "+00:00"),
        ("utc", "UTC", "+00:00"),
        ("GMT", "Etc/GMT", "+00:00"),
        ("Z", "UTC", "+00:00"),
        ("Coordinated Universal Time", "UTC", "+00:00"),
        ("UTC+5:30", "UTC+05:30", "+05:30"),
        ("JST", "JST", "+09:00"),
        ("Asia/Kathmandu", "Asia/Kathmandu", "+05:45"),
    ],
)
def test_the_time_of_a_zone_is_told_without_a_city(
    offline: OfflineClient, text: str, zone: str, offset: str
) -> None:
    answer = offline.answer("/world_clock/current_time", city=text)
    assert "city" not in answer
    assert answer["utc_offset"] == offset
    assert answer["time_zone"] == zone
    there = datetime.fromisoformat(f"{answer['date']}T{answer['time']}{offset}")
    assert abs(datetime.now(UTC) - there) < timedelta(minutes=3)


def test_a_city_is_still_a_city(offline: OfflineClient) -> None:
    for text, name in [("Tokyo", "Tokyo"), ("NYC", "New York City"), ("HND", "Tokyo")]:
        assert offline.answer("/world_clock/current_time", city=text)["city"] == name
    assert "Tokyo" in offline.error(404, "/world_clock/current_time", city="Japan")


def test_zones_and_cities_are_compared(offline: OfflineClient) -> None:
    answer = offline.answer(
        "/world_clock/time_difference", from_city="UTC", to_city="Tokyo", date="2026-03-05"
    )
    assert (answer["from_city"], answer["hours_difference"]) == ("UTC", 9)


@pytest.mark.parametrize("word", ["the", "day", "Day", "The", "bst"])
def test_words_are_no_codes_of_airports(word: str) -> None:
    with pytest.raises(NotFoundError):
        find_city(word)


@pytest.mark.parametrize(("code", "name"), [("THE", "Teresina"), (" DAY ", "Dayton")])
def test_codes_in_capitals_are(code: str, name: str) -> None:
    assert find_city(code).name == name


@pytest.mark.parametrize(
    ("time", "zone", "utc"),
    [
        ("2026-11-26 14:30", "EDT", "18:30"),
        ("2026-07-01 14:30", "EST", "19:30"),
        ("2026-01-10 14:30", "BST", "13:30"),
        ("2026-01-10 14:30", "CEST", "12:30"),
        ("2026-01-10 14:30", "Pacific Daylight Time", "21:30"),
        ("2026-07-01 14:30", "pacific standard time", "22:30"),
        ("2026-07-01 14:30", "AEDT", "03:30"),
        ("2026-07-01 14:30", "ET", "18:30"),
        ("2026-01-10 14:30", "Eastern Time", "19:30"),
    ],
)
def test_a_name_with_an_offset_of_its_own_keeps_it(
    offline: OfflineClient, time: str, zone: str, utc: str
) -> None:
    answer = offline.answer("/world_clock/convert_time", time=time, from_zone=zone, to_zone="UTC")
    assert answer["converted_time"].endswith(utc)


def test_a_summer_name_is_daylight_saving_and_its_standard_name_is_not() -> None:
    noon = datetime(2026, 1, 10, 12)  # noqa: DTZ001 - the zone is put in below
    for text, hours in [("EDT", 1), ("EST", 0)]:
        there = noon.replace(tzinfo=parse_zone(text))
        assert there.dst() == timedelta(hours=hours)
        assert there.tzname() == text
        assert there.astimezone(UTC).astimezone(there.tzinfo) == there


@pytest.mark.parametrize(
    ("time", "zone", "leap"),
    [
        ("2027-03-14 02:30", "New York", "from 2027-03-14 02:00 to 2027-03-14 03:00"),
        ("2027-03-28 01:59", "London", "from 2027-03-28 01:00 to 2027-03-28 02:00"),
        ("2026-10-04 02:15", "Australia/Lord_Howe", "to 2026-10-04 02:30"),
        ("2011-12-30 12:00", "Pacific/Apia", "from 2011-12-30 00:00 to 2011-12-31 00:00"),
    ],
)
def test_a_time_that_a_clock_leaps_over_is_told(
    offline: OfflineClient, time: str, zone: str, leap: str
) -> None:
    message = offline.error(
        422, "/world_clock/convert_time", time=time, from_zone=zone, to_zone="UTC"
    )
    assert "does not exist" in message
    assert leap in message


def test_a_time_that_a_clock_shows_twice_is_told_twice(offline: OfflineClient) -> None:
    path = "/world_clock/convert_time"
    answer = offline.answer(path, time="2026-11-01 01:30", from_zone="New York", to_zone="UTC")
    assert answer["converted_time"] == "2026-11-01 05:30"
    assert answer["second_converted_time"] == "2026-11-01 06:30"
    answer = offline.answer(path, time="2026-11-01 03:30", from_zone="New York", to_zone="UTC")
    assert "second_converted_time" not in answer


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-26T14:30:00+02:00",
        "2026-11-26T14:30+0200",
        "2026-11-26 14:30:00.125 +02:00",
        "2026-11-26T12:30:00Z",
        "2026-11-26T12:30:00z",
        "2026-11-26T07:30:00-05:00",
        "2026-11-26T07:30:00\u221205:00",
    ],
)
def test_an_offset_within_the_time_counts(offline: OfflineClient, text: str) -> None:
    answer = offline.answer(
        "/world_clock/convert_time", time=text, from_zone="Tokyo", to_zone="UTC"
    )
    assert answer["converted_time"] == "2026-11-26 12:30"
    assert answer["from_zone"] != "Asia/Tokyo"


@pytest.mark.parametrize("text", ["2026-11-26T14:30:00+99:00", "10:30-11:30", "14:30 +2"])
def test_what_is_no_offset_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_moment(text)
