"""Match Python calls against an APIBench corpus by AST sub-trees, as Gorilla's evaluation does.

A call names an API when some call in it has the API's function and holds each argument that
identifies the API: repository and model of Torch Hub, every argument of Hugging Face and of
TensorFlow Hub. As in Gorilla's scripts (``eval/eval-scripts/ast_eval_*.py``) an argument is held
when its text stands in the call's, and the first API of the corpus that matches counts. Unlike
there, a function that the text does not call never matches; the scripts then compare with an
arbitrary part of the text. Text is parsed, never executed.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

Domain = Literal["torchhub", "tensorflowhub", "huggingface"]

TEXT_LIMIT = 4_000
"""Characters of a text that are parsed."""
_CALL = re.compile(r"[A-Za-z_][\w.]*(?=\s*\()")
_KEYWORD = re.compile(r"\s*([A-Za-z_]\w*)\s*=(?!=)\s*(.*)", re.DOTALL)
_OPEN, _CLOSE = "([{", ")]}"


@dataclass(frozen=True, slots=True)
class Call:
    """One call: the function's text, each argument's text, and the whole text."""

    function: str
    arguments: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Pattern:
    """What a call must have to name an API: its function, and texts that it holds."""

    function: str
    held: tuple[str, ...]

    def matches(self, call: Call) -> bool:
        """Whether a call of the same function holds every text."""
        return call.function == self.function and all(one in call.text for one in self.held)


def pattern(api_call: str, domain: Domain) -> Pattern | None:
    """Return the pattern of a corpus entry's call; None where it has nothing to identify it."""
    call = next(_scanned(api_call[:TEXT_LIMIT]), None)
    if call is None:
        return None
    held = tuple(one.strip("'") for one in _identifying(call.arguments, domain))
    return Pattern(call.function, held) if held else None


def match(text: str, patterns: Sequence[Pattern | None]) -> int:
    """Return the index of the first pattern that a text matches, -1 for none.

    Of several calls of one function the last statement's counts, and of these the outermost.
    """
    first: dict[str, Call] = {}
    for call in calls(text):
        first.setdefault(call.function, call)
    for at, one in enumerate(patterns):
        if one is not None and one.function in first and one.matches(first[one.function]):
            return at
    return -1


def calls(text: str) -> list[Call]:
    """Return the calls of a Python text: later statements first, an outer call before inner ones.

    Where the text is no Python as a whole, its calls are found by their brackets. Only the first
    ``TEXT_LIMIT`` characters count.
    """
    text = text[:TEXT_LIMIT]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes in a model's strings
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return list(_nested(text))
    return list(_parsed(tree, text))


def _parsed(tree: ast.AST, text: str) -> Iterator[Call]:
    stack = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Call):
            whole = ast.get_source_segment(text, node) or ""
            function = ast.get_source_segment(text, node.func) or ""
            yield Call(function, (), whole)
        stack.extend(ast.iter_child_nodes(node))


def _nested(text: str) -> Iterator[Call]:
    """Yield the calls of a text by its brackets, in the order of ``calls``."""
    stack = list(_scanned(text))
    while stack:
        call = stack.pop()
        yield call
        stack.extend(_scanned(call.text[len(call.function) :]))


def _scanned(text: str) -> Iterator[Call]:
    """Yield the outermost calls of a text, left to right, whatever stands around them."""
    at = 0
    while (found := _CALL.search(text, at)) is not None:
        start = text.index("(", found.end()) + 1
        parts, end = _split(text, start)
        yield Call(found.group(), tuple(parts), text[found.start() : end])
        at = end


def _split(text: str, start: int) -> tuple[list[str], int]:
    """Return the arguments from ``start`` on, and where the bracket before it has been closed."""
    parts: list[str] = []
    depth, quote, begun, at = 0, "", start, start
    while at < len(text):
        sign = text[at]
        if quote:
            at += sign == "\\"
            quote = "" if sign == quote else quote
        elif sign in "'\"":
            quote = sign
        elif sign in _OPEN:
            depth += 1
        elif sign in _CLOSE and depth:
            depth -= 1
        elif sign in _CLOSE or (sign == "," and not depth):
            parts.append(text[begun:at].strip())
            begun = at + 1
            if sign != ",":
                return [one for one in parts if one], at + 1
        at += 1
    parts.append(text[begun:].strip().removesuffix(")"))
    return [one for one in parts if one], len(text)


def _identifying(arguments: Sequence[str], domain: Domain) -> Iterator[str]:
    for one in arguments:
        named = _KEYWORD.fullmatch(one)
        if domain == "torchhub":
            if named and named[1] in ("repo_or_dir", "model"):
                yield named[2]
        elif domain == "tensorflowhub":
            yield named[2] if named and named[1] == "model" else one
        else:
            yield named[2] if named else one
