"""Public Holidays: official days off by country and year. Library: holidays, dateutil.easter."""

from __future__ import annotations

import datetime as dt
from datetime import timedelta
from functools import cache, lru_cache
from typing import Annotated

import holidays
from dateutil.easter import easter
from holidays.utils import list_localized_countries

from toolsrv_catalogs.offline.endpoint import (
    Answer,
    Endpoints,
    Field,
    NotFoundError,
    ParameterError,
    quoted,
)
from toolsrv_catalogs.offline.values.country import Country, parse_country
from toolsrv_catalogs.offline.values.day import Date, today
from toolsrv_catalogs.offline.values.number import whole
from toolsrv_catalogs.offline.values.words import Line, fold

tool = Endpoints()
Year = Annotated[int, whole(1900, 2100)]
_SPAN_DAYS = 3660
_NATIONS = {"england": "ENG", "scotland": "SCT", "wales": "WLS", "northern ireland": "NIR"}
"""Parts of the United Kingdom that have days of their own, with the library's codes."""


def _land(text: str) -> Country:
    """Return a country's row; of a part of the United Kingdom with its own ``name`` and ``part``."""
    row, name = parse_country(text), fold(text[:100])
    part = _NATIONS.get(name)
    return {**row, "name": name.title(), "part": part} if part else row


Land = Annotated[Country, Field(_land)]


def _days(land: Country, year: int) -> dict[dt.date, str]:
    return _known_days(land["iso"], land.get("part"), year)


@lru_cache(maxsize=256)
def _known_days(code: str, part: str | None, year: int) -> dict[dt.date, str]:
    language = "en_US" if "en_US" in _languages().get(code, ()) else None
    try:
        found = holidays.country_holidays(code, subdiv=part, years=year, language=language)
    except NotImplementedError:
        raise NotFoundError(f"no public holidays are known here for {code}") from None
    return dict(sorted(found.items()))


@cache
def _languages() -> dict[str, list[str]]:
    return list_localized_countries()


def _in_range(parameter: str, day: dt.date) -> dt.date:
    if not 1900 <= day.year <= 2100:
        raise ParameterError(parameter, f"{day} is outside the years 1900 to 2100")
    return day


@tool.get("/year")
def holidays_of_year(country: Land, year: Year | None = None) -> Answer:
    chosen = year or today().year
    days = _days(country, chosen)
    listed = [f"{day} {name}" for day, name in days.items()]
    return {
        "country": country["name"],
        "year": chosen,
        "count": len(days),
        "holidays": listed[:40],
    }


@tool.get("/check")
def is_holiday(country: Land, date: Date) -> Answer:
    name = _days(country, _in_range("date", date).year).get(date)
    return {
        "country": country["name"],
        "date": str(date),
        "is_holiday": name is not None,
        "holiday": name or "none",
        "weekday": f"{date:%A}",
    }


@tool.get("/next")
def next_holiday(country: Land, date: Date | None = None) -> Answer:
    start = _in_range("date", date or today())
    for year in (start.year, start.year + 1):
        for day, name in _days(country, year).items():
            if day > start:
                return {
                    "country": country["name"],
                    "next_holiday": name,
                    "date": str(day),
                    "weekday": f"{day:%A}",
                    "days_until": (day - start).days,
                }
    raise NotFoundError(f"no public holiday of {country['name']} after {start} is known here")


@tool.get("/find")
def find_holiday(country: Land, holiday: Line, year: Year | None = None) -> Answer:
    chosen = year or today().year
    wanted = _plain(holiday)
    found = [pair for pair in _days(country, chosen).items() if wanted in _plain(pair[1])]
    if not found:
        where = f"{country['name']} in {chosen}"
        raise NotFoundError(f"no public holiday named {quoted(holiday)} in {where}")
    day, name = min(found, key=lambda pair: _distance(wanted, _plain(pair[1])))
    return {
        "country": country["name"],
        "holiday": name,
        "date": str(day),
        "weekday": f"{day:%A}",
    }


def _plain(name: str) -> str:
    return fold(name).replace("labour", "labor")


def _distance(wanted: str, name: str) -> tuple[bool, bool, int]:
    # "Independence Day" must not find "Juneteenth National Independence Day".
    return name != wanted, not name.startswith(wanted), len(name)


@tool.get("/working_days")
def working_days(start: Date, end: Date, country: Land | None = None) -> Answer:
    _in_range("start", start)
    _in_range("end", end)
    if not 0 <= (end - start).days <= _SPAN_DAYS:
        raise ParameterError("end", "must lie 0 to 3660 days after start")
    count = 0
    for offset in range((end - start).days + 1):
        day = start + timedelta(days=offset)
        count += day.weekday() < 5 and not _off(day, country)
    return {
        "start": str(start),
        "end": str(end),
        "country": country["name"] if country else "any (weekends only)",
        "working_days": count,
    }


def _off(day: dt.date, country: Country | None) -> bool:
    return country is not None and day in _days(country, day.year)


@tool.get("/easter/{year}")
def easter_sunday(year: Annotated[int, whole(1583, 4099)]) -> Answer:
    return {
        "year": year,
        "easter_sunday": str(easter(year)),
        "good_friday": str(easter(year) - timedelta(days=2)),
    }
