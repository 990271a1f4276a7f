"""World Clock: local times, zones and their differences. Library: zoneinfo with tzdata."""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from toolsrv_catalogs.offline.endpoint import Answer, Endpoints
from toolsrv_catalogs.offline.values.city import City, CityName
from toolsrv_catalogs.offline.values.day import Date, Moment, now, today
from toolsrv_catalogs.offline.values.zone import Zone, zone_name

tool = Endpoints()


def _offset(moment: datetime) -> timedelta:
    return moment.utcoffset() or timedelta()


def _signed(offset: timedelta) -> str:
    minutes = round(offset.total_seconds() / 60)
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"


@tool.get("/current_time")
def current_time(city: CityName) -> Answer:
    local = now().astimezone(ZoneInfo(city.zone))
    return {
        "city": city.name,
        "time": f"{local:%H:%M}",
        "date": f"{local:%Y-%m-%d}",
        "weekday": f"{local:%A}",
        "time_zone": city.zone,
        "utc_offset": _signed(_offset(local)),
    }


@tool.get("/convert_time")
def convert_time(time: Moment, from_zone: Zone, to_zone: Zone) -> Answer:
    there = time.replace(tzinfo=from_zone).astimezone(to_zone)
    return {
        "time": f"{time:%Y-%m-%d %H:%M}",
        "from_zone": zone_name(from_zone),
        "to_zone": zone_name(to_zone),
        "converted_time": f"{there:%Y-%m-%d %H:%M}",
        "weekday": f"{there:%A}",
    }


@tool.get("/time_difference")
def time_difference(from_city: CityName, to_city: CityName, date: Date | None = None) -> Answer:
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


def _local(noon: datetime, city: City) -> timedelta:
    return _offset(noon.replace(tzinfo=ZoneInfo(city.zone)))


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
