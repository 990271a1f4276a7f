"""What functions work out that are plain arithmetic, for the time when one of them is down.

A model of a few million parameters cannot write an expression; that 18 percent of 2,450 is
``2450 * 18 / 100`` need not be learnt. A function is known by what its name and description say and
by what it takes (``formula_table``): every argument of the call has to have its place. Pure but for
pint, which converters of units need.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from toolsrv_registry.api import Api
from toolsrv_runtime.planner import unit_formulas
from toolsrv_runtime.planner.formula_table import FORMULAS, Formula
from toolsrv_runtime.values import kinds
from toolsrv_runtime.values.facts import words

CALCULATOR = "calculate an arithmetic expression"
"""What a calculator is looked for with."""

_CALCULATES = re.compile(r"\b(?:calculat\w*|evaluat\w*|arithmetic)\b")
_NO_CALCULATOR = re.compile(
    r"\b(?:deriv|integra|cron|regex|regular|boolean|simplif|factor|symbolic|postfix|latex|logical)"
)
_MATHS = re.compile(r"sqrt|\^")


def expression(api: Api, arguments: Mapping[str, Any], asked: str = "") -> str:
    """Return what a call works out as an arithmetic expression, "" where that is not known.

    ``arguments`` are the call's, numbers or their text ("387 km"); ``asked`` the words that the
    call is for. Never longer than the numbers and the formula.
    """
    about = f"{words(api.name)} {words(api.description)}"
    for formula in FORMULAS:
        if _said(formula.says, about) and not _said(formula.never, about):
            numbers = _placed(formula, arguments)
            wanted = next((text for said, text in formula.works_out if _said(said, asked)), "")
            if numbers:
                return wanted.format(*numbers)
    return unit_formulas.expression(api, arguments)


def takes_expression(api: Api, text: str) -> str:
    """Return the parameter with which a calculator takes an expression, "" of anything else.

    A power or a root it has to know by its document: "^" is something else in some languages.
    """
    about = f"{words(api.name)} {words(api.description)}"
    if not _CALCULATES.search(about) or _NO_CALCULATOR.search(about):
        return ""
    found = [one for one in api.required if kinds.value_kind(one, api) == "expression"]
    if len(found) != 1 or len(api.required) != 1:
        return ""
    told = f"{api.description} {found[0].description}"
    return found[0].name if all(sign in told for sign in _MATHS.findall(text)) else ""


def _said(pattern: str, text: str) -> bool:
    return not pattern or re.search(rf"\b(?:{pattern})\b", text, re.IGNORECASE) is not None


def _placed(formula: Formula, arguments: Mapping[str, Any]) -> list[str]:
    """Return the numbers of a call in a formula's order; none where one is left or missing."""
    left = {words(name): str(value) for name, value in arguments.items()}
    numbers = []
    for at, (takes, read) in enumerate(formula.takes):
        name = next((one for one in left if re.fullmatch(takes, one)), None)
        usual = formula.usual.get(at, "")
        number = read(left.pop(name).strip()) if name is not None else usual
        if not number:
            return []
        numbers.append(number)
    return [] if left else numbers
