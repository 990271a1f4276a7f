"""Sandbox of chat templates: limits on the size, work and time of a rendering.

A template comes with somebody's file. Whatever makes a value larger (operators, filters, methods,
literals, output) or repeats something (loops, calls) is counted before or while it is done, so that
neither memory nor time is unbounded. Knows no turns and no prompts.
"""

from __future__ import annotations

import contextlib
import functools
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, MappingView, Sequence
from collections.abc import Set as AbstractSet
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import jinja2
import jinja2.sandbox
from jinja2 import nodes
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.utils import Namespace
from jinja2.visitor import NodeTransformer

from toolsrv_runtime.templates.marking import to_json

MOST_SIZE = 1_000_000
"""Characters and items of one value; those of its parts count too."""
MOST_WORK = 20_000_000
"""Characters and items of all that one rendering makes, and its turns of loops."""
MOST_S = 3.0
"""Seconds of processor time of one rendering, which takes a thousandth of that."""
MOST_SOURCE = 200_000
"""Characters of a template."""

_MOST_PRODUCT = 4_000_000
_MOST_DEPTH = 32
_MOST_BITS = 4096
_MOST_WIDTH = 10_000
_NUMBERS = re.compile(r"\d+")
_NESTED = re.compile(r":[^{}]*\{")
_STAR = re.compile(r"%[^a-zA-Z%]*\*")

# No template can spell these names.
_CHARGED, _JOINED, _TURNS = "a value", "joined values", "turns of a loop"
_WITHOUT = ("pprint", "striptags", "urlize", "xmlattr")
"""Filters that no chat template needs, and whose work is not easily told before."""


class LimitError(jinja2.TemplateRuntimeError):
    """A template makes something too large, or runs for too long."""


@dataclass(slots=True)
class _Spent:
    """Of one rendering; ``end`` in the thread's seconds of processor time."""

    work: int = 0
    end: float = field(default_factory=lambda: time.thread_time() + MOST_S)


_spent: ContextVar[_Spent] = ContextVar("_spent")


@contextlib.contextmanager
def limit_work() -> Iterator[None]:
    """Count what a template does from here on."""
    token = _spent.set(_Spent())  # of this thread: others render at the same time
    try:
        yield
    finally:
        _spent.reset(token)


def environment() -> jinja2.Environment:
    """Return the sandbox; use it, and what it compiles, within ``limit_work``."""
    made = _Environment(
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.loopcontrols", _Generation],
        finalize=_written,
    )
    made.filters = {
        name: _guarded(name, function)
        for name, function in {**made.filters, "tojson": to_json}.items()
        if name not in _WITHOUT
    }
    made.filters |= {_CHARGED: _passed, _JOINED: _joined, _TURNS: _turns}
    made.tests = {name: _guarded(name, function) for name, function in made.tests.items()}
    made.globals["namespace"] = _Names
    del made.globals["lipsum"]
    return made


def compile_limited(made: jinja2.Environment, source: str) -> jinja2.Template:
    """Return a template in which what the sandbox does not see is counted too.

    Raises whatever Jinja does; LimitError where the source is too long.
    """
    if len(source) > MOST_SOURCE:
        raise LimitError(f"a source of more than {MOST_SOURCE:,} characters")
    parsed = made.parse(source)
    _Counting().visit(parsed)
    parsed.set_environment(made)
    return made.from_string(parsed)


class _Generation(Extension):
    """``{% generation %}`` marks what a model is trained to write; its body is rendered as is."""

    tags = {"generation"}  # noqa: RUF012 - Jinja's own declaration

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class _Names(Namespace):
    """A namespace that is not shown: it may hold itself."""

    def __repr__(self) -> str:
        return "<namespace>"


class _Environment(jinja2.sandbox.ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset({"*", "**", "+", "-", "/", "//", "%"})

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        sizes = _size(left), _size(right)
        match operator:
            case "*":
                for one, times in ((left, right), (right, left)):
                    if isinstance(times, int) and not isinstance(one, int | float):
                        _bound((_size(one) + 1) * max(0, times), MOST_SIZE)
            case "**" if isinstance(left, int) and isinstance(right, int):
                _bound(left.bit_length() * abs(right), _MOST_BITS)
            case "%" if isinstance(left, str | bytes):
                _check_percents(left if isinstance(left, str) else left.decode("latin-1"))
                _bound((sizes[0] + 1) * (sizes[1] + 1), _MOST_PRODUCT)
            case "+":
                _bound(sum(sizes), MOST_SIZE)
        return _charged(super().call_binop(context, operator, left, right))

    def call(self, context: Context, obj: Any, /, *args: Any, **kwargs: Any) -> Any:
        method = getattr(obj, "__wrapped__", obj)
        owner = getattr(method, "__self__", None)
        if isinstance(owner, str | bytes | int):
            _check_method(method.__name__, owner)
            args = tuple(_held(one) for one in args)
            _check_product(owner, (*args, *kwargs.values()))
        else:
            _charged((args, kwargs))
        return _charged(super().call(context, obj, *args, **kwargs))


class _Counting(NodeTransformer):
    """Puts counting filters around what Jinja compiles to plain Python."""

    def visit_For(self, node: nodes.For) -> nodes.Node:  # noqa: N802 - Jinja's names
        cost = sum(1 for _ in node.find_all(nodes.Node))
        self.generic_visit(node)
        node.iter = _filter(_TURNS, node.iter, nodes.Const(cost))
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        return _filter(_JOINED, nodes.List(node.nodes, lineno=node.lineno))

    def visit_List(self, node: nodes.Expr) -> nodes.Expr:  # noqa: N802
        self.generic_visit(node)
        return _filter(_CHARGED, node)

    visit_Dict = visit_List  # noqa: N815

    def visit_Tuple(self, node: nodes.Tuple) -> nodes.Node:  # noqa: N802
        return self.visit_List(node) if node.ctx == "load" else node

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        if isinstance(node.arg, nodes.Slice):
            node.node = _filter(_CHARGED, node.node)
        return node

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        node.expr = _filter(_CHARGED, node.expr)
        for one in node.ops:
            one.expr = _filter(_CHARGED, one.expr)
        return node

    def visit_TemplateData(self, node: nodes.TemplateData) -> nodes.Node:  # noqa: N802
        return nodes.Const(node.data, lineno=node.lineno)


def _filter(name: str, node: nodes.Node, *args: nodes.Expr) -> nodes.Filter:
    return nodes.Filter(node, name, list(args), [], None, None, lineno=node.lineno)


@jinja2.pass_context  # so that nothing of it is worked out before
def _written(context: Context, value: Any) -> Any:
    del context
    return _charged(value)


@jinja2.pass_context
def _passed(context: Context, value: Any) -> Any:
    del context
    return _charged(value)


@jinja2.pass_context
def _joined(context: Context, values: list[Any]) -> str:
    del context
    _bound(_size(values), MOST_SIZE)
    return str(_charged("".join(str(one) for one in values)))


@jinja2.pass_context
def _turns(context: Context, values: Iterable[Any], cost: int) -> Iterator[Any]:
    del context
    for one in values:
        _spend(cost)
        yield one


def _guarded(name: str, function: Any) -> Callable[..., Any]:
    """Return a filter or test that is counted; in what it passes to Jinja it stays the same."""
    leading = hasattr(function, "jinja_pass_arg")  # Jinja's own object goes first

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        own, given = args[:leading], args[leading:]
        if name in {"join", "sum"}:
            given = tuple(_held(one) for one in given)
        if name == "sum" and not isinstance(
            kwargs.get("start", given[2] if len(given) > 2 else 0), int | float
        ):
            raise LimitError("a sum of what are no numbers")
        if name == "format" and isinstance(given[0], str):
            _check_percents(given[0])
        if given and name not in {"default", "d"}:
            _check_product(given[0], (*given[1:], *kwargs.values()))
        return _charged(function(*own, *given, **kwargs))

    return call


def _check_method(name: str, owner: object) -> None:
    if name == "translate":
        raise LimitError("the method translate")
    if name in {"format", "format_map"} and isinstance(owner, str):
        if _NESTED.search(owner):
            raise LimitError("a width that is not in its text")
        _check_widths(owner)


def _check_percents(text: str) -> None:
    if _STAR.search(text):
        raise LimitError("a width that is not in its text")
    _check_widths(text)


def _check_widths(text: str) -> None:
    for number in _NUMBERS.findall(text):
        _bound(int(number[:9]), _MOST_WIDTH)


def _check_product(first: object, rest: Sequence[object]) -> None:
    """Refuse what might be made of every part of ``first`` with all of ``rest``."""
    others = sum(
        abs(one) if isinstance(one, int) and not isinstance(one, bool) else _size(one)
        for one in rest
    )
    _bound((_size(first) + 1) * (others + 1), _MOST_PRODUCT)


def _held(value: Any) -> Any:
    """Return a value whose size can be told: what comes one by one as a list."""
    return list(islice(value, MOST_SIZE)) if isinstance(value, Iterator) else value


def _charged(value: Any) -> Any:
    _spend(1 + _size(value))
    return value


def _spend(work: int) -> None:
    spent = _spent.get()
    spent.work += work
    if spent.work > MOST_WORK:
        raise LimitError(f"more than {MOST_WORK:,} characters, items and turns of loops")
    if time.thread_time() > spent.end:
        raise LimitError(f"more than {MOST_S:g} seconds")


def _bound(size: int, most: int) -> None:
    if size > most:
        raise LimitError(f"a value that may be larger than {most:,}")


def _size(value: object) -> int:
    """Return how many characters and items a value has; a part counts wherever it stands."""
    if isinstance(value, str):  # nearly always
        _bound(len(value), MOST_SIZE)
        return len(value)
    total, waiting = 0, [(value, 0)]
    while waiting:
        one, depth = waiting.pop()
        parts: Iterable[object] = ()
        if isinstance(one, str | bytes | range):
            total += len(one)
        elif isinstance(one, int):
            _bound(one.bit_length(), _MOST_BITS)
            total += 1
        elif isinstance(one, Mapping):
            total += len(one)
            parts = (*one.keys(), *one.values())
        elif isinstance(one, list | tuple | AbstractSet | MappingView):
            total += len(one)
            parts = one if isinstance(one, Iterable) else ()
        else:
            total += 1
        _bound(total, MOST_SIZE)
        _bound(depth, _MOST_DEPTH)
        waiting.extend((part, depth + 1) for part in parts)
    return total
