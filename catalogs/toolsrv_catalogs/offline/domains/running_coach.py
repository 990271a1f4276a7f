"""Running Coach: pace, finish times and calories. Published formulas (Riegel 1981), no library."""

from __future__ import annotations

from toolsrv_catalogs.offline.endpoint import Answer, Endpoints
from toolsrv_catalogs.offline.values.number import Distance, Duration, Weight, tidy

tool = Endpoints()
_MILE_KM = 1.609344


def _clock(seconds: float) -> str:
    whole = round(seconds)
    hours, minutes, rest = whole // 3600, whole % 3600 // 60, whole % 60
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def _meant(seconds: float, distance: float) -> float:
    """Return a time as it was meant: 1:45 for a half marathon are hours and minutes.

    Nobody runs 3 km at two minutes each.
    """
    return seconds * 60 if distance >= 3 and seconds < 120 * distance else seconds


@tool.get("/pace")
def running_pace(distance: Distance, time: Duration) -> Answer:
    time = _meant(time, distance)
    return {
        "distance_km": tidy(distance, 3),
        "time": _clock(time),
        "pace_per_km": _clock(time / distance),
        "pace_per_mile": _clock(time / distance * _MILE_KM),
        "speed_kmh": tidy(distance / time * 3600, 2),
    }


@tool.get("/finish_time")
def finish_time(distance: Distance, pace: Duration) -> Answer:
    return {
        "distance_km": tidy(distance, 3),
        "pace_per_km": _clock(pace),
        "finish_time": _clock(distance * pace),
    }


@tool.get("/predict")
def predict_race(known_distance: Distance, known_time: Duration, race_distance: Distance) -> Answer:
    known_time = _meant(known_time, known_distance)
    predicted = known_time * (race_distance / known_distance) ** 1.06
    return {
        "known_distance_km": tidy(known_distance, 3),
        "known_time": _clock(known_time),
        "race_distance_km": tidy(race_distance, 3),
        "predicted_time": _clock(predicted),
    }


@tool.get("/calories")
def running_calories(distance: Distance, weight: Weight) -> Answer:
    return {
        "distance_km": tidy(distance, 3),
        "weight_kg": tidy(weight, 1),
        "calories": round(1.036 * distance * weight),
    }
