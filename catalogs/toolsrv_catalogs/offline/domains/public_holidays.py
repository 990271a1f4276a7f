"""Public Holidays: official days off by country and year. Library: holidays, dateutil.easter."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from datetime import timedelta
from functools import cache, lru_cache
from typing import Annotated, NamedTuple

import holidays
from dateutil.easter import easter
from holidays.utils import list_localized_countries

from toolsrv_catalogs.offline.endpoint import (
    Answer,
    Endpoints,
    NotFoundError,
    ParameterError,
    quoted,
)
from toolsrv_catalogs.offline.values.day import Date, today
from toolsrv_catalogs.offline.values.number import whole
from toolsrv_catalogs.offline.values.region import Area, AreaName, part_names
from toolsrv_catalogs.offline.values.words import Line, fold

tool = Endpoints()
Year = Annotated[int, whole(1900, 2100)]
_SPAN_DAYS = 3660
_LOCAL_DAYS, _PARTS_NAMED = 8, 16
"""Holidays of parts that a year tells, the commonest ones; parts that are named with one."""


class _Local(NamedTuple):
    """A holiday of some parts of a country, and their names."""

    name: str
    parts: tuple[str, ...]

    @property
    def where(self) -> str:
        """The parts in words."""
        more = len(self.parts) - _PARTS_NAMED
        return ", ".join(self.parts[:_PARTS_NAMED]) + (f" and {more} more" if more > 0 else "")


def _days(area: Area, year: int) -> dict[dt.date, str]:
    return _known_days(area.iso, area.part, year)


@lru_cache(maxsize=256)
def _known_days(code: str, part: str, year: int) -> dict[dt.date, str]:
    language = "en_US" if "en_US" in _languages().get(code, ()) else None
    try:
        found = holidays.country_holidays(code, subdiv=part or None, years=year, language=language)
    except NotImplementedError:
        raise NotFoundError(f"no public holidays are known here for {code}") from None
    return dict(sorted(found.items()))


@lru_cache(maxsize=64)
def _days_of_parts(code: str, year: int) -> Mapping[dt.date, _Local]:
    """Return the days off of a country's parts that are none of the whole country."""
    nationwide = _known_days(code, "", year)
    found: dict[dt.date, _Local] = {}
    for part, where in part_names(code).items():
        for day, name in _known_days(code, part, year).items():
            if day not in nationwide:
                known = found.get(day, _Local(name, ()))
                found[day] = _Local(known.name, (*known.parts, where))
    return found


def _of_parts(area: Area, year: int) -> Mapping[dt.date, _Local]:
    return {} if area.part else _days_of_parts(area.iso, year)


@cache
def _languages() -> dict[str, list[str]]:
    return list_localized_countries()


def _in_range(parameter: str, day: dt.date) -> dt.date:
    if not 1900 <= day.year <= 2100:
        raise ParameterError(parameter, f"{day} is outside the years 1900 to 2100")
    return day


@tool.get("/year")
def holidays_of_year(country: AreaName, year: Year | None = None) -> Answer:
    chosen = year or today().year
    days = _days(country, chosen)
    listed = [f"{day} {name}" for day, name in days.items()]
    answer: Answer = {
        "country": country.name,
        "year": chosen,
        "count": len(days),
        "holidays": listed[:40],
    }
    if local := _of_parts(country, chosen):
        of = len(part_names(country.iso))
        common = sorted(local, key=lambda day: (-len(local[day].parts), day))[:_LOCAL_DAYS]
        answer["in_parts_only"] = [
            f"{day} {local[day].name} ({len(local[day].parts)} of {of} parts)" for day in common
        ]
    return answer


@tool.get("/check")
def is_holiday(country: AreaName, date: Date) -> Answer:
    name = _days(country, _in_range("date", date).year).get(date)
    answer: Answer = {
        "country": country.name,
        "date": str(date),
        "is_holiday": name is not None,
        "holiday": name or "none",
        "weekday": f"{date:%A}",
    }
    if name is None and (local := _of_parts(country, date.year).get(date)):
        answer["in_parts_only"] = f"{local.name} in {local.where}"
    return answer


@tool.get("/next")
def next_holiday(country: AreaName, date: Date | None = None) -> Answer:
    start = _in_range("date", date or today())
    for year in (start.year, start.year + 1):
        for day, name in _days(country, year).items():
            if day > start:
                return {
                    "country": country.name,
                    "next_holiday": name,
                    "date": str(day),
                    "weekday": f"{day:%A}",
                    "days_until": (day - start).days,
                }
    raise NotFoundError(f"no public holiday of {country.name} after {start} is known here")


@tool.get("/find")
def find_holiday(country: AreaName, holiday: Line, year: Year | None = None) -> Answer:
    chosen = year or today().year
    wanted = _plain(holiday)
    found = [pair for pair in _days(country, chosen).items() if wanted in _plain(pair[1])]
    local = {} if found else _of_parts(country, chosen)
    found += [(day, one.name) for day, one in local.items() if wanted in _plain(one.name)]
    if not found:
        where = f"{country.name} in {chosen}"
        raise NotFoundError(f"no public holiday named {quoted(holiday)} in {where}")
    day, name = min(found, key=lambda pair: _distance(wanted, _plain(pair[1])))
    answer: Answer = {
        "country": country.name,
        "holiday": name,
        "date": str(day),
        "weekday": f"{day:%A}",
    }
    if day in local:
        answer["in_parts_only"] = local[day].where
    return answer


def _plain(name: str) -> str:
    return fold(name).replace("labour", "labor")


def _distance(wanted: str, name: str) -> tuple[bool, bool, int]:
    # "Independence Day" must not find "Juneteenth National Independence Day".
    return name != wanted, not name.startswith(wanted), len(name)


@tool.get("/working_days")
def working_days(start: Date, end: Date, country: AreaName | None = None) -> Answer:
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
        "country": country.name if country else "any (weekends only)",
        "working_days": count,
    }


def _off(day: dt.date, country: Area | None) -> bool:
    return country is not None and day in _days(country, day.year)


@tool.get("/easter/{year}")
def easter_sunday(year: Annotated[int, whole(1583, 4099)]) -> Answer:
    return {
        "year": year,
        "easter_sunday": str(easter(year)),
        "good_friday": str(easter(year) - timedelta(days=2)),
    }
