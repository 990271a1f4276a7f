"""Time zones by IANA name, city, country, abbreviation or offset, on zoneinfo and tzdata."""

from __future__ import annotations

import re
from datetime import timedelta, timezone, tzinfo
from typing import Annotated
from zoneinfo import ZoneInfo, available_timezones

from toolsrv_catalogs.offline.endpoint import Field, quoted
from toolsrv_catalogs.offline.values.city import find_city
from toolsrv_catalogs.offline.values.country import parse_country
from toolsrv_catalogs.offline.values.once import once
from toolsrv_registry.errors import NotFoundError

_ABBREVIATIONS = {
    "utc": "UTC", "gmt": "Etc/GMT", "z": "UTC", "zulu": "UTC",
    "est": "America/New_York", "edt": "America/New_York", "et": "America/New_York",
    "eastern": "America/New_York", "cst": "America/Chicago", "cdt": "America/Chicago",
    "ct": "America/Chicago", "central": "America/Chicago", "mst": "America/Denver",
    "mdt": "America/Denver", "mt": "America/Denver", "mountain": "America/Denver",
    "pst": "America/Los_Angeles", "pdt": "America/Los_Angeles", "pt": "America/Los_Angeles",
    "pacific": "America/Los_Angeles", "bst": "Europe/London", "wet": "Europe/Lisbon",
    "cet": "Europe/Berlin", "cest": "Europe/Berlin", "eet": "Europe/Athens",
    "eest": "Europe/Athens", "msk": "Europe/Moscow", "ist": "Asia/Kolkata",
    "jst": "Asia/Tokyo", "kst": "Asia/Seoul", "aest": "Australia/Sydney",
    "aedt": "Australia/Sydney", "nzst": "Pacific/Auckland", "sgt": "Asia/Singapore",
    "hkt": "Asia/Hong_Kong",
}  # fmt: skip
_OFFSET = re.compile(r"(?:utc|gmt)? ?([+-])([0-9]{1,2})(?::?([0-9]{2}))?")


@once
def _zones() -> dict[str, str]:
    return {name.lower(): name for name in available_timezones()}


def parse_zone(text: str) -> tzinfo:
    """Return the time zone that ``text`` names.

    Raises:
        NotFoundError: neither a zone nor a city or country with one.
    """
    plain = " ".join(text[:120].lower().replace("\u2212", "-").split())
    if match := _OFFSET.fullmatch(plain):
        offset = timedelta(hours=int(match[2]), minutes=int(match[3] or 0))
        if offset < timedelta(hours=15):
            return timezone(offset if match[1] == "+" else -offset)
    short = plain.removesuffix(" time").removesuffix(" standard").removesuffix(" daylight")
    name = (
        _ABBREVIATIONS.get(plain)
        or _ABBREVIATIONS.get(short)
        or _zones().get(plain.replace(" ", "_"))
    )
    if name is not None:
        return ZoneInfo(name)
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
    """Return the zone's IANA name, or its offset as ``UTC+02:00``."""
    return zone.key if isinstance(zone, ZoneInfo) else str(zone)


Zone = Annotated[tzinfo, Field(parse_zone)]
