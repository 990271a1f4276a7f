"""Expressions in the files of services: a Python subset, parsed with ``ast`` and evaluated by hand.

``Helpers`` holds the names that an expression may use.
"""

from __future__ import annotations

import ast
import math
import operator
import re
import statistics
from collections.abc import Callable, Iterator, Mapping
from datetime import date, timedelta
from functools import cache
from typing import Any

from toolsrv_lab.conversations.services_b.values import Draw, code, countries, pools
from toolsrv_lab.conversations.wording import WEEKDAYS, enumerated


class Record:
    """The fields of a JSON object; a field that is absent is None."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self.fields = fields

    def field(self, name: str) -> Any:
        """Return a field, objects in it as records."""
        return record(self.fields.get(name))


def record(value: Any) -> Any:
    """Return a JSON value with its objects as records."""
    if isinstance(value, dict):
        return Record(value)
    return [record(one) for one in value] if isinstance(value, list) else value


Names = Mapping[str, Any]

_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_COMPARED: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda left, right: left in right,
    ast.NotIn: lambda left, right: left not in right,
}
_METHODS: Mapping[type, Mapping[str, Callable[..., Any]]] = {
    str: {
        "count": str.count,
        "join": str.join,
        "lower": str.lower,
        "replace": str.replace,
        "split": str.split,
        "strip": str.strip,
    },
    list: {"count": list.count},
}


def evaluate(text: str, names: Names) -> Any:
    """Return the value of an expression.

    Args:
        text: The expression.
        names: Its names; a dotted one (``math.pi``) is one entry.

    Raises:
        ValueError: The text is no expression of this subset, or has an unknown name.
        TypeError: A field is read of something else than a record.
        LookupError: An item is absent.
    """
    return _value(_parsed(text), names)


def is_allowed(text: str) -> bool:
    """Whether a text is an expression of this subset, apart from its names."""
    try:
        tree = _parsed(text)
    except ValueError:
        return False
    helpers = (ast.Starred, ast.Slice, *_BINARY, *_COMPARED)
    return all(type(one) in _RULES or isinstance(one, helpers) for one in _nodes(tree))


def _nodes(tree: ast.expr) -> Iterator[ast.AST]:
    kinds = (ast.expr, ast.operator, ast.cmpop)
    return (one for one in ast.walk(tree) if isinstance(one, kinds))


@cache
def _parsed(text: str) -> ast.expr:
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError as error:
        raise ValueError(f"no expression: {text!r}: {error}") from error


def _value(node: ast.expr, names: Names) -> Any:
    rule = _RULES.get(type(node))
    if rule is None:
        raise ValueError(f"not allowed in an expression: {ast.unparse(node)!r}")
    return rule(node, names)


def _name(node: ast.Name, names: Names) -> Any:
    if node.id not in names:
        raise ValueError(f"unknown name in an expression: {node.id!r}")
    return names[node.id]


def _attribute(node: ast.Attribute, names: Names) -> Any:
    dotted = _dotted(node, names)
    if dotted:
        return names[dotted]
    held = _value(node.value, names)
    if not isinstance(held, Record):
        raise TypeError(f"a field of no record: {ast.unparse(node)!r}")
    return held.field(node.attr)


def _dotted(node: ast.expr, names: Names) -> str:
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        dotted = f"{node.value.id}.{node.attr}"
        return dotted if dotted in names else ""
    return ""


def _item(node: ast.Subscript, names: Names) -> Any:
    held = _value(node.value, names)
    if isinstance(node.slice, ast.Slice):
        parts = (node.slice.lower, node.slice.upper, node.slice.step)
        return held[slice(*(None if one is None else _value(one, names) for one in parts))]
    key = _value(node.slice, names)
    return held.field(key) if isinstance(held, Record) else held[key]


def _unary(node: ast.UnaryOp, names: Names) -> Any:
    value = _value(node.operand, names)
    if isinstance(node.op, ast.USub):
        return -value
    if isinstance(node.op, ast.Not):
        return not value
    raise ValueError(f"not allowed in an expression: {ast.unparse(node)!r}")


def _binary(node: ast.BinOp, names: Names) -> Any:
    if type(node.op) not in _BINARY:
        raise ValueError(f"not allowed in an expression: {ast.unparse(node)!r}")
    left = _value(node.left, names)
    return _BINARY[type(node.op)](left, _value(node.right, names))


def _boolean(node: ast.BoolOp, names: Names) -> Any:
    ends = isinstance(node.op, ast.Or)
    value: Any = None
    for one in node.values:
        value = _value(one, names)
        if bool(value) == ends:
            break
    return value


def _compare(node: ast.Compare, names: Names) -> Any:
    left = _value(node.left, names)
    result: Any = True
    for sign, other in zip(node.ops, node.comparators, strict=True):
        right = _value(other, names)
        result = _COMPARED[type(sign)](left, right)
        if not result:
            break
        left = right
    return result


def _choice(node: ast.IfExp, names: Names) -> Any:
    return _value(node.body if _value(node.test, names) else node.orelse, names)


def _items(nodes: list[ast.expr], names: Names) -> list[Any]:
    found: list[Any] = []
    for one in nodes:
        if isinstance(one, ast.Starred):
            found += _value(one.value, names)
        else:
            found.append(_value(one, names))
    return found


def _mapping(node: ast.Dict, names: Names) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            raise ValueError(f"not allowed in an expression: {ast.unparse(node)!r}")
        found[_value(key, names)] = _value(value, names)
    return found


def _rounds(loops: list[ast.comprehension], names: Names) -> Iterator[Names]:
    """Yield the names of each round of a comprehension."""
    loop, *inner = loops
    for one in _value(loop.iter, names):
        told = {**names, **_bound(loop.target, one)}
        if all(_value(test, told) for test in loop.ifs):
            if inner:
                yield from _rounds(inner, told)
            else:
                yield told


def _bound(target: ast.expr, value: Any) -> dict[str, Any]:
    if isinstance(target, ast.Name):
        return {target.id: value}
    if isinstance(target, ast.Tuple):
        found: dict[str, Any] = {}
        for one, part in zip(target.elts, value, strict=True):
            found |= _bound(one, part)
        return found
    raise ValueError(f"not allowed in an expression: {ast.unparse(target)!r}")


def _generator(node: ast.GeneratorExp | ast.ListComp, names: Names) -> Iterator[Any]:
    for told in _rounds(node.generators, names):
        yield _value(node.elt, told)


def _mapped(node: ast.DictComp, names: Names) -> dict[Any, Any]:
    rounds = _rounds(node.generators, names)
    return {_value(node.key, told): _value(node.value, told) for told in rounds}


def _lambda(node: ast.Lambda, names: Names) -> Callable[..., Any]:
    keys = [one.arg for one in node.args.args]

    def call(*values: Any) -> Any:
        return _value(node.body, {**names, **dict(zip(keys, values, strict=True))})

    return call


def _call(node: ast.Call, names: Names) -> Any:
    called = node.func
    if isinstance(called, ast.Attribute) and not _dotted(called, names):
        held = _value(called.value, names)
        methods = _METHODS.get(type(held), {})
        if called.attr not in methods:
            raise ValueError(f"no method of an expression: {ast.unparse(node)!r}")
        return methods[called.attr](held, *_items(node.args, names))
    function = _value(called, names)
    positional = _items(node.args, names)
    named: dict[str, Any] = {}
    for one in node.keywords:
        if one.arg is None:
            raise ValueError(f"not allowed in an expression: {ast.unparse(node)!r}")
        named[one.arg] = _value(one.value, names)
    return function(*positional, **named)


_RULES: Mapping[type[ast.expr], Callable[[Any, Names], Any]] = {
    ast.Attribute: _attribute,
    ast.BinOp: _binary,
    ast.BoolOp: _boolean,
    ast.Call: _call,
    ast.Compare: _compare,
    ast.Constant: lambda node, _: node.value,
    ast.Dict: _mapping,
    ast.DictComp: _mapped,
    ast.GeneratorExp: _generator,
    ast.IfExp: _choice,
    ast.Lambda: _lambda,
    ast.List: lambda node, names: _items(node.elts, names),
    ast.ListComp: lambda node, names: list(_generator(node, names)),
    ast.Name: _name,
    ast.Subscript: _item,
    ast.Tuple: lambda node, names: tuple(_items(node.elts, names)),
    ast.UnaryOp: _unary,
}


_BUILTINS: tuple[Callable[..., Any], ...] = (
    *(abs, all, any, bin, chr, dict, enumerate, float, hex, int, len, list, max, min, ord, range),
    *(reversed, round, set, sorted, str, sum, zip),
)
_MATH = (
    *("ceil", "comb", "dist", "factorial", "gcd", "hypot", "lcm", "log", "log10", "log2", "pi"),
    *("radians", "sin", "sqrt"),
)
_STATISTICS = ("median", "pstdev", "stdev")


def _shown(value: Any) -> str:
    if value is None or isinstance(value, Record):
        raise LookupError("nothing to show")
    if isinstance(value, bool):
        return "yes" if value else "no"
    return enumerated([_shown(one) for one in value]) if isinstance(value, list) else str(value)


def _days_between(first: str, last: str) -> int:
    return (date.fromisoformat(last[:10]) - date.fromisoformat(first[:10])).days


class Helpers:
    """Evaluates expressions with functions that draw from one episode's values."""

    def __init__(self, draw: Draw) -> None:
        rng = draw.rng

        def decimal(low: float, high: float, digits: int = 2) -> float:
            return round(rng.uniform(low, high), digits)

        def some(pool: str, low: int, high: int) -> list[str]:
            return [one[0] for one in rng.sample(pools()[pool][1], rng.randint(low, high))]

        def day(low: int, high: int) -> str:
            return (draw.now + timedelta(rng.randint(low, high))).isoformat()

        self._table: dict[str, Any] = {
            **{one.__name__: one for one in _BUILTINS},
            **{f"math.{name}": getattr(math, name) for name in _MATH},
            **{f"stats.{name}": getattr(statistics, name) for name in _STATISTICS},
            "rng.choice": rng.choice,
            "rng.sample": rng.sample,
            "now": draw.now.isoformat(),
            "year": draw.now.year,
            "I": rng.randint,
            "F": decimal,
            "P": lambda text: rng.choice(text.split(";")),
            "Q": lambda pool: draw.once(pool)[0],
            "SP": lambda text, low, high: rng.sample(text.split(";"), rng.randint(low, high)),
            "SQ": some,
            "B": lambda chance=0.5: rng.random() < chance,
            "D": day,
            "T": lambda: f"{rng.randint(0, 23):02d}:{rng.randint(0, 59):02d}",
            "ID": lambda text: code(rng, text),
            "plus": lambda first, days: (
                date.fromisoformat(first[:10]) + timedelta(days)
            ).isoformat(),
            "days": _days_between,
            "dow": lambda day: WEEKDAYS[date.fromisoformat(day[:10]).weekday()],
            "R": _rounded,
            "J": lambda parts, last="and": enumerated([_shown(one) for one in parts], last),
            "Y": lambda fact, yes, no="": yes if fact else no,
            "of": lambda key, name, value: next(
                one[value] for one in countries() if one[key] == name
            ),
        }

    def value(self, text: str, **more: Any) -> Any:
        """Return the value of an expression; ``more``: further names, such as the arguments."""
        return evaluate(text, {**self._table, **more})

    def sentence(self, text: str, **more: Any) -> str:
        """Return a sentence with its ``{expressions}`` evaluated.

        Raises:
            LookupError: The value of one is absent, empty, or an object.
        """
        return re.sub(
            r"\{([^{}]+)\}", lambda found: _shown(self.value(found[1].strip(), **more)), text
        )


def _rounded(value: float, digits: int = 2) -> float | int:
    out = round(value, digits)
    return int(out) if out == int(out) and abs(out) < 1e15 else out
