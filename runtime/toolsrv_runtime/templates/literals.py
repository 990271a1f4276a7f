"""Bounded parser of JSON and Python literals, and of calls with literal arguments.

Models mix both notations, so one parser accepts both and records every departure from JSON as a
repair. It never evaluates anything: sets, bytes, complex numbers, names and calls inside a value
are refused. Time is linear in the length of the text, depth is capped.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final

MOST_DEPTH: Final = 48
"""Values in values. Python's own limit is about twenty times that."""
_MOST_DIGITS = 300

_SPACE = re.compile(r"\s*")
_COMMENT = re.compile(r"//[^\n]*|/\*.{0,2000}?\*/|#[^\n]*", re.DOTALL)
_NUMBER = re.compile(r"[-+]?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?")
_PADDED = re.compile(r"-?0\d+(?![\w.])")
_WORD = re.compile(r"[^\W\d]\w*")
_KEY = re.compile(r"[\w.$-]+")
_NAME = re.compile(r"[^\W\d][\w.-]*")
_ENDS = frozenset(" \t\r\n,;:)]}<`")
_AFTER_TEXT = re.compile(r"\s*(?:[,:;)\]}<]|\Z)")
_CONSTANTS = {"true": True, "false": False, "null": None}
_PYTHON = {"True": True, "False": False, "None": None}
_ESCAPES = {
    '"': '"',
    "'": "'",
    "\\": "\\",
    "/": "/",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
}
_CHUNKS = {
    '"': re.compile(r'[^"\\\n\r]*'),
    "'": re.compile(r"[^'\\\n\r]*"),
}
_PYTHON_ESCAPE = re.compile(r"\\x([0-9a-fA-F]{2})|\\U([0-9a-fA-F]{8})")
_HEX = re.compile(r"[0-9a-fA-F]{4}")


class LiteralError(ValueError):
    """The text is no literal. ``at`` is the offset where it stops being one."""

    def __init__(self, message: str, at: int) -> None:
        super().__init__(message)
        self.at = at


@dataclass(frozen=True, slots=True)
class Notation:
    """What is accepted beside JSON.

    ``delimiters``: markers that enclose text (FunctionGemma's ``<escape>``). ``bare_keys``: object
    keys without quotes, and ``=`` for ``:``. ``loose_quotes``: a quote ends a text only before a
    delimiter, so quotes inside quotes are read. ``closing``: what is open at the end is closed.
    """

    delimiters: tuple[str, ...] = ()
    bare_keys: bool = False
    loose_quotes: bool = False
    closing: bool = False


JSON: Final = Notation()


@dataclass(frozen=True, slots=True)
class Literal:
    """A value that was read, the offset after it, and the repairs that were needed."""

    value: Any
    end: int
    repairs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WrittenCall:
    """A call as a Python expression: the name, positional and named arguments."""

    name: str
    positional: tuple[Any, ...]
    named: dict[str, Any]
    start: int
    end: int


@dataclass(slots=True)
class _Reader:
    text: str
    at: int
    notation: Notation
    repairs: dict[str, None] = field(default_factory=dict)

    def fail(self, message: str) -> LiteralError:
        return LiteralError(message, self.at)

    def space(self) -> None:
        """Step over white space and comments."""
        while True:
            self.at = _SPACE.match(self.text, self.at).end()  # type: ignore[union-attr]
            if self.peek() not in ("/", "#"):
                return
            comment = _COMMENT.match(self.text, self.at)
            if comment is None:
                return
            self.repairs["comment"] = None
            self.at = comment.end()

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def take(self, character: str) -> bool:
        if self.text.startswith(character, self.at):
            self.at += len(character)
            return True
        return False

    def ended(self) -> bool:
        """Whether the text is over and what is open may be closed."""
        if self.at < len(self.text) or not self.notation.closing:
            return False
        self.repairs["closed at the end"] = None
        return True

    def value(self, depth: int = 0) -> Any:
        if depth > MOST_DEPTH:
            raise self.fail(f"nested deeper than {MOST_DEPTH}")
        self.space()
        character = self.peek()
        for marker in self.notation.delimiters:
            if self.take(marker):
                return self.enclosed(marker)
        if character == "{":
            return self.object(depth)
        if character == "[":
            return self.array("]", depth)
        if character == "(":
            self.repairs["Python literal"] = None
            return self.array(")", depth)
        if character in ('"', "'"):
            return self.string(character)
        return self.scalar()

    def enclosed(self, marker: str) -> str:
        end = self.text.find(marker, self.at)
        if end < 0:
            raise self.fail(f"no closing {marker}")
        value = self.text[self.at : end]
        self.at = end + len(marker)
        return value

    def object(self, depth: int) -> dict[str, Any]:
        self.at += 1
        result: dict[str, Any] = {}
        while True:
            self.space()
            if self.take("}") or self.ended():
                break
            if result and not self.comma("}"):
                break
            key = self.key()
            self.space()
            if self.take("=") if self.notation.bare_keys else False:
                self.repairs["= for :"] = None
            elif not self.take(":"):
                raise self.fail("expected ':' after a key")
            result[key] = self.value(depth + 1)
        return result

    def comma(self, closer: str) -> bool:
        """Step over a comma between items; False where it was the last before the closer."""
        if not self.take(","):
            raise self.fail(f"expected ',' or '{closer}'")
        self.space()
        if self.take(closer):
            self.repairs["trailing comma"] = None
            return False
        return not self.ended()

    def key(self) -> str:
        character = self.peek()
        if character in ('"', "'"):
            return self.string(character)
        for marker in self.notation.delimiters:
            if self.take(marker):
                return self.enclosed(marker)
        bare = _KEY.match(self.text, self.at) if self.notation.bare_keys else None
        if bare is None:
            raise self.fail("expected a key in quotes")
        self.at = bare.end()
        return bare[0]

    def array(self, closer: str, depth: int) -> list[Any]:
        self.at += 1
        result: list[Any] = []
        while True:
            self.space()
            if self.take(closer) or self.ended():
                return result
            if result and not self.comma(closer):
                return result
            result.append(self.value(depth + 1))

    def string(self, quote: str) -> str:
        if quote == "'":
            self.repairs["Python literal"] = None
        self.at += 1
        parts: list[str] = []
        chunk = _CHUNKS[quote]
        while True:
            found = chunk.match(self.text, self.at)
            if found is not None and found[0]:
                parts.append(found[0])
                self.at = found.end()
            character = self.peek()
            if character == quote:
                self.at += 1
                if not self.notation.loose_quotes or _AFTER_TEXT.match(self.text, self.at):
                    return "".join(parts)
                self.repairs["quotes inside quotes"] = None
                parts.append(quote)
            elif character == "\\":
                parts.append(self.escape())
            elif character:
                self.repairs["line break inside quotes"] = None
                parts.append(character)
                self.at += 1
            elif self.ended() and "".join(parts).rstrip()[-1:] not in ("}", "]"):
                return "".join(parts)
            else:
                raise self.fail("a text without a closing quote")

    def escape(self) -> str:
        character = self.text[self.at + 1 : self.at + 2]
        if character in _ESCAPES:
            self.at += 2
            if character == "'":
                self.repairs["Python literal"] = None
            return _ESCAPES[character]
        if (code := _PYTHON_ESCAPE.match(self.text, self.at)) is not None:
            point = int(code[1] or code[2], 16)
            if point <= 0x10FFFF and not 0xD800 <= point < 0xE000:
                self.repairs["Python literal"] = None
                self.at = code.end()
                return chr(point)
        if character != "u":
            raise self.fail("unknown escape")
        first = self.unit()
        if 0xD800 <= first < 0xDC00 and self.text.startswith("\\u", self.at):
            before = self.at
            second = self.unit()
            if 0xDC00 <= second < 0xE000:
                return chr(0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00))
            self.at = before
        return "\N{REPLACEMENT CHARACTER}" if 0xD800 <= first < 0xE000 else chr(first)

    def unit(self) -> int:
        digits = _HEX.match(self.text, self.at + 2)
        if digits is None:
            raise self.fail("unknown escape")
        self.at = digits.end()
        return int(digits[0], 16)

    def scalar(self) -> Any:
        word = _WORD.match(self.text, self.at)
        if word is not None:
            name = word[0]
            if name not in _CONSTANTS and name not in _PYTHON:
                raise self.fail("expected a value")
            if name in _PYTHON:
                self.repairs["Python literal"] = None
            self.at = word.end()
            self.boundary()
            return _CONSTANTS[name] if name in _CONSTANTS else _PYTHON[name]
        padded = _PADDED.match(self.text, self.at)
        if padded is not None:
            # No number in either notation. The digits are kept: a post code is not an octal number.
            self.repairs["leading zero"] = None
            self.at = padded.end()
            return padded[0]
        number = _NUMBER.match(self.text, self.at)
        if number is None or len(number[0]) > _MOST_DIGITS:
            raise self.fail("expected a value")
        self.at = number.end()
        self.boundary()
        if number[0][0] == "+":
            self.repairs["Python literal"] = None
        whole = not any(mark in number[0] for mark in ".eE")
        value = int(number[0]) if whole else float(number[0])
        if value in (float("inf"), float("-inf")):
            raise self.fail("a number out of range")
        return value

    def boundary(self) -> None:
        if self.at < len(self.text) and self.text[self.at] not in _ENDS:
            raise self.fail("expected ',' or a closing bracket")


def read_literal(text: str, start: int = 0, notation: Notation = JSON) -> Literal:
    """Return the value that begins at ``start``; what follows it is not looked at.

    Raises:
        LiteralError: none begins there.
    """
    reader = _Reader(text, start, notation)
    value = reader.value()
    return Literal(value, reader.at, tuple(reader.repairs))


def read_lenient(
    text: str, start: int = 0, notation: Notation = JSON, *, closing: bool = False
) -> Literal:
    """Return the value by the first rung of the repair ladder that reads one.

    As it is (with what the notation records), quotes inside quotes, and where ``closing`` is set
    with what is open at the end closed.

    Raises:
        LiteralError: no rung does; the error is the first one's.
    """
    try:
        return read_literal(text, start, notation)
    except LiteralError as error:
        first = error
    delimiters, bare = notation.delimiters, notation.bare_keys
    rungs = [Notation(delimiters, bare, loose_quotes=True)]
    if closing:
        rungs += [
            Notation(delimiters, bare, closing=True),
            Notation(delimiters, bare, loose_quotes=True, closing=True),
        ]
    for rung in rungs:
        try:
            return read_literal(text, start, rung)
        except LiteralError:
            continue
    raise first


def read_call(text: str, start: int = 0, *, loose_quotes: bool = False) -> WrittenCall:
    """Return the Python call with literal arguments that begins at ``start``.

    Reserved words are allowed as names of arguments (``from=``).

    Raises:
        LiteralError: none begins there, or an argument is more than a literal.
    """
    name = _NAME.match(text, start)
    if name is None or text[name.end() : name.end() + 1] != "(":
        raise LiteralError("expected a call", start)
    reader = _Reader(text, name.end() + 1, Notation(loose_quotes=loose_quotes))
    positional: list[Any] = []
    named: dict[str, Any] = {}
    first = True
    while True:
        reader.space()
        if reader.take(")"):
            break
        if not first and not reader.comma(")"):
            break
        first = False
        word = _WORD.match(text, reader.at)
        equals = _SPACE.match(text, word.end()).end() if word else 0  # type: ignore[union-attr]
        if word is None or text[equals : equals + 1] != "=" or text[equals + 1 : equals + 2] == "=":
            if named:
                raise reader.fail("a positional argument after a named one")
            positional.append(reader.value())
            continue
        if word[0] in named:
            raise reader.fail(f"the argument {word[0][:80]} twice")
        reader.at = equals + 1
        named[word[0]] = reader.value()
    return WrittenCall(name[0], tuple(positional), named, start, reader.at)


def read_calls(text: str, start: int = 0) -> tuple[list[WrittenCall], int]:
    """Return the Python calls from ``start`` on, in a list or one after another, and their end.

    Raises:
        LiteralError: there is none, or the list is not closed.
    """
    try:
        return _calls(text, start, loose_quotes=False)
    except LiteralError as error:
        first = error
    try:
        return _calls(text, start, loose_quotes=True)
    except LiteralError:
        raise first from None


def _calls(text: str, start: int, *, loose_quotes: bool) -> tuple[list[WrittenCall], int]:
    at = _SPACE.match(text, start).end()  # type: ignore[union-attr]
    listed = text.startswith("[", at)
    at += listed
    calls: list[WrittenCall] = []
    while True:
        at = _SPACE.match(text, at).end()  # type: ignore[union-attr]
        if listed and calls and text.startswith("]", at):
            return calls, at + 1
        if calls and (listed or text.startswith((",", ";"), at)):
            if not text.startswith((",", ";"), at):
                raise LiteralError("expected ',' or ']'", at)
            at = _SPACE.match(text, at + 1).end()  # type: ignore[union-attr]
            if listed and text.startswith("]", at):
                return calls, at + 1
        try:
            call = read_call(text, at, loose_quotes=loose_quotes)
        except LiteralError:
            if calls and not listed:
                return calls, calls[-1].end
            raise
        calls.append(call)
        at = call.end
