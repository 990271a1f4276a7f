"""Values as people write them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsrv_catalogs.offline.domains.color_lab import parse_color
from toolsrv_catalogs.offline.values.city import bearing, distance_km, find_city
from toolsrv_catalogs.offline.values.country import parse_country
from toolsrv_catalogs.offline.values.day import (
    parse_date,
    parse_moment,
    parse_time,
    today,
)
from toolsrv_catalogs.offline.values.locale_names import parse_currency, parse_language
from toolsrv_catalogs.offline.values.number import parse_number, parse_numbers, tidy
from toolsrv_catalogs.offline.values.words import fold, items
from toolsrv_catalogs.offline.values.zone import parse_zone, zone_name
from toolsrv_registry.errors import NotFoundError, UsageError

_MARCH = date(2026, 3, 5)


@pytest.mark.parametrize(
    "text",
    [
        "2026-03-05",
        "2026/3/5",
        "2026-03-05T10:00:00Z",
        "March 5, 2026",
        "Mar 5 2026",
        "march 5th 2026",
        "5 March 2026",
        "5th of March, 2026",
        "the 5th of March 2026",
        "Thursday, March 5, 2026",
        "Thu 5 Mar. 2026",
    ],
)
def test_dates_are_read_in_common_forms(text: str) -> None:
    assert parse_date(text) == _MARCH


@pytest.mark.parametrize(
    "text", ["", "soon", "03/05/2026", "2026-02-30", "March 32, 2026", "Marchember 5", "0001-01-01"]
)
def test_other_dates_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_date(text)


def test_a_date_without_a_year_lies_in_this_one() -> None:
    year = today().year
    assert parse_date("24 December") == date(year, 12, 24)


@given(st.dates(date(1000, 1, 1), date(2999, 12, 31)))
def test_every_written_date_reads_back(day: date) -> None:
    assert parse_date(day.isoformat()) == day
    month = "January February March April May June July August September October November December"
    name = month.split()[day.month - 1]
    assert parse_date(f"{name} {day.day}, {day.year:04d}") == day
    assert parse_date(f"{day.day} {name} {day.year:04d}") == day


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("14:30", time(14, 30)),
        ("2:30 pm", time(14, 30)),
        ("2.30PM", time(14, 30)),
        ("2pm", time(14)),
        ("12 am", time(0)),
        ("noon", time(12)),
        ("9", time(9)),
    ],
)
def test_times_of_day_are_read(text: str, expected: time) -> None:
    assert parse_time(text) == expected


@pytest.mark.parametrize("text", ["25:00", "13 pm", "0 pm", "10:75", "later", ""])
def test_other_times_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_time(text)


@pytest.mark.parametrize(
    "text", ["2026-03-05 09:00", "2026-03-05T09:00", "March 5, 2026 at 9am", "5 March 2026, 9:00"]
)
def test_moments_combine_both(text: str) -> None:
    assert parse_moment(text) == datetime(2026, 3, 5, 9)  # noqa: DTZ001 - local by contract


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1,200", 1200),
        ("1 200.5", 1200.5),
        ("1'000'000", 1e6),
        ("3,5", 3.5),
        ("-.5", -0.5),
        ("$1,200", 1200),
        ("12%", 12),
        ("1e6", 1e6),
        ("\u22124", -4),
    ],
)
def test_numbers_are_read_as_written(text: str, value: float) -> None:
    assert parse_number(text) == value


@pytest.mark.parametrize("text", ["", "nan", "inf", "1e99", "twelve", "1,2,3", "9" * 99, "٣", "-"])
def test_other_numbers_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_number(text)


@given(st.integers(-(10**15), 10**15))
def test_thousands_separators_change_nothing(number: int) -> None:
    assert parse_number(f"{number:,}") == number
    assert parse_number(str(number)) == number
    assert tidy(float(number)) == number


def test_lists_of_numbers_take_commas_spaces_and_words() -> None:
    assert parse_numbers("4, 8 15;16 and 23") == [4, 8, 15, 16, 23]
    with pytest.raises(UsageError):
        parse_numbers(" , ")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Norway", "NO"),
        ("no", "NO"),
        ("NOR", "NO"),
        ("UK", "GB"),
        ("england", "GB"),
        ("U.S.A.", "US"),
        ("the United States", "US"),
        ("The Netherlands", "NL"),
        ("Côte d'Ivoire", "CI"),
        ("South Korea", "KR"),
        ("Czech Republic", "CZ"),
        ("Türkiye", "TR"),
    ],
)
def test_countries_go_by_name_code_and_alias(text: str, code: str) -> None:
    assert parse_country(text)["iso"] == code


@pytest.mark.parametrize(
    ("text", "name", "country"),
    [
        ("oslo", "Oslo", "NO"),
        ("SAO PAULO", "São Paulo", "BR"),
        ("new york", "New York City", "US"),
        ("Paris", "Paris", "FR"),
        ("Paris, Texas", "Paris", "US"),
        ("Paris, TX", "Paris", "US"),
        ("Tbilisi, Georgia", "Tbilisi", "GE"),
        ("Atlanta, Georgia", "Atlanta", "US"),
        ("Toronto, CA", "Toronto", "CA"),
        ("Munchen", "Munich", "DE"),
        ("Bombay", "Mumbai", "IN"),
        ("Quebec City", "Québec", "CA"),
        ("St Louis", "St. Louis", "US"),
        ("WAW", "Warsaw", "PL"),
        ("KEF", "Reykjavík", "IS"),
        ("CDG", "Paris", "FR"),
        ("HND", "Tokyo", "JP"),
        ("Waw", "Waw", "MM"),
        ("FRA", "Frankfurt am Main", "DE"),
    ],
)
def test_the_most_populous_city_of_a_name_wins(text: str, name: str, country: str) -> None:
    city = find_city(text)
    assert (city.name, city.country) == (name, country)


def test_a_country_narrows_the_search() -> None:
    assert find_city("Birmingham", parse_country("US")).country == "US"
    with pytest.raises(NotFoundError):
        find_city("Oslo", parse_country("Japan"))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Europe/Oslo", "Europe/Oslo"),
        ("europe/oslo", "Europe/Oslo"),
        ("CET", "CET"),
        ("Tokyo", "Asia/Tokyo"),
        ("Norway", "Europe/Oslo"),
        ("New York", "America/New_York"),
        ("UTC+5:30", "UTC+05:30"),
        ("GMT-3", "UTC-03:00"),
    ],
)
def test_time_zones_go_by_many_names(text: str, name: str) -> None:
    assert zone_name(parse_zone(text)) == name


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("EUR", "EUR"),
        ("euros", "EUR"),
        ("$", "USD"),
        ("Swedish krona", "SEK"),
        ("norwegian kroner", "NOK"),
        ("pounds", "GBP"),
        ("baht", "THB"),
        ("Shekels", "ILS"),
        ("quetzal", "GTQ"),
        ("kronor", "SEK"),
    ],
)
def test_currencies_go_by_code_name_and_symbol(text: str, code: str) -> None:
    assert parse_currency(text) == code


@pytest.mark.parametrize("text", ["krone", "dirham", "dinars"])
def test_units_of_several_currencies_name_none(text: str) -> None:
    with pytest.raises(NotFoundError):
        parse_currency(text)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("navy blue", "#000080"),
        ("dark red", "#8b0000"),
        ("Teal green", "#008080"),
        ("#0ff", "#00ffff"),
    ],
)
def test_colours_go_by_name_shade_and_code(text: str, code: str) -> None:
    assert parse_color(text).hex == code


@pytest.mark.parametrize(("text", "code"), [("French", "fr"), ("de", "de"), ("norwegian", "nb")])
def test_languages_go_by_name_and_code(text: str, code: str) -> None:
    assert parse_language(text).language == code


_FINDERS: list[Callable[[str], Any]] = [
    parse_country,
    find_city,
    parse_zone,
    parse_currency,
    parse_language,
    parse_color,
]


@pytest.mark.parametrize("find", _FINDERS)
def test_names_of_nothing_are_not_found(find: Callable[[str], Any]) -> None:
    with pytest.raises(NotFoundError):
        find("Xyzzyville")


@given(st.text(max_size=60))
def test_folding_is_idempotent(text: str) -> None:
    assert fold(fold(text)) == fold(text)


_points = st.tuples(st.floats(-90, 90), st.floats(-180, 180))


@given(_points, _points)
def test_distances_are_symmetric_and_bounded(
    a: tuple[float, float], b: tuple[float, float]
) -> None:
    km = distance_km(a, b)
    assert 0 <= km <= 20_016
    assert km == pytest.approx(distance_km(b, a), abs=1e-6)
    assert 0 <= bearing(a, b) <= 360


@pytest.mark.parametrize(
    ("text", "listed"),
    [
        ("tea", ["tea"]),
        ("salt and pepper", ["salt and pepper"]),
        ("tea, coffee", ["tea", "coffee"]),
        ("tea, coffee and milk", ["tea", "coffee", "milk"]),
        ("tea; coffee; or milk", ["tea", "coffee", "milk"]),
        ("tea, coffee, and mac and cheese", ["tea", "coffee", "mac and cheese"]),
        (" , tea,, Anderson and  Or ,", ["tea", "Anderson", "Or"]),
        ("", []),
    ],
)
def test_a_list_ends_with_and(text: str, listed: list[str]) -> None:
    assert items(text) == listed
