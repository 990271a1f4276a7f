"""Weather Formulas: how air feels. Published formulas, no library.

Wind chill: Environment Canada/NWS 2001. Heat index: NWS regression (Rothfusz). Dew point: Magnus.
"""

from __future__ import annotations

from math import log, sqrt
from typing import Annotated

from toolsrv_catalogs.offline.endpoint import Answer, Endpoints
from toolsrv_catalogs.offline.values.number import between, tidy

tool = Endpoints()
Celsius = Annotated[float, between(-100, 70)]
Kmh = Annotated[float, between(0, 500)]
Humidity = Annotated[float, between(0, 100)]

_BEAUFORT = (
    (1, "calm"), (6, "light air"), (12, "light breeze"), (20, "gentle breeze"),
    (29, "moderate breeze"), (39, "fresh breeze"), (50, "strong breeze"), (62, "near gale"),
    (75, "gale"), (89, "strong gale"), (103, "storm"), (118, "violent storm"),
)  # fmt: skip


@tool.get("/wind_chill")
def wind_chill(temperature_c: Celsius, wind_kmh: Kmh) -> Answer:
    feels = temperature_c
    if temperature_c <= 10 and wind_kmh >= 4.8:
        power = wind_kmh**0.16
        feels = 13.12 + 0.6215 * temperature_c - 11.37 * power + 0.3965 * temperature_c * power
    return {
        "temperature_c": tidy(temperature_c),
        "wind_kmh": tidy(wind_kmh),
        "feels_like_c": tidy(feels, 1),
        "feels_like_f": _fahrenheit(feels),
    }


@tool.get("/heat_index")
def heat_index(temperature_c: Celsius, humidity: Humidity) -> Answer:
    t = temperature_c * 1.8 + 32
    feels = 0.5 * (t + 61 + (t - 68) * 1.2 + humidity * 0.094)
    if (feels + t) / 2 >= 80:
        feels = _rothfusz(t, humidity)
    celsius = (feels - 32) / 1.8 if temperature_c >= 20 else temperature_c
    return {
        "temperature_c": tidy(temperature_c),
        "humidity": tidy(humidity),
        "feels_like_c": tidy(celsius, 1),
        "feels_like_f": _fahrenheit(celsius),
    }


def _rothfusz(t: float, r: float) -> float:
    feels = (
        -42.379 + 2.04901523 * t + 10.14333127 * r - 0.22475541 * t * r - 6.83783e-3 * t * t
        - 5.481717e-2 * r * r + 1.22874e-3 * t * t * r + 8.5282e-4 * t * r * r
        - 1.99e-6 * t * t * r * r
    )  # fmt: skip
    if r < 13 and 80 <= t <= 112:
        feels -= (13 - r) / 4 * sqrt((17 - abs(t - 95)) / 17)
    elif r > 85 and 80 <= t <= 87:
        feels += (r - 85) / 10 * (87 - t) / 5
    return feels


@tool.get("/dew_point")
def dew_point(temperature_c: Celsius, humidity: Annotated[float, between(1, 100)]) -> Answer:
    gamma = log(humidity / 100) + 17.625 * temperature_c / (243.04 + temperature_c)
    point = 243.04 * gamma / (17.625 - gamma)
    return {
        "temperature_c": tidy(temperature_c),
        "humidity": tidy(humidity),
        "dew_point_c": tidy(point, 1),
        "dew_point_f": _fahrenheit(point),
    }


def _fahrenheit(celsius: float) -> float | int:
    return tidy(celsius * 1.8 + 32, 1)


@tool.get("/beaufort")
def beaufort(wind_kmh: Kmh) -> Answer:
    force = next((i for i, (limit, _) in enumerate(_BEAUFORT) if wind_kmh < limit), 12)
    name = _BEAUFORT[force][1] if force < 12 else "hurricane force"
    return {"wind_kmh": tidy(wind_kmh), "beaufort_force": force, "wind_name": name}
