"""Body Metrics: BMI, energy need, heart rate zones. Published formulas, no library.

Energy need: Mifflin-St Jeor. Heart rate: Tanaka. Ranges are the WHO's for adults.
"""

from __future__ import annotations

from typing import Annotated

from toolsrv_catalogs.offline.endpoint import Answer, Endpoints, choice
from toolsrv_catalogs.offline.values.number import Height, Weight, between, tidy

tool = Endpoints()
Age = Annotated[float, between(1, 120)]
_ACTIVITY = {"sedentary": 1.2, "light": 1.375, "moderate": 1.55, "active": 1.725}


@tool.get("/bmi")
def bmi(weight: Weight, height: Height) -> Answer:
    value = weight / (height / 100) ** 2
    levels = ((18.5, "underweight"), (25, "normal weight"), (30, "overweight"))
    return {
        "weight_kg": tidy(weight, 1),
        "height_cm": tidy(height, 1),
        "bmi": tidy(value, 1),
        "category": next((name for limit, name in levels if value < limit), "obese"),
    }


@tool.get("/ideal_weight")
def healthy_weight(height: Height) -> Answer:
    square = (height / 100) ** 2
    return {
        "height_cm": tidy(height, 1),
        "lowest_healthy_kg": tidy(18.5 * square, 1),
        "highest_healthy_kg": tidy(24.9 * square, 1),
    }


@tool.get("/calories")
def daily_calories(
    sex: Annotated[str, choice("female", "male")],
    age: Age,
    weight: Weight,
    height: Height,
    activity: Annotated[str, choice(*_ACTIVITY)] = "light",
) -> Answer:
    resting = 10 * weight + 6.25 * height - 5 * age + (5 if sex == "male" else -161)
    return {
        "sex": sex,
        "age": tidy(age),
        "resting_calories": round(resting),
        "daily_calories": round(resting * _ACTIVITY[activity]),
        "activity": activity,
    }


@tool.get("/heart_rate")
def heart_rate_zones(age: Age) -> Answer:
    highest = 208 - 0.7 * age
    zones = ((0.6, 0.7, "fat_burning"), (0.7, 0.8, "endurance"), (0.8, 0.9, "hard"))
    return {
        "age": tidy(age),
        "maximum_heart_rate": round(highest),
        **{name: f"{round(low * highest)}-{round(high * highest)}" for low, high, name in zones},
    }


@tool.get("/water")
def water_need(weight: Weight, exercise_minutes: Annotated[float, between(0, 600)] = 0) -> Answer:
    liters = 0.033 * weight + 0.012 * exercise_minutes
    return {"weight_kg": tidy(weight, 1), "liters_per_day": tidy(liters, 1)}
