"""What functions work out that are plain arithmetic, for the time when one of them is down.

A model of a few million parameters cannot write an expression; that 18 percent of 2,450 is
``2450 * 18 / 100`` need not be learnt. A function is known by what its name and description say and
by what it takes: every argument of the call has to have its place in the formula. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from toolsrv_registry.api import Api
from toolsrv_runtime.formats import patterns
from toolsrv_runtime.formats.facts import words

CALCULATE = "calculate"
"""What a calculator is looked for with, in front of the expression."""


class _Formula(NamedTuple):
    """``says``: of the name and description; ``takes``: of each parameter's name, in words."""

    says: str
    takes: tuple[str, ...]
    text: str


_FORMULAS = (
    _Formula(
        r"percent(?:age)? of", (r"percent.*", r"number|amount|value|total|whole"), "{1} * {0} / 100"
    ),
    _Formula(
        r"percent(?:age)? (?:change|increase|decrease|difference)",
        (r"(?:old|from|before|first|initial|start|original)\b.*", r"(?:new|to|after|second|final|end)\b.*"),
        "({1} - {0}) / {0} * 100",
    ),
    _Formula(r"average speed", (r"distance.*", r"(?:hours|time|duration)\b.*"), "{0} / {1}"),
    _Formula(
        r"hypotenuse|pythagoras",
        (r"first.*|(?:side |leg )?[a1]", r"second.*|(?:side |leg )?[b2]"),
        "sqrt({0}^2 + {1}^2)",
    ),
    _Formula(
        r"discount", (r"(?:original )?(?:price|amount)", r"(?:percent|discount|rate)\b.*"),
        "{0} * (1 - {1} / 100)",
    ),
    _Formula(
        r"tax|vat", (r"(?:net )?(?:price|amount)", r"(?:tax|vat|rate|percent)\b.*"),
        "{0} * (1 + {1} / 100)",
    ),
    _Formula(
        r"tip", (r"bill.*|amount|total", r"tip.*|percent.*", r"people|persons|ways|guests"),
        "{0} * (1 + {1} / 100) / {2}",
    ),
    _Formula(
        r"servings|recipe",
        (r"(?:ingredient )?amount|quantity", r"(?:old |original )?servings", r"(?:wanted|new|desired|target) servings"),
        "{0} / {1} * {2}",
    ),
    _Formula(
        r"fuel",
        (r"distance.*", r"(?:liters|litres|consumption)\b.*", r"(?:fuel )?price.*"),
        "{0} / 100 * {1} * {2}",
    ),
    _Formula(r"battery", (r"capacity.*", r"current.*"), "{0} / {1}"),
    _Formula(
        r"compound interest", (r"(?:amount|principal).*", r"(?:interest |annual )?rate.*", r"years"),
        "{0} * (1 + {1} / 100)^{2}",
    ),
)  # fmt: skip
_NUMBER = re.compile(
    r"([-+]?\d+(?:,\d{3})*(?:\.\d+)?)\s*(?:%|percent|km|kilomet(?:er|re)s?|m|met(?:er|re)s?)?",
    re.IGNORECASE,
)


def expression(api: Api, arguments: Mapping[str, Any]) -> str:
    """Return what a call works out as an arithmetic expression, "" where that is not known.

    ``arguments`` are the call's, numbers or their text ("387 km"). Never longer than the numbers
    and the formula.
    """
    about = f"{words(api.name)} {words(api.description)}"
    for formula in _FORMULAS:
        if re.search(rf"\b(?:{formula.says})\b", about, re.IGNORECASE):
            numbers = _placed(formula, arguments)
            if numbers:
                return formula.text.format(*numbers)
    return ""


def takes_expression(api: Api) -> str:
    """Return the parameter of a calculator that takes the expression, "" of anything else."""
    kinds = [(one.name, patterns.kind(one, api)) for one in api.required]
    return kinds[0][0] if len(kinds) == 1 and kinds[0][1] == "expression" else ""


def _placed(formula: _Formula, arguments: Mapping[str, Any]) -> list[str]:
    """Return the numbers of a call in a formula's order; none where one is left or missing."""
    if len(arguments) != len(formula.takes):
        return []
    left = {words(name).lower(): str(value) for name, value in arguments.items()}
    numbers = []
    for takes in formula.takes:
        name = next((one for one in left if re.fullmatch(takes, one)), None)
        number = _NUMBER.fullmatch(left.pop(name).strip()) if name is not None else None
        if number is None:
            return []
        plain = number[1].replace(",", "").lstrip("+")
        numbers.append(f"({plain})" if plain.startswith("-") else plain)
    return numbers
