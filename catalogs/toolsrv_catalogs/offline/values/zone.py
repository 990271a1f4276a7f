"""Time zones by IANA name, city, country, abbreviation or offset, on zoneinfo and tzdata.

An abbreviation that says whether it is summer (EST, EDT) keeps its offset all year; one that does
not (ET, "eastern time") follows the clocks of its place.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo
from typing import Annotated
from zoneinfo import ZoneInfo, available_timezones

from toolsrv_catalogs.offline.endpoint import Field, quoted
from toolsrv_catalogs.offline.values.city import find_city
from toolsrv_catalogs.offline.values.country import parse_country
from toolsrv_catalogs.offline.values.once import once
from toolsrv_registry.errors import NotFoundError

_PLACES = {
    "utc": "UTC", "gmt": "Etc/GMT", "z": "UTC", "zulu": "UTC",
    "et": "America/New_York", "eastern": "America/New_York",
    "ct": "America/Chicago", "central": "America/Chicago",
    "mt": "America/Denver", "mountain": "America/Denver",
    "pt": "America/Los_Angeles", "pacific": "America/Los_Angeles",
}  # fmt: skip
_STANDARD = {
    "est": -5, "cst": -6, "mst": -7, "pst": -8, "akst": -9, "hst": -10, "ast": -4, "nst": -3.5,
    "wet": 0, "cet": 1, "eet": 2, "msk": 3, "sast": 2, "ist": 5.5, "pkt": 5, "sgt": 8, "hkt": 8,
    "jst": 9, "kst": 9, "awst": 8, "acst": 9.5, "aest": 10, "nzst": 12,
}  # fmt: skip
_SUMMER = {
    "edt": -4, "cdt": -5, "mdt": -6, "pdt": -7, "akdt": -8, "adt": -3, "ndt": -2.5,
    "bst": 1, "west": 1, "cest": 2, "eest": 3, "acdt": 10.5, "aedt": 11, "nzdt": 13,
}  # fmt: skip
_WRITTEN_OUT = {
    "eastern standard": "est", "eastern daylight": "edt", "central standard": "cst",
    "central daylight": "cdt", "mountain standard": "mst", "mountain daylight": "mdt",
    "pacific standard": "pst", "pacific daylight": "pdt", "alaska standard": "akst",
    "alaska daylight": "akdt", "hawaii standard": "hst", "atlantic standard": "ast",
    "atlantic daylight": "adt", "newfoundland standard": "nst", "newfoundland daylight": "ndt",
    "british summer": "bst", "greenwich mean": "gmt", "coordinated universal": "utc",
    "western european": "wet", "western european summer": "west",
    "central european": "cet", "central european summer": "cest",
    "eastern european": "eet", "eastern european summer": "eest", "moscow standard": "msk",
    "india standard": "ist", "indian standard": "ist", "japan standard": "jst",
    "korea standard": "kst", "singapore standard": "sgt", "south africa standard": "sast",
    "australian western standard": "awst", "australian central standard": "acst",
    "australian central daylight": "acdt", "australian eastern standard": "aest",
    "australian eastern daylight": "aedt", "new zealand standard": "nzst",
    "new zealand daylight": "nzdt",
}  # fmt: skip
_OFFSET = re.compile(r"(?:utc|gmt)? ?([+-])([0-9]{1,2})(?::?([0-9]{2}))?")


@once
def _zones() -> dict[str, str]:
    return {name.lower(): name for name in available_timezones()}


@dataclass(frozen=True)
class NamedOffset(tzinfo):
    """An abbreviation with an offset of its own; ``hours`` from UTC, ``summer`` daylight saving."""

    name: str
    hours: float
    summer: bool

    def utcoffset(self, _moment: datetime | None, /) -> timedelta:
        """Return the offset, the same at every moment."""
        return timedelta(hours=self.hours)

    def dst(self, _moment: datetime | None, /) -> timedelta:
        """Return how much of the offset is daylight saving."""
        return timedelta(hours=1 if self.summer else 0)

    def tzname(self, _moment: datetime | None, /) -> str:
        """Return the abbreviation."""
        return self.name


def named_zone(text: str) -> tzinfo | None:
    """Return the zone of an offset, an abbreviation or an IANA name, None for other text."""
    plain = " ".join(text[:120].lower().replace("\u2212", "-").split())
    if match := _OFFSET.fullmatch(plain):
        offset = timedelta(hours=int(match[2]), minutes=int(match[3] or 0))
        if offset < timedelta(hours=15):
            return timezone(offset if match[1] == "+" else -offset)
    short = plain.removesuffix(" time")
    short = _WRITTEN_OUT.get(short, short)
    for table in (_STANDARD, _SUMMER):
        if short in table:
            return NamedOffset(short.upper(), table[short], table is _SUMMER)
    name = _PLACES.get(short) or _zones().get(plain.replace(" ", "_"))
    return ZoneInfo(name) if name is not None else None


def parse_zone(text: str) -> tzinfo:
    """Return the time zone that ``text`` names.

    Raises:
        NotFoundError: neither a zone nor a city or country with one.
    """
    named = named_zone(text)
    if named is not None:
        return named
    try:
        return ZoneInfo(find_city(text).zone)
    except NotFoundError:
        pass
    try:
        country = parse_country(text)
        return ZoneInfo(find_city(country["capital"], country).zone)
    except NotFoundError:
        raise NotFoundError(
            f"no time zone or city {quoted(text)}; give a city or a name like Europe/Oslo"
        ) from None


def zone_name(zone: tzinfo) -> str:
    """Return the zone's IANA name, its abbreviation, or its offset as ``UTC+02:00``."""
    if isinstance(zone, NamedOffset):
        return zone.name
    return zone.key if isinstance(zone, ZoneInfo) else str(zone)


Zone = Annotated[tzinfo, Field(parse_zone)]
