"""World Clock: local times, zones and their differences. Library: zoneinfo with tzdata."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Annotated
from zoneinfo import ZoneInfo

from toolsrv_catalogs.offline.endpoint import Answer, Endpoints, Field
from toolsrv_catalogs.offline.values.city import find_city
from toolsrv_catalogs.offline.values.day import Date, Moment, now, today
from toolsrv_catalogs.offline.values.zone import Zone, named_zone, zone_name
from toolsrv_registry.errors import UsageError

tool = Endpoints()


@dataclass(frozen=True, slots=True)
class Clock:
    """A place with a clock: ``city`` is "" where a zone was given instead (UTC, EST, UTC+2)."""

    city: str
    zone: tzinfo

    @property
    def name(self) -> str:
        """The city, or the zone."""
        return self.city or zone_name(self.zone)


def parse_clock(text: str) -> Clock:
    """Return the clock of a city or of a time zone.

    Raises:
        NotFoundError: neither a zone nor a city of 15,000 people or more.
    """
    zone = (
        None if text.strip().isalpha() and len(text.strip()) > _ABBREVIATION else named_zone(text)
    )
    if zone is not None:
        return Clock("", zone)
    city = find_city(text)
    return Clock(city.name, ZoneInfo(city.zone))


ClockName = Annotated[Clock, Field(parse_clock)]

_MINUTE = timedelta(minutes=1)
_ABBREVIATION = 4
"""Letters; longer words (Japan, Central) are names of places as well as of zones."""


def _offset(moment: datetime) -> timedelta:
    return moment.utcoffset() or timedelta()


def _signed(offset: timedelta) -> str:
    minutes = round(offset.total_seconds() / 60)
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"


@tool.get("/current_time")
def current_time(city: ClockName) -> Answer:
    local = now().astimezone(city.zone)
    return {
        **({"city": city.city} if city.city else {}),
        "time": f"{local:%H:%M}",
        "date": f"{local:%Y-%m-%d}",
        "weekday": f"{local:%A}",
        "time_zone": zone_name(city.zone),
        "utc_offset": _signed(_offset(local)),
    }


@tool.get("/convert_time")
def convert_time(time: Moment, from_zone: Zone, to_zone: Zone) -> Answer:
    zone = time.tzinfo or from_zone  # an offset within the time is the nearer word
    here = time.replace(tzinfo=zone)
    _check_exists(here)
    there = here.astimezone(to_zone)
    again = here.replace(fold=1).astimezone(to_zone)
    twice = {} if there == again else {"second_converted_time": f"{again:%Y-%m-%d %H:%M}"}
    return {
        "time": f"{time:%Y-%m-%d %H:%M}",
        "from_zone": zone_name(zone),
        "to_zone": zone_name(to_zone),
        "converted_time": f"{there:%Y-%m-%d %H:%M}",
        "weekday": f"{there:%A}",
        **twice,
    }


def _check_exists(moment: datetime) -> None:
    """Raise UsageError for a local time that a clock leaps over."""
    if _real(moment) == moment:
        return
    gap = moment
    while _real(gap - _MINUTE) != gap - _MINUTE:
        gap -= _MINUTE
    raise UsageError(
        f"{moment:%Y-%m-%d %H:%M} does not exist in {zone_name(moment.tzinfo or UTC)}: "
        f"clocks there leap from {gap:%Y-%m-%d %H:%M} to {_real(gap):%Y-%m-%d %H:%M}"
    )


def _real(moment: datetime) -> datetime:
    """Return the local time that a clock shows at a moment; another one within a gap."""
    return moment.astimezone(UTC).astimezone(moment.tzinfo)


@tool.get("/time_difference")
def time_difference(from_city: ClockName, to_city: ClockName, date: Date | None = None) -> Answer:
    noon = datetime.combine(date or today(), datetime.min.time().replace(hour=12))
    gap = _local(noon, to_city) - _local(noon, from_city)
    hours = gap.total_seconds() / 3600
    if hours == 0:
        summary = f"{to_city.name} and {from_city.name} have the same time"
    else:
        side = "ahead of" if hours > 0 else "behind"
        summary = f"{to_city.name} is {abs(hours):g} hours {side} {from_city.name}"
    return {
        "from_city": from_city.name,
        "to_city": to_city.name,
        "hours_difference": round(hours, 2),
        "summary": summary,
    }


def _local(noon: datetime, city: Clock) -> timedelta:
    return _offset(noon.replace(tzinfo=city.zone))


@tool.get("/zone")
def zone_details(zone: Zone, date: Date | None = None) -> Answer:
    noon = datetime.combine(date or today(), datetime.min.time().replace(hour=12), tzinfo=zone)
    return {
        "zone": zone_name(zone),
        "date": f"{noon:%Y-%m-%d}",
        "abbreviation": noon.tzname(),
        "utc_offset": _signed(_offset(noon)),
        "daylight_saving": bool(noon.dst()),
    }
