"""Unit Converter: any amount between units of one kind. Library: pint.

Unit text never reaches pint's expression parser: only names of a vetted form are looked up.
"""

from __future__ import annotations

import re
from typing import Annotated

import pint
from pint.facets.plain import PlainUnit

from toolsrv_catalogs.offline.endpoint import (
    Answer,
    Endpoints,
    Field,
    NotFoundError,
    ParameterError,
    choice,
    quoted,
)
from toolsrv_catalogs.offline.values.number import Number, significant, tidy
from toolsrv_catalogs.offline.values.once import once
from toolsrv_registry.errors import UsageError

tool = Endpoints()
_NAME = re.compile(r"[a-zA-Zµμ°Ωå_ ]{1,40}")
_COMPOUND = re.compile(r"(.+?)(?: per |/)(.+)")
_ALIASES = {
    "c": "degC", "celsius": "degC", "°c": "degC", "f": "degF", "fahrenheit": "degF", "°f": "degF",
    "centigrade": "degC", "k": "kelvin", "mph": "mile/hour", "kmh": "kilometer/hour",
    "kph": "kilometer/hour", "kmph": "kilometer/hour", "km/h": "kilometer/hour", "knots": "knot", "kn": "knot",
    "lbs": "pound", "stones": "stone", "feet": "foot", "inches": "inch", "cal": "calorie",
    "kcal": "kilocalorie", "sqm": "meter**2", "sqft": "foot**2", "acres": "acre",
    "tbsp": "tablespoon", "tsp": "teaspoon", "gal": "gallon", "oz": "ounce", "fl oz": "fluid_ounce",
    "metric ton": "metric_ton", "tonnes": "metric_ton", "tonne": "metric_ton", "tons": "short_ton",
    "ton": "short_ton", "nautical miles": "nautical_mile", "mb": "megabyte", "gb": "gigabyte",
    "tb": "terabyte", "kb": "kilobyte", "min": "minute", "hr": "hour", "hrs": "hour",
    "l": "liter", "ml": "milliliter", "m": "meter", "g": "gram", "s": "second", "h": "hour",
    "light years": "light_year", "kilo": "kilogram", "kilos": "kilogram", "kgs": "kilogram",
    "kms": "kilometer", "quarts": "quart", "fluid ounce": "fluid_ounce", "horsepower": "horsepower", "hp": "horsepower", "in": "inch",
}  # fmt: skip


@once
def _registry() -> pint.UnitRegistry[float]:
    return pint.UnitRegistry(cache_folder=None, autoconvert_offset_to_baseunit=True)


def _unit(name: str) -> PlainUnit:
    unit: PlainUnit = _registry().Unit(name)
    return unit


def parse_unit(text: str) -> PlainUnit:
    """Return the unit that ``text`` names: ``miles``, ``km/h``, ``square feet``, ``kg``.

    Raises:
        UsageError: not of the form of a unit's name.
        NotFoundError: no such unit.
    """
    plain = " ".join(text.split())[:60]
    alias = _ALIASES.get(plain.lower())
    if alias is not None:
        return _unit(alias)
    if match := _COMPOUND.fullmatch(plain):
        ratio: PlainUnit = parse_unit(match[1]) / parse_unit(match[2])
        return ratio
    power = re.fullmatch(r"(square|sq|cubic|cu)\.? (.+)|(.+?)(?:\^|\*\*)?([23²³])", plain)
    if power is not None:
        exponent = 2 if power[1] in ("square", "sq") or power[4] in ("2", "²") else 3
        return parse_unit(power[2] or power[3]) ** exponent
    if not _NAME.fullmatch(plain):
        raise UsageError(f"{quoted(text)} is not a unit; write it like km, miles or square feet")
    return _look_up(plain)


def _look_up(plain: str) -> PlainUnit:
    name = plain.replace(" ", "_")
    for form in dict.fromkeys((name, name.lower(), name.lower().removesuffix("s"))):
        try:
            return _unit(form)
        except (pint.PintError, ValueError, TypeError, AttributeError, KeyError):
            continue
    raise NotFoundError(f"no unit {quoted(plain)} is known here")


Unit = Annotated[PlainUnit, Field(parse_unit)]


def _label(unit: PlainUnit) -> str:
    return f"{unit:P}".replace("_", " ") or "dimensionless"


@tool.get("/convert")
def convert_units(amount: Number, from_unit: Unit, to_unit: Unit) -> Answer:
    try:
        result = _registry().Quantity(amount, from_unit).to(to_unit).magnitude
    except (pint.PintError, ArithmeticError, ValueError):
        raise ParameterError(
            "to_unit", f"{_label(from_unit)} cannot be converted to {_label(to_unit)}"
        ) from None
    return {
        "amount": tidy(amount, 12),
        "from_unit": _label(from_unit),
        "to_unit": _label(to_unit),
        "result": significant(float(result)),
    }


_SCALES = ("celsius", "fahrenheit", "kelvin")
Scale = Annotated[str, choice(*_SCALES)]
_ABSOLUTE_ZERO = {"celsius": -273.15, "fahrenheit": -459.67, "kelvin": 0.0}


@tool.get("/temperature")
def convert_temperature(temperature: Number, from_scale: Scale, to_scale: Scale) -> Answer:
    if temperature < _ABSOLUTE_ZERO[from_scale]:
        raise ParameterError("temperature", "lies below absolute zero")
    source, target = (_registry().Unit(_ALIASES.get(s, s)) for s in (from_scale, to_scale))
    result = _registry().Quantity(temperature, source).to(target).magnitude
    return {
        "temperature": tidy(temperature),
        "from_scale": from_scale,
        "to_scale": to_scale,
        "result": tidy(float(result), 2),
    }


@tool.get("/describe")
def describe_unit(unit: Unit) -> Answer:
    try:
        base = _registry().Quantity(1.0, unit).to_base_units()
    except (pint.PintError, ArithmeticError, ValueError):
        raise ParameterError("unit", f"{_label(unit)} has no value in SI units") from None
    return {
        "unit": _label(unit),
        "symbol": f"{unit:~P}",
        "measures": str(unit.dimensionality).replace("[", "").replace("]", ""),
        "si_value": significant(float(base.magnitude)),
        "si_unit": _label(base.units),
    }
