"""Syntax of a model's tool calls: the parts of a call, written and read. Pure.

A reply with calls is ``begin call (separator call)* end``; a call is a sequence of literals and
slots (name, arguments, id, index). Arguments are one JSON object, or pairs: keys and values between
tags, or a Python call's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal

from toolsrv_runtime.contract.models import ToolCall
from toolsrv_runtime.templates.literals import LiteralError, read_lenient
from toolsrv_runtime.templates.marking import to_json

_WORDS = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_KEY = re.compile(r"[^\s<>=:,\"'(){}\[\]]+")
_PADDING = re.compile(r"\A(-?)0+(?=\d)")


@dataclass(frozen=True, slots=True)
class PairArguments:
    """Arguments as ``open key middle value close (separator …)*``.

    Texts stand between ``quote`` and ``unquote``; ``escape`` says how they are escaped there.
    ``words``: how true, false and null are spelled. ``nested``: how lists and
    objects are written: as JSON, as Python literals, or in the same way as the arguments
    (``same``). ``ordered``: keys are sorted.
    """

    open: str = ""
    middle: str = "="
    close: str = ""
    separator: str = ", "
    quote: str = ""
    unquote: str = ""
    escape: Literal["none", "json", "python"] = "none"
    words: tuple[str, str, str] = ("true", "false", "null")
    nested: Literal["json", "python", "same"] = "json"
    ordered: bool = False

    def write(self, arguments: Mapping[str, Any], data: Callable[[Any], Any]) -> str:
        """Return the arguments as text; ``data`` maps names and values."""
        keys = sorted(arguments) if self.ordered else list(arguments)
        pairs = (
            f"{self.open}{data(key)}{self.middle}{self._value(arguments[key], data)}{self.close}"
            for key in keys
        )
        return self.separator.join(pairs)

    def write_value(self, value: Any) -> str:
        """Return one value as text."""
        return self._value(value, lambda one: one)

    def _value(self, value: Any, data: Callable[[Any], Any]) -> str:
        if isinstance(value, str):
            return f"{self.quote}{self._text(value, data)}{self.unquote}"
        if value is None or isinstance(value, bool):
            return self.words[2 if value is None else not value]
        if isinstance(value, dict | list):
            return self._nested(value, data)
        return to_json(value)

    def _text(self, value: str, data: Callable[[Any], Any]) -> str:
        match self.escape:
            case "json":
                return to_json(data(value))[1:-1]
            case "python":
                return str(data(repr(value)[1:-1] if self.unquote == "'" else to_json(value)[1:-1]))
            case _:
                return str(data(value))

    def _nested(self, value: Any, data: Callable[[Any], Any]) -> str:
        if self.nested == "json":
            return to_json(data(value))
        if self.nested == "python":
            return repr(data(value))
        if isinstance(value, list):
            return f"[{','.join(self._value(one, data) for one in value)}]"
        keys = sorted(value) if self.ordered else list(value)
        inner = ",".join(f"{data(key)}{self.middle}{self._value(value[key], data)}" for key in keys)
        return f"{{{inner}}}"

    def read(self, text: str, at: int, schema: Mapping[str, Any]) -> tuple[Any, int] | None:
        """Return the arguments at ``at`` and where they end; no pairs are an empty object."""
        properties = schema.get("properties")
        kinds = properties if isinstance(properties, Mapping) else {}
        found: dict[str, Any] = {}
        while True:
            start = _after(text, at, self.open)
            key = None if start < 0 else _KEY.match(text, start)
            value_at = -1 if key is None else _after(text, key.end(), self.middle)
            if key is None or value_at < 0:
                return found, at
            value = self._read_value(text, value_at, kinds.get(key[0], {}))
            if value is None:
                return None
            found[key[0]], at = value
            following = _after(text, at, self.separator)
            if following < 0 or (self.separator.strip() == "" and self.open.strip() == ""):
                return found, at
            at = following if self.separator.strip() else at

    def _read_value(self, text: str, at: int, schema: Mapping[str, Any]) -> tuple[Any, int] | None:
        if self.close.strip() and not self.quote:
            return self._read_raw(text, at, schema)
        value = self._literal(text, at)
        if value is None:
            return None
        end = _after(text, value[1], self.close)
        return value[0], end if end >= 0 else value[1]

    def _read_raw(self, text: str, at: int, schema: Mapping[str, Any]) -> tuple[Any, int] | None:
        """Read up to the last closing tag before the next pair opens, or the first without one."""
        tag = self.close.strip()
        first = text.find(tag, at)
        if first < 0:
            return None
        end = first
        while (later := text.find(tag, end + len(tag))) >= 0:
            between = text[end + len(tag) : later]
            if (self.open.strip() and self.open.strip() in between) or not _plain(between):
                break
            end = later
        lead = len(self.close) - len(self.close.lstrip())
        raw = text[at:end]
        if lead and raw.endswith(self.close[:lead]):
            raw = raw[:-lead]
        after = end + len(tag)
        trail = self.close[lead + len(tag) :]
        if trail and text.startswith(trail, after):
            after += len(trail)
        return typed(raw, schema), after

    def _literal(self, text: str, at: int) -> tuple[Any, int] | None:
        if self.quote and text.startswith(self.quote, at) and self.escape == "none":
            begin = at + len(self.quote)
            end = text.find(self.unquote, begin)
            return None if end < 0 else (text[begin:end], end + len(self.unquote))
        for word, value in _WORDS.items():
            if text.startswith(word, at):
                return value, at + len(word)
        number = _NUMBER.match(text, at)
        if number:
            return json.loads(_PADDING.sub(r"\1", number[0])), number.end()
        if self.nested == "same" and text[at : at + 1] in {"[", "{"}:
            return self._read_same(text, at)
        return quoted(text, at)

    def _read_same(self, text: str, at: int) -> tuple[Any, int] | None:
        listed = text[at] == "["
        items: list[Any] = []
        pairs: dict[str, Any] = {}
        at += 1
        while text[at : at + 1] not in {"]", "}", ""}:
            if not listed:
                key = _KEY.match(text, at)
                if key is None or not text.startswith(self.middle, key.end()):
                    return None
                at = key.end() + len(self.middle)
            value = self._literal(text, at)
            if value is None:
                return None
            if listed:
                items.append(value[0])
            else:
                pairs[key[0]] = value[0]  # type: ignore[index]
            at = value[1] + (text[value[1] : value[1] + 1] == ",")
        return (items if listed else pairs), at + 1


def typed(raw: str, schema: Any) -> Any:
    """Return a raw argument as its schema wants it: a string stays text, else JSON or a literal."""
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    if kind == "string":
        return raw
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        pass
    if raw in _WORDS:
        return _WORDS[raw]
    if kind in {"array", "object"}:
        value = quoted(raw, 0)
        if value is not None and value[1] == len(raw.rstrip()):
            return value[0]
    return raw


def quoted(text: str, at: int) -> tuple[Any, int] | None:
    """Return the JSON value or Python literal at ``at`` and where it ends, or None."""
    try:
        found = read_lenient(text, at)
    except LiteralError:
        return None
    return found.value, found.end


def _plain(between: str) -> bool:
    """Whether what stands between two closing tags may still be a value: no other tag closes."""
    return "</function>" not in between and "</tool_call>" not in between


def _after(text: str, at: int, literal: str) -> int:
    """Return where ``literal`` at ``at`` ends, white space free around it; -1 where it is not."""
    if text.startswith(literal, at):
        return at + len(literal)
    bare = literal.strip()
    while at < len(text) and text[at].isspace() and bare:
        at += 1
    return at + len(bare) if bare and text.startswith(bare, at) else -1


_BLANKS = re.compile(r"\s+")
_JSON_SIGNS = re.compile(r"([{}\[\]:,])")
_NAME = re.compile(r"""[^\s"'<>{}()\[\]=,]+""")
_ID = re.compile(r"[A-Za-z0-9_.:-]+")


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def _same(value: Any) -> Any:
    return value


class Slot(Enum):
    """What differs from call to call."""

    NAME = "name"
    ARGUMENTS = "arguments"
    ID = "id"
    INDEX = "index"


@dataclass(frozen=True, slots=True)
class JsonArguments:
    """Arguments as one JSON object with these separators; ``ordered``: keys are sorted."""

    item_separator: str = ", "
    key_separator: str = ": "
    indent: int | None = None
    ordered: bool = False

    def write(self, arguments: Mapping[str, Any], data: Callable[[Any], Any]) -> str:
        """Return the arguments as text; ``data`` maps values, as ``marking.marked`` does."""
        spelled = [
            self.item_separator.rstrip() if self.indent else self.item_separator,
            self.key_separator,
        ]
        return to_json(data(dict(arguments)), None, self.indent, spelled, self.ordered)

    def read(self, text: str, at: int, schema: Mapping[str, Any]) -> tuple[Any, int] | None:
        """Return the value at ``at`` and where it ends, or None where there is none."""
        del schema
        at = _skip(text, at)
        try:
            return _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            return None


@dataclass(frozen=True, slots=True)
class FoundCall:
    """A call as it stands in a reply; ``arguments`` need not be an object."""

    name: str
    arguments: Any
    id: str = ""


@dataclass(frozen=True, slots=True)
class CallSyntax:
    """See the module. ``learnt``: from a template's renderings; else the generic syntax.

    ``several``: whether a turn may hold more than one call.
    """

    begin: str = ""
    parts: tuple[str | Slot, ...] = (
        '<tool_call>\n{"name": "',
        Slot.NAME,
        '", "arguments": ',
        Slot.ARGUMENTS,
        "}\n</tool_call>",
    )
    separator: str = "\n"
    end: str = ""
    arguments: JsonArguments | PairArguments = field(default_factory=JsonArguments)
    several: bool = True
    learnt: bool = False

    def describe(self) -> str:
        """Return the syntax in one line, for records."""
        if not self.learnt:
            return "generic"
        shown = "".join(f"{{{one.value}}}" if isinstance(one, Slot) else one for one in self.parts)
        return f"learnt: {self.begin}{shown}{self.end}".replace("\n", "\\n")

    @property
    def opener(self) -> str:
        """The text with which calls begin, up to the first slot."""
        first = self.parts[0] if isinstance(self.parts[0], str) else ""
        return self.begin + first

    @property
    def markers(self) -> str:
        """Every literal of the syntax, one a line."""
        return "\n".join(
            [self.begin, self.separator, self.end, *(x for x in self.parts if isinstance(x, str))]
        )

    def write(self, calls: Sequence[ToolCall], data: Callable[[Any], Any] = _same) -> str:
        """Return calls as a model writes them; ``data`` maps names and arguments."""
        texts = [self._write(call, data, index) for index, call in enumerate(calls)]
        return self.begin + self.separator.join(texts) + self.end if texts else ""

    def _write(self, call: ToolCall, data: Callable[[Any], Any], index: int) -> str:
        slots = {
            Slot.NAME: str(data(call.name)),
            Slot.ARGUMENTS: self.arguments.write(call.arguments, data),
            Slot.ID: call.id,
            Slot.INDEX: str(index),
        }
        return "".join(slots[one] if isinstance(one, Slot) else one for one in self.parts)

    def read(
        self, text: str, schemas: Mapping[str, Mapping[str, Any]]
    ) -> tuple[list[FoundCall], str] | None:
        """Return the calls in a reply and the text around them, or None where there are none.

        White space around JSON signs and markers may differ from what was learnt.
        """
        opener = self.opener.strip()
        if not opener:
            return None
        found = _lenient(opener).search(text)
        if found is None or (
            opener[0] in "{[" and not _marker(opener) and text[: found.start()].strip()
        ):
            return None
        at = found.start()
        before = text[:at]
        begun = _lenient(self.begin).match(text, at)
        at = begun.end() if begun else at
        calls: list[FoundCall] = []
        while (one := self._read(text, at, schemas)) is not None:
            call, at = one
            calls.append(call)
            parted = _lenient(self.separator.strip()).match(text, at)
            if parted is None:
                break
            at = parted.end()
        if not calls:
            return None
        ended = _lenient(self.end).match(text, at)
        return calls, before + text[ended.end() if ended else at :]

    def _read(
        self, text: str, at: int, schemas: Mapping[str, Mapping[str, Any]]
    ) -> tuple[FoundCall, int] | None:
        name, call_id, arguments = "", "", None
        last = len(self.parts) - 1
        for index, part in enumerate(self.parts):
            if part is Slot.ARGUMENTS:
                value = self.arguments.read(text, at, schemas.get(name, {}))
                if value is None:
                    return None
                arguments, at = value
                continue
            if isinstance(part, str):
                found = _lenient(part).match(text, at)
                if found is None and index == last and not text[at:].strip():
                    continue  # the closer is left out at the end of a reply
            else:
                found = (_NAME if part is Slot.NAME else _ID).match(text, at)
            if found is None:
                return None
            at = found.end()
            if part is Slot.NAME:
                name = found[0]
            elif part is Slot.ID:
                call_id = found[0]
        return FoundCall(name, arguments, call_id), at


GENERIC = CallSyntax()
"""The syntax of models whose template has none: the one that most of them are trained on."""


def _skip(text: str, at: int) -> int:
    found = _BLANKS.match(text, at)
    return found.end() if found else at


def _marker(opener: str) -> bool:
    """Whether an opener is more than JSON: ``[TOOL_CALLS][{"name": "`` is."""
    return bool(re.match(r"\[/?[A-Z_]{3,}\]", opener))


_PATTERNS: dict[str, re.Pattern[str]] = {}


def _lenient(literal: str) -> re.Pattern[str]:
    """Return a pattern of a literal in which white space is free where JSON lets it be."""
    known = _PATTERNS.get(literal)
    if known is None:
        words = _JSON_SIGNS.sub(r" \1 ", literal).split()
        tight = r"\s*".join(re.escape(word) for word in words)
        lead = r"\s*" if literal[:1].isspace() or literal[:1] in '{}[]:,"' else ""
        known = re.compile(lead + tight + (r"\s*" if literal[-1:].isspace() else ""))
        if len(_PATTERNS) < 1000:
            _PATTERNS[literal] = known
    return known
