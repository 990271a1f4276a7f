"""Readers of the forms in which models write calls: JSON, tagged arguments, Python, names + JSON.

Each reads from an offset and returns the calls with the offset after them. A reader knows neither
markers nor which text surrounds a call; ``dialects`` does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from toolsrv_runtime.templates.literals import (
    LiteralError,
    Notation,
    read_calls,
    read_lenient,
)

MOST_CALLS: Final = 64

_ARGUMENTS = ("arguments", "parameters", "args", "input", "params")
_NAMES = ("name", "tool_name", "function_name", "function", "tool")
_BESIDE = frozenset(
    (*_ARGUMENTS, *_NAMES, "id", "type", "tool_call_id", "call_id", "index", "description")
)
_SPACE = re.compile(r"\s*")
_JOINT = re.compile(r"[\s,;]*(?=\{|\[\s*\{)")
_FENCE = re.compile(r"\s*```[\w-]*\s*(?=[{\[])")
_FENCE_END = re.compile(r"\s*```")
_REST = re.compile(r"[\s}\]]*")
_DOUBLED = re.compile(r"\{(?=\{\s*[\"'])")
_NAME_JSON = re.compile(r"\s*([^\W\d][\w.:/-]{0,255})\s*(?=\{)")
_PYTHON = re.compile(r"\s*\[?\s*[^\W\d][\w.-]{0,255}\(")
_FUNCTION = re.compile(r"\s*<function=\s*[\"']?([^>\n\"']{1,256})[\"']?\s*>")
_FUNCTION_END = re.compile(r"\s*</function>")
_INVOKE = re.compile(r"\s*<invoke\s+name=[\"']([^\"'\n]{1,256})[\"']\s*>")
_INVOKE_END = re.compile(r"\s*</invoke>")
_CALL_END = re.compile(r"\s*</tool_call>")
_GLM = re.compile(r"\s*([^\s<>{}\[\]]{1,256})\s*(?=<arg_key>|</tool_call>)")


class UnreadableError(ValueError):
    """No call can be read. ``started``: one was begun, so the text is more than a mention."""

    def __init__(self, message: str, *, started: bool) -> None:
        super().__init__(message)
        self.started = started


@dataclass(frozen=True, slots=True)
class Written:
    """A call as it is written: nothing is looked up, decoded or cast yet.

    ``tagged``: the values are raw text, typed by the schema later. ``positional`` arguments have
    no names. ``explicit``: an object that has a name and arguments and nothing else.
    """

    name: str
    arguments: object = None
    positional: tuple[Any, ...] = ()
    tagged: bool = False
    explicit: bool = False
    id: object = None


@dataclass(frozen=True, slots=True)
class ReadCalls:
    """The calls that were read, the offset after them, and the repairs that were needed."""

    calls: tuple[Written, ...]
    end: int
    repairs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReaderOptions:
    """What a reader may do: ``closing`` what is open at the end; ``offered`` knows tools' names."""

    closing: bool
    offered: Callable[[str], bool]


Reader = Callable[[str, int, ReaderOptions], ReadCalls]


@dataclass(frozen=True, slots=True)
class _Tags:
    """Tagged arguments: a key's opener (group 1 is the key), its closer, what may follow it.

    A value ends at the last closer before ``follow``, so a closer inside a value is text.
    ``loose`` finds the end where a closer is missing. ``lines``: a value stands on lines of its
    own, so one line break on each side is syntax.
    """

    key: re.Pattern[str]
    closer: str
    follow: re.Pattern[str]
    loose: re.Pattern[str]
    lines: bool


_CODER = _Tags(
    re.compile(r"\s*<parameter=\s*[\"']?([^>\n\"']{1,256})[\"']?\s*>"),
    "</parameter>",
    re.compile(
        r"(?<=</parameter>)\s*<parameter=[^>\n]+>"
        r"|(?<=</function>)\s*(?:</tool_call>\s*)?(?:<tool_call>\s*)?<function="
    ),
    re.compile(r"\n?<parameter=|\n?</function>|\n?</tool_call>"),
    lines=True,
)
_PAIRS = _Tags(
    re.compile(r"\s*<arg_key>\s*([^<\n]{1,256})</arg_key>\s*<arg_value>"),
    "</arg_value>",
    re.compile(r"(?<=</arg_value>)\s*<arg_key>|(?<=</tool_call>)\s*<tool_call>"),
    re.compile(r"\n?<arg_key>|\n?</tool_call>"),
    lines=False,
)
_INVOKED = _Tags(
    re.compile(r"\s*<parameter\s+name=[\"']([^\"'\n]{1,256})[\"'][^>\n]{0,80}>"),
    "</parameter>",
    re.compile(r"(?<=</parameter>)\s*<parameter\s+name=|(?<=</invoke>)\s*<invoke\s"),
    re.compile(r"\n?<parameter\s|\n?</invoke>"),
    lines=False,
)


def json_calls(text: str, at: int, reading: ReaderOptions) -> ReadCalls:
    """Read calls as JSON: an object, an array, or several joined by ``;``, ``,`` or white space."""
    fence = _FENCE.match(text, at)
    at = fence.end() if fence else _SPACE.match(text, at).end()  # type: ignore[union-attr]
    if text[at : at + 1] not in ("{", "["):
        raise UnreadableError("expected a JSON object", started=False)
    calls: list[Written] = []
    repairs: dict[str, None] = {"code fence": None} if fence else {}
    while True:
        value, at, notes = read_value(text, at, reading)
        repairs |= dict.fromkeys(notes)
        found = calls_of(value)
        if found is None:
            raise UnreadableError("expected an object with name and arguments", started=True)
        calls += found
        if len(calls) > MOST_CALLS:
            raise UnreadableError(f"more than {MOST_CALLS} calls", started=True)
        joint = _JOINT.match(text, at)
        if joint is None:
            break
        at = joint.end()
    if fence and (closer := _FENCE_END.match(text, at)):
        at = closer.end()
    return ReadCalls(tuple(calls), at, tuple(repairs))


def read_value(text: str, at: int, reading: ReaderOptions) -> tuple[Any, int, tuple[str, ...]]:
    """Return the JSON value at ``at``, the offset after it, and repairs.

    Raises:
        UnreadableError: none begins there.
    """
    doubled = _DOUBLED.match(text, at)
    if doubled is not None:
        # The instructions in one published template show ``{{"name"``, and models copy it.
        try:
            read = read_lenient(text, doubled.end())
        except LiteralError as error:
            raise UnreadableError(_where(error), started=True) from None
        end = _SPACE.match(text, read.end).end()  # type: ignore[union-attr]
        end += text.startswith("}", end)
        return read.value, end, (*read.repairs, "doubled braces")
    try:
        read = read_lenient(text, at, closing=reading.closing)
    except LiteralError as error:
        raise UnreadableError(_where(error), started=True) from None
    return read.value, read.end, read.repairs


def _where(error: LiteralError) -> str:
    return f"{error} at character {error.at + 1}"


def fenced_value(text: str, at: int, reading: ReaderOptions) -> tuple[Any, int, tuple[str, ...]]:
    """Return the JSON value at ``at``, in a code fence or without; see ``read_value``."""
    fence = _FENCE.match(text, at)
    at = fence.end() if fence else _SPACE.match(text, at).end()  # type: ignore[union-attr]
    if text[at : at + 1] != "{":
        raise UnreadableError("expected a JSON object", started=text[at : at + 1] == "[")
    value, end, repairs = read_value(text, at, reading)
    closer = _FENCE_END.match(text, end) if fence else None
    return value, closer.end() if closer else end, repairs


def calls_of(value: Any) -> list[Written] | None:
    """Return the calls that a JSON value is, None where it is anything else.

    An object with a name and arguments, OpenAI's wrappers of it, a name as the only key, and
    arrays of these. A description of a tool is no call.
    """
    if isinstance(value, list):
        found = [calls_of(one) for one in value[: MOST_CALLS + 1] if isinstance(one, dict)]
        whole = len(found) == len(value) and all(found)
        return [call for one in found if one for call in one] if whole else None
    if not isinstance(value, dict):
        return None
    if len(value) == 1:
        ((key, inner),) = value.items()
        if key == "tool_calls" and isinstance(inner, list):
            return calls_of(inner)
        if key in ("function_call", "tool_call") and isinstance(inner, dict):
            return calls_of(inner)
        if key not in _NAMES and (isinstance(inner, dict) or inner is None):
            return [Written(key, inner)]
    return _call_of(value)


def _call_of(value: Mapping[str, Any]) -> list[Written] | None:
    """Return the call that an object with a name is. The inner level of a wrapper counts first."""
    inner = value.get("function")
    levels = (inner, value) if isinstance(inner, dict) else (value,)
    names = [one for level in levels for one in map(level.get, _NAMES) if isinstance(one, str)]
    if not names:
        return None
    more = any(key not in _BESIDE for key in value)
    for level in levels:
        keys = [key for key in _ARGUMENTS if key in level]
        given = [level[key] for key in keys]
        if not keys:
            continue
        described = "description" in level or more
        listing = described or _is_schema(given[0])
        if any(one != given[0] for one in given) or (listing and keys != ["arguments"]):
            return None
        return [Written(names[0], given[0], explicit=not described, id=_id(value))]
    if more or "description" in levels[0]:
        return None
    return [Written(names[0], id=_id(value))]


def _id(value: Mapping[str, Any]) -> object:
    return value.get("id", value.get("tool_call_id", value.get("call_id")))


def _is_schema(arguments: object) -> bool:
    """Whether arguments are a JSON Schema, as where a model repeats the list of tools."""
    return (
        isinstance(arguments, dict)
        and arguments.get("type") == "object"
        and isinstance(arguments.get("properties"), dict)
    )


def python_calls(text: str, at: int, _reading: ReaderOptions) -> ReadCalls:
    """Read Python calls with literal arguments, in a list or one after another."""
    try:
        calls, end = read_calls(text, at)
    except LiteralError as error:
        started = _PYTHON.match(text, at) is not None
        raise UnreadableError(_where(error), started=started) from None
    if len(calls) > MOST_CALLS:
        raise UnreadableError(f"more than {MOST_CALLS} calls", started=True)
    return ReadCalls(tuple(Written(one.name, one.named, one.positional) for one in calls), end)


def json_or_python(text: str, at: int, reading: ReaderOptions) -> ReadCalls:
    """Read calls as JSON or as Python calls, by how they begin."""
    if _PYTHON.match(text, at):
        return python_calls(text, at, reading)
    return json_calls(text, at, reading)


def named_json(text: str, at: int, reading: ReaderOptions) -> ReadCalls:
    """Read ``NAME{…}``: a name, then its arguments as a JSON object."""
    name = _NAME_JSON.match(text, at)
    if name is None:
        raise UnreadableError("expected a name and a JSON object", started=False)
    value, end, repairs = read_value(text, name.end(), reading)
    return ReadCalls((Written(name[1], value),), end, repairs)


def function_tag(text: str, at: int, reading: ReaderOptions) -> ReadCalls:
    """Read ``<function=NAME>`` with ``<parameter=KEY>`` tags, or with a JSON object."""
    opener = _FUNCTION.match(text, at)
    if opener is None:
        raise UnreadableError("expected <function=NAME>", started=False)
    if text[opener.end() : opener.end() + 1] == "{":
        value, end, repairs = read_value(text, opener.end(), reading)
        call = Written(opener[1], value)
    else:
        values, end, repairs = _tagged(text, opener.end(), _CODER, reading)
        call = Written(opener[1], values, tagged=True)
    closer = _FUNCTION_END.match(text, end)
    if closer is None and not reading.closing:
        raise UnreadableError("expected </function>", started=bool(call.arguments))
    return ReadCalls((call,), closer.end() if closer else end, repairs)


def invoke_tag(text: str, at: int, reading: ReaderOptions) -> ReadCalls:
    """Read ``<invoke name="NAME">`` with ``<parameter name="KEY">`` tags."""
    opener = _INVOKE.match(text, at)
    if opener is None:
        raise UnreadableError("expected an invoke tag", started=False)
    values, end, repairs = _tagged(text, opener.end(), _INVOKED, reading)
    closer = _INVOKE_END.match(text, end)
    if closer is None:
        raise UnreadableError("expected </invoke>", started=True)
    return ReadCalls((Written(opener[1], values, tagged=True),), closer.end(), repairs)


def _tagged(
    text: str, at: int, tags: _Tags, reading: ReaderOptions
) -> tuple[dict[str, str], int, tuple[str, ...]]:
    """Return tagged arguments as raw texts, the offset after the last, and repairs."""
    values: dict[str, str] = {}
    repairs: tuple[str, ...] = ()
    while (opener := tags.key.match(text, at)) is not None:
        start = opener.end()
        end = text.find(tags.closer, start)
        if end >= 0:
            follow = tags.follow.search(text, start)
            end = text.rfind(tags.closer, start, follow.start() if follow else len(text))
        at = end + len(tags.closer)
        if end < 0:
            if not reading.closing:
                raise UnreadableError(f"expected {tags.closer}", started=True)
            loose = tags.loose.search(text, start)
            end = at = loose.start() if loose else len(text)
            repairs = ("closed a tag",)
        value = text[start:end]
        if tags.lines:
            value = value.removeprefix("\r").removeprefix("\n")
            value = value.removesuffix("\n").removesuffix("\r")
        key = opener[1].strip()
        if key in values or len(values) >= MOST_CALLS:
            raise UnreadableError(f"the argument {key[:80]} twice", started=True)
        values[key] = value
    return values, at, repairs


def tool_call(text: str, at: int, reading: ReaderOptions) -> ReadCalls:
    """Read what models write inside ``<tool_call>``, which several families share."""
    start = _SPACE.match(text, at).end()  # type: ignore[union-attr]
    if _FUNCTION.match(text, start):
        return function_tag(text, start, reading)
    pairs = _GLM.match(text, start)
    if pairs is not None and (
        text.startswith("<arg_key>", pairs.end()) or reading.offered(pairs[1])
    ):
        values, end, repairs = _tagged(text, pairs.end(), _PAIRS, reading)
        if not reading.closing and not _CALL_END.match(text, end):
            raise UnreadableError("expected </tool_call>", started=True)
        return ReadCalls((Written(pairs[1], values, tagged=True),), end, repairs)
    if _NAME_JSON.match(text, start):
        return named_json(text, start, reading)
    return json_or_python(text, start, reading)


def delimited(marker: str) -> Reader:
    """Return a reader of ``call:NAME{key:value,…}`` with text between ``marker``s."""
    notation = Notation(delimiters=(marker,), bare_keys=True)
    opener = re.compile(r"\s*call:\s*([^\s{]{1,256})\s*(?=\{)")

    def read(text: str, at: int, reading: ReaderOptions) -> ReadCalls:
        name = opener.match(text, at)
        if name is None:
            raise UnreadableError("expected call:NAME{", started=False)
        try:
            value = read_lenient(text, name.end(), notation, closing=reading.closing)
        except LiteralError as error:
            raise UnreadableError(_where(error), started=True) from None
        return ReadCalls((Written(name[1], value.value),), value.end, value.repairs)

    return read


def whole(text: str, reading: ReaderOptions) -> ReadCalls | None:
    """Return the calls that a text is as a whole, None where it is anything else."""
    readers: list[Reader] = [json_calls]
    if _PYTHON.match(text):
        readers = [python_calls]
    elif (name := _NAME_JSON.match(text)) is not None:
        readers = [named_json] if reading.offered(name[1]) else []
    elif text.lstrip().startswith("<function="):
        readers = [function_tag]
    for reader in readers:
        try:
            body = reader(text, 0, reading)
        except UnreadableError:
            continue
        rest = _REST.match(text, body.end).end()  # type: ignore[union-attr]
        if rest == len(text) and body.calls:
            extra = ("brackets after the value",) if text[body.end :].strip() else ()
            return ReadCalls(body.calls, rest, (*body.repairs, *extra))
    return None
