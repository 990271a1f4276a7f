"""Math Desk: arithmetic, whole numbers, percentages, statistics. Library: math, statistics.

Expressions are evaluated by ``expression.py``, never by Python.
"""

from __future__ import annotations

import math
import statistics
from typing import Annotated

from toolsrv_catalogs.offline.endpoint import Answer, Endpoints, Field, ParameterError, quoted
from toolsrv_catalogs.offline.expression import evaluate
from toolsrv_catalogs.offline.values.number import (
    Number,
    Numbers,
    between,
    significant,
    tidy,
    whole,
)
from toolsrv_catalogs.offline.values.words import text_up_to
from toolsrv_registry.errors import UsageError

tool = Endpoints()
Natural = Annotated[int, whole(1, 10**12)]
_ROMAN = (
    (1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"),
    (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I"),
)  # fmt: skip
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


@tool.get("/calculate")
def calculate(expression: Annotated[str, text_up_to(200)]) -> Answer:
    try:
        value = evaluate(expression)
    except UsageError as error:
        raise ParameterError("expression", error.message) from error
    result = value if isinstance(value, int) else significant(value, 12)
    return {"expression": expression, "result": result}


def _factors(number: int) -> dict[int, int]:
    """Return the prime factors and their powers by trial division, at most 10^6 / 3 steps."""
    found: dict[int, int] = {}
    divisor = 2
    while divisor * divisor <= number:
        while number % divisor == 0:
            found[divisor] = found.get(divisor, 0) + 1
            number //= divisor
        divisor += 1 if divisor == 2 else 2
    if number > 1:
        found[number] = found.get(number, 0) + 1
    return found


@tool.get("/prime/{number}")
def is_prime(number: Natural) -> Answer:
    factors = _factors(number)
    return {
        "number": number,
        "is_prime": factors == {number: 1},
        "smallest_factor": min(factors, default=1),
    }


@tool.get("/factors")
def prime_factors(number: Annotated[int, whole(2, 10**12)]) -> Answer:
    factors = _factors(number)
    product = " x ".join(f"{p}^{k}" if k > 1 else str(p) for p, k in factors.items())
    return {"number": number, "prime_factors": product, "distinct_primes": len(factors)}


@tool.get("/gcd")
def gcd_and_lcm(first: Natural, second: Natural) -> Answer:
    return {
        "first": first,
        "second": second,
        "greatest_common_divisor": math.gcd(first, second),
        "least_common_multiple": math.lcm(first, second),
    }


@tool.get("/percentage")
def percentage(percent: Number, number: Number) -> Answer:
    result = significant(percent / 100 * number, 12)
    return {"percent": tidy(percent), "number": tidy(number), "result": result}


@tool.get("/percent_change")
def percent_change(old_value: Number, new_value: Number) -> Answer:
    if old_value == 0:
        raise ParameterError("old_value", "must not be zero")
    return {
        "old_value": tidy(old_value),
        "new_value": tidy(new_value),
        "percent_change": significant((new_value - old_value) / abs(old_value) * 100, 6),
    }


@tool.get("/statistics")
def describe_numbers(numbers: Numbers) -> Answer:
    return {
        "count": len(numbers),
        "mean": significant(statistics.fmean(numbers)),
        "median": significant(statistics.median(numbers)),
        "minimum": significant(min(numbers)),
        "maximum": significant(max(numbers)),
        "standard_deviation": significant(statistics.stdev(numbers), 6) if len(numbers) > 1 else 0,
    }


@tool.get("/roman/encode")
def to_roman(number: Annotated[int, whole(1, 3999)]) -> Answer:
    rest, numeral = number, ""
    for value, letters in _ROMAN:
        numeral += letters * (rest // value)
        rest %= value
    return {"number": number, "roman": numeral}


def _roman(text: str) -> int:
    rest, number = text.strip().upper()[:20], 0
    for value, letters in _ROMAN:
        while rest.startswith(letters):
            rest, number = rest[len(letters) :], number + value
    if rest or not number or to_roman(number)["roman"] != text.strip().upper():
        raise UsageError(f"{quoted(text)} is not a Roman numeral from I to MMMCMXCIX")
    return number


@tool.get("/roman/decode")
def from_roman(roman: Annotated[int, Field(_roman)]) -> Answer:
    return {"roman": to_roman(roman)["roman"], "number": roman}


Base = Annotated[int, whole(2, 36)]


@tool.get("/base")
def convert_base(
    number: Annotated[str, text_up_to(70)], to_base: Base, from_base: Base = 10
) -> Answer:
    try:
        value = int(number.replace(" ", "").replace(",", ""), from_base)
    except ValueError:
        raise ParameterError(
            "number", f"{quoted(number)} is no number in base {from_base}"
        ) from None
    rest, digits = abs(value), ""
    while rest:
        rest, digit = divmod(rest, to_base)
        digits = _DIGITS[digit] + digits
    return {
        "number": number,
        "from_base": from_base,
        "to_base": to_base,
        "result": ("-" if value < 0 else "") + (digits or "0"),
    }


@tool.get("/right_triangle")
def hypotenuse(
    first_side: Annotated[float, between(1e-6, 1e9)],
    second_side: Annotated[float, between(1e-6, 1e9)],
) -> Answer:
    return {
        "first_side": tidy(first_side, 6),
        "second_side": tidy(second_side, 6),
        "hypotenuse": significant(math.hypot(first_side, second_side)),
        "area": significant(first_side * second_side / 2),
    }
