"""Road Trip: driving time, fuel and its cost. Closed formulas, no library."""

from __future__ import annotations

from typing import Annotated

from toolsrv_catalogs.offline.endpoint import Answer, Endpoints, choice
from toolsrv_catalogs.offline.values.number import Distance, between, tidy

tool = Endpoints()
Consumption = Annotated[float, between(0.1, 200)]
_MPG_FACTOR = {"mpg_us": 235.214583, "mpg_uk": 282.480936}


@tool.get("/travel_time")
def travel_time(distance: Distance, speed_kmh: Annotated[float, between(1, 50000)] = 90) -> Answer:
    minutes = round(distance / speed_kmh * 60)
    return {
        "distance_km": tidy(distance, 2),
        "speed_kmh": tidy(speed_kmh),
        "travel_time": f"{minutes // 60} hours {minutes % 60} minutes",
        "hours": tidy(distance / speed_kmh, 2),
    }


@tool.get("/fuel_cost")
def fuel_cost(
    distance: Distance,
    liters_per_100km: Consumption,
    price_per_liter: Annotated[float, between(0, 100000)] | None = None,
) -> Answer:
    liters = distance / 100 * liters_per_100km
    answer: Answer = {"distance_km": tidy(distance, 2), "liters": tidy(liters, 2)}
    if price_per_liter is not None:
        answer["fuel_cost"] = tidy(liters * price_per_liter, 2)
    return answer


@tool.get("/economy")
def fuel_economy(
    value: Annotated[float, between(0.1, 1000)],
    unit: Annotated[str, choice("mpg_us", "mpg_uk", "l_per_100km")],
) -> Answer:
    liters = value if unit == "l_per_100km" else _MPG_FACTOR[unit] / value
    return {
        "given": f"{tidy(value)} {unit}",
        "liters_per_100km": tidy(liters, 2),
        "mpg_us": tidy(_MPG_FACTOR["mpg_us"] / liters, 2),
        "mpg_uk": tidy(_MPG_FACTOR["mpg_uk"] / liters, 2),
    }


@tool.get("/average_speed")
def average_speed(distance: Distance, hours: Annotated[float, between(0.001, 100000)]) -> Answer:
    speed = distance / hours
    return {
        "distance_km": tidy(distance, 2),
        "hours": tidy(hours, 3),
        "average_kmh": tidy(speed, 2),
        "average_mph": tidy(speed / 1.609344, 2),
    }


@tool.get("/emissions")
def car_emissions(
    distance: Distance,
    liters_per_100km: Consumption = 7,
    fuel: Annotated[str, choice("petrol", "diesel")] = "petrol",
) -> Answer:
    liters = distance / 100 * liters_per_100km
    return {
        "distance_km": tidy(distance, 2),
        "fuel": fuel,
        "co2_kg": tidy(liters * {"petrol": 2.31, "diesel": 2.68}[fuel], 2),
    }
