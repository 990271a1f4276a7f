"""Airport Guide: airports by code and city, flight distances. Library: airportsdata."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated

from toolsrv_catalogs.offline.endpoint import Answer, Endpoints, Field, NotFoundError, quoted
from toolsrv_catalogs.offline.values.city import Airport, CityName, airports, distance_km
from toolsrv_catalogs.offline.values.country import countries
from toolsrv_catalogs.offline.values.number import tidy
from toolsrv_catalogs.offline.values.once import once
from toolsrv_catalogs.offline.values.words import fold
from toolsrv_registry.errors import UsageError

tool = Endpoints()
_CRUISE_KMH = 850
_GROUND_HOURS = 0.5
_NO_AIRLINES = re.compile(r"air ?base|seaplane|heli|\braf\b|army|naval|air force", re.IGNORECASE)


@once
def _by_icao() -> Mapping[str, Airport]:
    return {row["icao"]: row for row in airports().values() if row["icao"]}


def parse_airport(text: str) -> Airport:
    """Return the airport with this IATA or ICAO code.

    Raises:
        UsageError: not 3 or 4 letters.
        NotFoundError: no airport has this code.
    """
    code = text.strip().upper()
    if len(code) not in (3, 4) or not (code.isascii() and code.isalnum()):
        raise UsageError(f"{quoted(text)} is not an airport code; give 3 letters like OSL")
    row = airports().get(code) or _by_icao().get(code)
    if row is None:
        raise NotFoundError(f"no airport with the code {quoted(text)}")
    return row


AirportCode = Annotated[Airport, Field(parse_airport)]


def _country(row: Airport) -> str:
    code: str = row["country"]
    return str(countries()[code]["name"]) if code in countries() else code


def _point(row: Airport) -> tuple[float, float]:
    return (row["lat"], row["lon"])


@tool.get("/code/{code}")
def airport_by_code(code: AirportCode) -> Answer:
    return {
        "code": code["iata"],
        "airport": code["name"],
        "city": code["city"],
        "country": _country(code),
        "time_zone": code["tz"],
        "elevation_feet": tidy(code["elevation"], 0),
    }


@tool.get("/city")
def airports_in_city(city: CityName) -> Answer:
    name = fold(city.name)
    here = (city.latitude, city.longitude)
    found = [
        (distance_km(here, _point(row)), row)
        for row in airports().values()
        if row["country"] == city.country
        and abs(row["lat"] - city.latitude) < 2
        and not _NO_AIRLINES.search(row["name"])
    ]
    near = sorted(
        (
            pair
            for pair in found
            if pair[0] < 30 or (pair[0] < 120 and name in fold(pair[1]["city"]))
        ),
        key=lambda pair: ("International" not in pair[1]["name"], pair[0]),
    )
    if not near:
        raise NotFoundError(f"no airport with an IATA code near {city.name}")
    return {
        "city": city.name,
        "country": city.country_name,
        "count": len(near),
        "airports": [f"{row['iata']} {row['name']}" for _, row in near[:6]],
    }


@tool.get("/flight")
def flight_distance(from_airport: AirportCode, to_airport: AirportCode) -> Answer:
    km = distance_km(_point(from_airport), _point(to_airport))
    return {
        "from_airport": from_airport["iata"],
        "to_airport": to_airport["iata"],
        "distance_km": tidy(km, 0),
        "distance_miles": tidy(km / 1.609344, 0),
        "flight_hours": tidy(km / _CRUISE_KMH + _GROUND_HOURS, 1) if km else 0,
    }
