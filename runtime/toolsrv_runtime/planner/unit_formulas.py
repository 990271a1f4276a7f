"""What a converter of units or temperatures works out, as an expression. Pure.

Its document says no factor: that is pint's, to the last digit that a person would want.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from toolsrv_registry.api import Api
from toolsrv_runtime.planner import operands
from toolsrv_runtime.planner.reading.measures import converted, unit_written
from toolsrv_runtime.values.facts import words

_CONVERTS = re.compile(r"\bconvert\b.*\b(?:units?|temperatures?)\b")
_NOT = re.compile(r"\b(?:file|image|currenc\w*|time zones?|number bases?|text)\b")
_AMOUNT = r"amount|value|quantity|number|temperature|degrees"
_FROM, _TO = r"(?:from|source)(?: unit| scale)?", r"(?:to|target)(?: unit| scale)?"
_SHAPES = (_AMOUNT, _FROM, _TO)
_SCALES = {
    ("degree_Celsius", "degree_Fahrenheit"): "{} * 9 / 5 + 32",
    ("degree_Fahrenheit", "degree_Celsius"): "({} - 32) * 5 / 9",
    ("degree_Celsius", "kelvin"): "{} + 273.15",
    ("kelvin", "degree_Celsius"): "{} - 273.15",
    ("degree_Fahrenheit", "kelvin"): "({} - 32) * 5 / 9 + 273.15",
    ("kelvin", "degree_Fahrenheit"): "({} - 273.15) * 9 / 5 + 32",
}
_EXACT = 1_000_000
"""So much of a unit is converted, as a rounded answer for one of it would tell too little."""


def expression(api: Api, arguments: Mapping[str, Any]) -> str:
    """Return what a call of a converter works out, "" for anything else."""
    about = f"{words(api.name)} {words(api.description)}"
    if not _CONVERTS.search(about) or _NOT.search(about) or len(arguments) != len(_SHAPES):
        return ""
    named = {words(name): str(value) for name, value in arguments.items()}
    found = [
        next((value for name, value in named.items() if re.fullmatch(shape, name)), "")
        for shape in _SHAPES
    ]
    amount, source, target = operands.number(found[0]), *map(_unit, found[1:])
    if not amount or not source or not target or source == target:
        return ""
    if (source, target) in _SCALES:
        return _SCALES[source, target].format(amount)
    factor, back = _factor(source, target), _factor(target, source)
    if factor and (factor >= 1 or not back):
        return f"{amount} * {factor:f}"
    return f"{amount} / {back:f}" if back else ""


def _unit(said: str) -> str:
    return unit_written(said.lower().replace("_", " "))


def _factor(source: str, target: str) -> Decimal:
    many = converted(str(_EXACT), source, target)
    return (Decimal(many) / _EXACT).normalize() if many else Decimal(0)
