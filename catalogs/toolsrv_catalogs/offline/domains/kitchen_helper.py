"""Kitchen Helper: volumes to weights, oven settings, portions. Own tables, no library.

Densities are common kitchen averages, in grams per US cup (236.588 ml).
"""

from __future__ import annotations

from typing import Annotated

from toolsrv_catalogs.offline.endpoint import (
    Answer,
    Endpoints,
    Field,
    NotFoundError,
    choice,
    quoted,
)
from toolsrv_catalogs.offline.values.number import Positive, between, tidy
from toolsrv_catalogs.offline.values.words import fold

tool = Endpoints()

_CUP_GRAMS = {
    "flour": 120, "bread flour": 120, "whole wheat flour": 113, "almond flour": 96, "sugar": 200,
    "brown sugar": 213, "powdered sugar": 113, "butter": 227, "milk": 244, "water": 237,
    "cream": 232, "yogurt": 245, "oil": 218, "olive oil": 216, "honey": 340, "maple syrup": 312,
    "rice": 185, "oats": 90, "cocoa powder": 85, "salt": 292, "baking powder": 192,
    "cornstarch": 128, "breadcrumbs": 112, "chocolate chips": 170, "raisins": 145,
    "peanut butter": 270, "almonds": 143, "walnuts": 113, "lentils": 192, "chickpeas": 200,
    "grated cheese": 100, "parmesan": 100, "coconut": 85, "cornmeal": 138,
}  # fmt: skip
_CUPS = {
    "cups": 1.0,
    "tablespoons": 1 / 16,
    "teaspoons": 1 / 48,
    "milliliters": 1 / 236.588,
    "pints": 2.0,
    "quarts": 4.0,
}


def _ingredient(text: str) -> str:
    name = fold(text).removeprefix("all purpose ").removeprefix("white ")
    for form in (name, name.removesuffix("s"), name + "s"):
        if form in _CUP_GRAMS:
            return form
    for known in sorted(_CUP_GRAMS, key=len, reverse=True):
        if f" {known} " in f" {name} ":
            return known
    raise NotFoundError(f"no ingredient {quoted(text)} in the table; try flour, sugar or butter")


@tool.get("/ingredient_weight")
def ingredient_weight(
    ingredient: Annotated[str, Field(_ingredient)],
    amount: Positive,
    unit: Annotated[str, choice(*_CUPS)] = "cups",
) -> Answer:
    grams = amount * _CUPS[unit] * _CUP_GRAMS[ingredient]
    return {
        "ingredient": ingredient,
        "amount": f"{tidy(amount)} {unit}",
        "grams": tidy(grams, 1),
        "ounces": tidy(grams / 28.349523, 2),
    }


@tool.get("/oven_temperature")
def oven_temperature(
    temperature: Annotated[float, between(0, 1000)],
    scale: Annotated[str, choice("celsius", "fahrenheit", "gas_mark")],
) -> Answer:
    celsius = {
        "celsius": temperature,
        "fahrenheit": (temperature - 32) / 1.8,
        "gas_mark": 121 + 14 * temperature,
    }[scale]
    mark = round((celsius - 121) / 14)
    return {
        "given": f"{tidy(temperature)} {scale.replace('_', ' ')}",
        "celsius": round(celsius),
        "fahrenheit": round(celsius * 1.8 + 32),
        "gas_mark": mark if 1 <= mark <= 10 else "none",
        "fan_oven_celsius": round(celsius - 20),
    }


@tool.get("/scale_recipe")
def scale_recipe(amount: Positive, servings: Positive, wanted_servings: Positive) -> Answer:
    return {
        "amount": tidy(amount),
        "servings": tidy(servings),
        "wanted_servings": tidy(wanted_servings),
        "scaled_amount": tidy(amount * wanted_servings / servings, 3),
    }


@tool.get("/split_bill")
def split_bill(
    bill: Positive,
    people: Annotated[float, between(1, 1000)] = 1,
    tip_percent: Annotated[float, between(0, 100)] = 15,
) -> Answer:
    tip = bill * tip_percent / 100
    return {
        "bill": tidy(bill, 2),
        "tip_percent": tidy(tip_percent),
        "tip": tidy(tip, 2),
        "total": tidy(bill + tip, 2),
        "per_person": tidy((bill + tip) / people, 2),
    }
