"""Sun and Moon: rise, set, day length, phase. Library: astral."""

from __future__ import annotations

import datetime as dt
from datetime import datetime
from zoneinfo import ZoneInfo

from astral import LocationInfo, SunDirection, moon
from astral.sun import elevation, golden_hour, noon, sunrise, sunset

from toolsrv_catalogs.offline.endpoint import Answer, Endpoints
from toolsrv_catalogs.offline.values.city import City, CityName
from toolsrv_catalogs.offline.values.day import Date, now
from toolsrv_catalogs.offline.values.moon import FULL, NEW, next_phase
from toolsrv_catalogs.offline.values.number import tidy

tool = Endpoints()
_PHASES = (
    "new moon", "waxing crescent", "first quarter", "waxing gibbous",
    "full moon", "waning gibbous", "last quarter", "waning crescent",
)  # fmt: skip
_CYCLE = 28.0  # astral counts a cycle as 28


def _place(city: City) -> LocationInfo:
    return LocationInfo(city.name, "", city.zone, city.latitude, city.longitude)


def _day(city: City, date: dt.date | None) -> dt.date:
    return date or now().astimezone(ZoneInfo(city.zone)).date()


def _rise_and_set(city: City, day: dt.date) -> tuple[datetime, datetime] | str:
    """Return both times, or in words why there are none (polar day and night)."""
    place = _place(city)
    zone = ZoneInfo(city.zone)
    try:
        up = sunrise(place.observer, day, tzinfo=zone)
        down = sunset(place.observer, day, tzinfo=zone)
    except ValueError:
        high = elevation(place.observer, noon(place.observer, day)) > 0
        return "the sun does not set" if high else "the sun does not rise"
    return up, down


@tool.get("/sunrise_sunset")
def sunrise_sunset(city: CityName, date: Date | None = None) -> Answer:
    day = _day(city, date)
    times = _rise_and_set(city, day)
    if isinstance(times, str):
        return {
            "city": city.name,
            "date": str(day),
            "sunrise": "none",
            "sunset": "none",
            "note": times,
        }
    return {
        "city": city.name,
        "date": str(day),
        "sunrise": f"{times[0]:%H:%M}",
        "sunset": f"{times[1]:%H:%M}",
        "time_zone": city.zone,
    }


@tool.get("/day_length")
def day_length(city: CityName, date: Date | None = None) -> Answer:
    day = _day(city, date)
    times = _rise_and_set(city, day)
    if isinstance(times, str):
        minutes = 24 * 60 if "set" in times else 0
    else:
        minutes = round((times[1] - times[0]).total_seconds() / 60) % (24 * 60)
    return {
        "city": city.name,
        "date": str(day),
        "day_length": f"{minutes // 60} hours {minutes % 60} minutes",
        "minutes_of_daylight": minutes,
    }


@tool.get("/golden_hour")
def golden_hours(city: CityName, date: Date | None = None) -> Answer:
    day = _day(city, date)
    result: Answer = {"city": city.name, "date": str(day)}
    for word, direction in (("morning", SunDirection.RISING), ("evening", SunDirection.SETTING)):
        try:
            start, end = golden_hour(
                _place(city).observer, day, direction, tzinfo=ZoneInfo(city.zone)
            )
            result[f"{word}_golden_hour"] = f"{start:%H:%M} to {end:%H:%M}"
        except ValueError:
            result[f"{word}_golden_hour"] = "none"
    return result


@tool.get("/moon_phase")
def moon_phase(date: Date | None = None) -> Answer:
    day = date or now().date()
    age = moon.phase(day)
    name = _PHASES[int(age / _CYCLE * 8 + 0.5) % 8]
    return {
        "date": str(day),
        "moon_phase": name,
        "moon_age_of_28": tidy(age, 1),
        "next_new_moon": str(next_phase(day, NEW)),
        "next_full_moon": str(next_phase(day, FULL)),
    }
