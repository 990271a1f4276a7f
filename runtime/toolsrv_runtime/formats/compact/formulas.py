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
from toolsrv_runtime.reading import patterns
from toolsrv_runtime.reading.facts import words

CALCULATOR = "calculate an arithmetic expression"
"""What a calculator is looked for with."""


class _Formula(NamedTuple):
    """``says``, ``never``: of the name and description; ``takes``: of each parameter, in words.

    ``else_asked``: words of the clause that ask for something else the function answers too.
    """

    says: str
    never: str
    takes: tuple[tuple[str, str], ...]
    text: str
    else_asked: str = r"(?!)"


# Names of a parameter, and what its value looks like.
_NUMBER = r"(-?[0-9]+(?:\.[0-9]+)?|[1-9][0-9]{0,2}(?:,[0-9]{3})+(?:\.[0-9]+)?)"
_SHARE = (r"percent(?:age)?(?: value)?", rf"{_NUMBER} ?(?:%|percent)?")
_PRICE = (r"(?:net )?(?:price|amount)", _NUMBER)
_FORMULAS = (
    _Formula(
        r"percent(?:age)? of (?:a|an|the|some|any) (?:number|value|amount|total)",
        r"\bthat\b.*\bis\b|\bwhat percent|\b(?:add|off|increase|decrease|decimal|fraction)",
        (_SHARE, (r"number|amount|value|total", _NUMBER)),
        "{1} * {0} / 100",
    ),
    _Formula(
        r"percent(?:age)? (?:change|increase)",
        r"\b(?:decimal|fraction)",
        (
            (r"(?:old|initial|original|start|starting)(?: value| price| amount| number)?", _NUMBER),
            (r"(?:new|final|end|ending)(?: value| price| amount| number)?", _NUMBER),
        ),
        "({1} - {0}) / {0} * 100",
    ),
    _Formula(
        r"average speed",
        r"\b(?:mph|miles|minutes|seconds)\b",
        (
            (r"distance(?:(?: in)? (?:km|kilomet(?:er|re)s))?", rf"{_NUMBER} ?(?:km|kilomet(?:er|re)s?)"),
            (r"(?:time |duration )?(?:in )?hours", _NUMBER),
        ),
        "{0} / {1}",
    ),
    _Formula(
        r"hypotenuse|pythagoras",
        r"\bwithout\b",
        (
            (r"first(?: side| leg)?|(?:side |leg )?[a1]", _NUMBER),
            (r"second(?: side| leg)?|(?:side |leg )?[b2]", _NUMBER),
        ),
        "sqrt({0}^2 + {1}^2)",
        r"\b(?:area|surface|perimeter|angles?|missing side|other side)\b",
    ),
    _Formula(
        r"discount",
        r"\b(?:tax|vat|interest|present value|decimal|fraction)\b",
        (_PRICE, (r"percent(?:age)?(?: off)?|discount (?:percent(?:age)?)", _SHARE[1])),
        "{0} * (1 - {1} / 100)",
        r"\b(?:sav\w+|reduc\w+|how much (?:off|less|is the discount))\b",
    ),
    _Formula(
        r"add (?:the |a )?(?:sales )?(?:tax|vat)",
        r"\b(?:remov\w*|exclud\w*|extract\w*|gross|income|decimal|fraction)\b",
        (_PRICE, (r"(?:sales )?(?:tax|vat)(?: rate)?(?: percent(?:age)?)|percent(?:age)?", _SHARE[1])),
        "{0} * (1 + {1} / 100)",
        r"\b(?:how much (?:sales )?(?:tax|vat)|the (?:tax|vat) (?:amount|alone|itself|part))\b",
    ),
    _Formula(
        r"servings",
        r"\b(?:calories|nutrition)",
        (
            (r"(?:ingredient )?(?:amount|quantity)", _NUMBER),
            (r"(?:old |original )?servings", _NUMBER),
            (r"(?:wanted|new|desired|target) servings", _NUMBER),
        ),
        "{0} / {1} * {2}",
    ),
)  # fmt: skip
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
    for formula in _FORMULAS:
        if (
            re.search(rf"\b(?:{formula.says})\b", about)
            and not re.search(formula.never, about)
            and not re.search(formula.else_asked, asked, re.IGNORECASE)
        ):
            numbers = _placed(formula, arguments)
            return formula.text.format(*numbers) if numbers else ""
    return ""


def takes_expression(api: Api, text: str) -> str:
    """Return the parameter with which a calculator takes an expression, "" of anything else.

    A power or a root it has to know by its document: "^" is something else in some languages.
    """
    about = f"{words(api.name)} {words(api.description)}"
    if not _CALCULATES.search(about) or _NO_CALCULATOR.search(about):
        return ""
    found = [one for one in api.required if patterns.kind(one, api) == "expression"]
    if len(found) != 1 or len(api.required) != 1:
        return ""
    told = f"{api.description} {found[0].description}"
    return found[0].name if all(sign in told for sign in _MATHS.findall(text)) else ""


def _placed(formula: _Formula, arguments: Mapping[str, Any]) -> list[str]:
    """Return the numbers of a call in a formula's order; none where one is left or missing."""
    if len(arguments) != len(formula.takes):
        return []
    left = {words(name): str(value) for name, value in arguments.items()}
    numbers = []
    for takes, shape in formula.takes:
        name = next((one for one in left if re.fullmatch(takes, one)), None)
        number = re.fullmatch(shape, left.pop(name).strip()) if name is not None else None
        if number is None:
            return []
        plain = number[1].replace(",", "")
        if float(plain) <= 0:
            return []  # what a share of less than nothing is meant to be only its provider knows
        numbers.append(plain)
    return numbers
