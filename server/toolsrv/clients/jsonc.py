"""Set or remove one entry of a JSON file; comments and all else stay as they are.

VS Code and Cursor read JSON with comments and trailing commas, so a file is scanned, not parsed
and written anew: only the characters of our entry change. Pure functions of text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

_SPACE = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_SCALAR = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")
_REST_OF_LINE = re.compile(r"[ \t]*(?://[^\n]*?|/\*[^\n]*?\*/)?[ \t]*(?=\r?\n)")
_DEEPEST = 200


class JsoncError(ValueError):
    """The text is no JSON, not even with comments; ``position`` is where."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.message = message
        self.position = position


@dataclass
class Value:
    """A value with its place in the text; ``members`` are an object's, else None."""

    start: int
    end: int = 0
    plain: Any = None
    members: dict[str, Member] | None = None


@dataclass
class Member:
    """A key and its value; ``comma`` is the place of the comma after it, -1 without one."""

    start: int
    value: Value
    comma: int = field(default=-1)


def parse(text: str) -> Value:
    """Return the value of a text; null, at its end, of one with nothing but blanks and comments.

    Raises:
        JsoncError: It is none.
    """
    reader = _Reader(text)
    start = reader.skip(0)
    if start == len(text):
        return Value(start, start)
    value = reader.value(start, 0)
    end = reader.skip(value.end)
    if end != len(text):
        raise JsoncError("something follows the end", end)
    return value


def with_entry(text: str, keys: Sequence[str], entry: Any) -> str:
    """Return the text with ``entry`` at the path ``keys``; missing objects are made.

    Null counts as an empty object.

    Raises:
        JsoncError: It is no JSON, or what stands on the way is no object.
    """
    text = _with_objects(text, keys)
    node = parse(text)
    unit = _unit(text)
    for depth, key in enumerate(keys):
        if node.members is None:
            raise JsoncError(f"{'.'.join(keys[:depth]) or 'the file'} is not an object", node.start)
        member = node.members.get(key)
        if member is None:
            value = entry
            for inner in reversed(keys[depth + 1 :]):
                value = {inner: value}
            return _added(text, node, key, value, unit, depth)
        node = member.value
    dumped = _dumped(entry, unit, len(keys))
    if "\r\n" in text:
        dumped = dumped.replace("\n", "\r\n")
    return text[: node.start] + dumped + text[node.end :]


def _with_objects(text: str, keys: Sequence[str]) -> str:
    """Return the text with ``{}`` for a null on the way to the last of the keys."""
    if not text.strip():
        return "{}\n"
    for depth in range(len(keys)):
        node = parse(text)
        for key in keys[:depth]:
            member = (node.members or {}).get(key)
            if member is None:
                return text
            node = member.value
        if node.members is None and node.plain is None:
            blank = node.start == node.end  # nothing but comments, the last of which may be open
            before = "\n" if blank and not text.endswith("\n") else ""
            after = "\n" if blank else ""
            text = f"{text[: node.start]}{before}{{}}{after}{text[node.end :]}"
    return text


def without_entry(text: str, keys: Sequence[str]) -> str:
    """Return the text without the member at the path ``keys``; as it is where there is none.

    Raises:
        JsoncError: It is no JSON.
    """
    node = parse(text)
    for key in keys[:-1]:
        member = (node.members or {}).get(key)
        if member is None:
            return text
        node = member.value
    members = node.members or {}
    gone = members.get(keys[-1])
    if gone is None:
        return text
    start, end = gone.start, gone.value.end
    if gone.comma >= 0:
        end = gone.comma + 1
    else:  # the last one: the comma before it goes too, unless it is the only one
        before = [one for one in members.values() if one.start < start]
        if before and before[-1].comma >= 0:
            comma = before[-1].comma
            text = text[:comma] + text[comma + 1 :]
            start, end = start - 1, end - 1
    line = text.rfind("\n", 0, start)
    if not text[line + 1 : start].strip() and (end == len(text) or text[end] in "\r\n"):
        start = max(line, 0)
        start -= text[start - 1 : start] == "\r"
    return text[:start] + text[end:]


def _added(text: str, node: Value, key: str, value: Any, unit: str, depth: int) -> str:
    line = f"\n{unit * (depth + 1)}{json.dumps(key)}: {_dumped(value, unit, depth + 1)}"
    if "\r\n" in text:
        line = line.replace("\n", "\r\n")
    members = list((node.members or {}).values())
    if not members:
        close = node.end - 1
        inside = text[node.start + 1 : close].rstrip()
        tail = "\r\n" if "\r\n" in text else "\n"
        return f"{text[: node.start + 1]}{inside}{line}{tail}{unit * depth}{text[close:]}"
    last = members[-1]
    trailing = last.comma >= 0  # as in VS Code's own files: ours ends in one too
    end = last.comma + 1 if trailing else last.value.end
    rest = _REST_OF_LINE.match(text, end)
    at = rest.end() if rest else end
    comma = "" if trailing else ","
    return f"{text[:end]}{comma}{text[end:at]}{line}{',' * trailing}{text[at:]}"


def _dumped(value: Any, unit: str, depth: int) -> str:
    text = json.dumps(value, indent=unit, ensure_ascii=False)
    return text.replace("\n", "\n" + unit * depth)


def _unit(text: str) -> str:
    found = re.search(r'\n([ \t]+)["/]', text)
    return found[1] if found else "  "


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text

    def skip(self, at: int) -> int:
        """Pass over blanks and comments (and a byte order mark)."""
        at += self._text.startswith("\ufeff", at)
        found = _SPACE.match(self._text, at)
        return found.end() if found else at

    def value(self, at: int, depth: int) -> Value:
        first = self._text[at : at + 1]
        if depth > _DEEPEST:
            raise JsoncError("nested too deeply", at)
        if first == "{":
            return self._object(at, depth)
        if first == "[":
            return self._list(at, depth)
        found = (_STRING if first == '"' else _SCALAR).match(self._text, at)
        if found is None:
            raise JsoncError("a value is missing here" if first else "the file is cut off", at)
        try:
            return Value(at, found.end(), json.loads(found[0]))
        except ValueError as error:
            raise JsoncError("not a string", at) from error

    def _object(self, at: int, depth: int) -> Value:
        members: dict[str, Member] = {}
        value = Value(at, plain={}, members=members)
        at = self.skip(at + 1)
        while self._text[at : at + 1] != "}":
            start = at
            key = _STRING.match(self._text, at)
            if key is None:
                raise JsoncError('a key in quotes or "}" is missing here', at)
            at = self.skip(key.end())
            if self._text[at : at + 1] != ":":
                raise JsoncError('":" is missing here', at)
            inner = self.value(self.skip(at + 1), depth + 1)
            name = json.loads(key[0])
            member = members[name] = Member(start, inner)
            value.plain[name] = inner.plain
            at, member.comma = self._after(inner.end, "}")
        value.end = at + 1
        return value

    def _list(self, at: int, depth: int) -> Value:
        value = Value(at, plain=[])
        at = self.skip(at + 1)
        while self._text[at : at + 1] != "]":
            inner = self.value(at, depth + 1)
            value.plain.append(inner.plain)
            at, _ = self._after(inner.end, "]")
        value.end = at + 1
        return value

    def _after(self, at: int, close: str) -> tuple[int, int]:
        """Return the place after a member's comma, or of the closing bracket; and of the comma."""
        at = self.skip(at)
        if self._text[at : at + 1] == ",":
            return self.skip(at + 1), at
        if self._text[at : at + 1] != close:
            raise JsoncError(f'"," or "{close}" is missing here', at)
        return at, -1
