"""Arithmetic written by someone else, evaluated without running any of it.

The text is parsed to Python's syntax tree; only numbers, the operators ``+ - * / // % **`` and a
few functions of numbers are walked. Size, depth and magnitude are capped, so the work is too.
Knows nothing about APIs.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable

from toolsrv_registry.errors import UsageError

LENGTH_LIMIT = 200
DEPTH_LIMIT = 40
MAGNITUDE_LIMIT = 1e100
_REFUSAL = "not arithmetic; use numbers, + - * / ^ and brackets"

_OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_FUNCTIONS: dict[str, Callable[[float], float]] = {
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


def evaluate(text: str) -> float:
    """Return the value of the arithmetic expression ``text``: ``2 * (3 + 4)``, ``sqrt(2)^2``.

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
    if re.search(r"[^0-9a-z+\-*/%.() ]", plain) or re.search(r"[0-9][a-df-z]", plain):
        raise UsageError(_REFUSAL)
    try:
        tree = ast.parse(plain, mode="eval")
        value = float(_value(tree.body, 0))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise UsageError(_REFUSAL) from None
    except ZeroDivisionError:
        raise UsageError("divides by zero") from None
    except (OverflowError, TypeError):
        raise UsageError("has no value within the range accepted") from None
    if not math.isfinite(value):
        raise UsageError("has no value within the range accepted")
    return value


def _value(node: ast.expr, depth: int) -> float:
    if depth > DEPTH_LIMIT:
        raise UsageError("nested too deeply")
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return _capped(float(number))
        case ast.Name(id=name) if name in _CONSTANTS:
            return _CONSTANTS[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, depth + 1)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _value(operand, depth + 1)
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return _capped(math.pow(_value(left, depth + 1), _value(right, depth + 1)))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _capped(_OPERATORS[type(op)](_value(left, depth + 1), _value(right, depth + 1)))
        case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]) if name in _FUNCTIONS:
            return _capped(_FUNCTIONS[name](_value(argument, depth + 1)))
    raise UsageError(_REFUSAL)


def _capped(value: float) -> float:
    if abs(value) > MAGNITUDE_LIMIT:
        raise OverflowError
    return value
