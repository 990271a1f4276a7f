"""Arithmetic written by someone else, evaluated without running any of it.

The text is parsed to Python's syntax tree; only numbers, the operators ``+ - * / // % **`` and a
few functions of numbers are walked: ``gcd`` and ``lcm`` take several whole numbers, ``prime(15)`` is
the 15th prime. Size, depth and magnitude are capped, so the work is too.
Fractions stay exact as long as they are short; roots, sines and the like are floats. Knows nothing
about APIs.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from toolsrv_registry.errors import UsageError

LENGTH_LIMIT = 200
DEPTH_LIMIT = 40
MAGNITUDE_LIMIT = 1e100
_EXACT_BITS = 4096
"""Of a fraction, both its numbers together: a longer one goes on as a float."""
_REFUSAL = "not arithmetic; use numbers, + - * / ^ and brackets"

Quantity = Fraction | float

_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Quantity]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_FUNCTIONS: dict[str, Callable[[Any], Quantity]] = {
    "sqrt": math.sqrt,
    "abs": abs,
    "round": round,
    "floor": math.floor,
    "ceil": math.ceil,
    "log": math.log10,
    "ln": math.log,
    "exp": math.exp,
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
}
_OF_WHOLE_NUMBERS: dict[str, Callable[..., int]] = {"gcd": math.gcd, "lcm": math.lcm}
_PRIMES_LIMIT = 10_000
"""The largest n of an n-th prime."""

_CONSTANTS = {"pi": math.pi, "e": math.e}
_REWRITES = (
    (re.compile("[\u00d7\u00b7]"), "*"),
    (re.compile(r"÷"), "/"),
    (re.compile("[\u2212\u2013]"), "-"),
    (re.compile(r"\^"), "**"),
    (re.compile(r"(?<=[0-9]) ?(?:%|percent) of "), "/100*"),
    (re.compile(r"\btimes\b|\bmultiplied by\b"), "*"),
    (re.compile(r"\bdivided by\b|\bover\b"), "/"),
    (re.compile(r"\bplus\b"), "+"),
    (re.compile(r"\bminus\b"), "-"),
    (re.compile(r"(?<=[0-9]),(?=[0-9]{3}(?![0-9]))"), ""),
    (re.compile(r"(?<=[0-9\s)])x(?=[\s0-9(])"), "*"),
    (re.compile(r"(?<=[0-9])%(?!\s*[0-9(])"), "/100"),
)


def evaluate(text: str) -> int | float:
    """Return the value of the arithmetic expression ``text``: ``2 * (3 + 4)``, ``sqrt(2)^2``.

    A whole number has all its digits where none of the steps was rounded.

    Raises:
        UsageError: not such an expression, too large, or without a value (division by zero).
    """
    if len(text) > LENGTH_LIMIT:
        raise UsageError(f"longer than {LENGTH_LIMIT} characters")
    plain = text.strip().rstrip("=? ").lower()
    if re.search(r"\b0x", plain):
        raise UsageError(_REFUSAL)
    for form, replacement in _REWRITES:
        plain = form.sub(replacement, plain)
    # Python's own literals beyond plain decimals (0x10, 1_000, 1j) are not offered.
    if re.search(r"[^0-9a-z+\-*/%.(), ]", plain) or re.search(r"[0-9][a-df-z]", plain):
        raise UsageError(_REFUSAL)
    try:
        tree = ast.parse(plain, mode="eval")
        value = _value(tree.body, plain, 0)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise UsageError(_REFUSAL) from None
    except ZeroDivisionError:
        raise UsageError("divides by zero") from None
    except (OverflowError, TypeError):
        raise UsageError("has no value within the range accepted") from None
    if not math.isfinite(value):
        raise UsageError("has no value within the range accepted")
    if isinstance(value, Fraction) and value.denominator == 1:
        return value.numerator
    return float(value)


def _value(node: ast.expr, text: str, depth: int) -> Quantity:
    if depth > DEPTH_LIMIT:
        raise UsageError("nested too deeply")
    below = depth + 1
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            _capped(number)
            # As it is written: the float of 0.1 is no tenth.
            written = text[node.col_offset : node.end_col_offset]
            return Fraction(written if number and isinstance(number, float) else number)
        case ast.Name(id=name) if name in _CONSTANTS:
            return _CONSTANTS[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, text, below)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _value(operand, text, below)
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return _power(_value(left, text, below), _value(right, text, below))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            one, other = _value(left, text, below), _value(right, text, below)
            return _capped(_OPERATORS[type(op)](one, other))
        case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]) if name in _FUNCTIONS:
            return _capped(_FUNCTIONS[name](_value(argument, text, below)))
        case ast.Call(func=ast.Name(id="prime"), args=[argument], keywords=[]):
            return Fraction(_prime(_whole(_value(argument, text, below), _PRIMES_LIMIT)))
        case ast.Call(func=ast.Name(id=name), args=[_, _, *_] as arguments, keywords=[]) if (
            name in _OF_WHOLE_NUMBERS
        ):
            numbers = [_whole(_value(one, text, below)) for one in arguments]
            return _capped(_OF_WHOLE_NUMBERS[name](*numbers))
    raise UsageError(_REFUSAL)


def _whole(value: Quantity, most: float = MAGNITUDE_LIMIT) -> int:
    if not isinstance(value, Fraction) or value.denominator != 1 or not 1 <= value <= most:
        raise UsageError(f"takes whole numbers from 1 to {most:g} in gcd, lcm and prime")
    return value.numerator


def _prime(number: int) -> int:
    """Return the prime of a number, 2 being the first, by a sieve up to Rosser's bound for it."""
    bound = 15 if number < 6 else int(number * (math.log(number) + math.log(math.log(number)))) + 1
    sieve = bytearray([1]) * bound
    sieve[:2] = b"\0\0"
    for factor in range(2, math.isqrt(bound) + 1):
        if sieve[factor]:
            sieve[factor * factor :: factor] = bytes(len(range(factor * factor, bound, factor)))
    return [at for at, is_prime in enumerate(sieve) if is_prime][number - 1]


def _power(base: Quantity, exponent: Quantity) -> Quantity:
    if isinstance(base, float) or isinstance(exponent, float) or exponent.denominator != 1:
        return _capped(math.pow(base, exponent))
    short = abs(exponent.numerator) * _bits(base) <= _EXACT_BITS
    return _capped(base**exponent.numerator if short else math.pow(base, exponent))


def _capped(value: Quantity) -> Quantity:
    if not -MAGNITUDE_LIMIT <= value <= MAGNITUDE_LIMIT:  # nor what is no number
        raise OverflowError
    if isinstance(value, int):  # of round, floor and ceil
        return Fraction(value)
    return float(value) if isinstance(value, Fraction) and _bits(value) > _EXACT_BITS else value


def _bits(value: Fraction) -> int:
    return value.numerator.bit_length() + value.denominator.bit_length()
