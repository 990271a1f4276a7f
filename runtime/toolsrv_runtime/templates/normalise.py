"""Normalise a call that a model wrote: its name, arguments, their types, its id.

Names are matched exactly, then without regard to case, then to the kind of separator; never by
likeness. Values are cast by the tool's JSON Schema only where they do not fit it and nothing is
lost. Validation is not done here.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from toolsrv_registry.errors import list_names, nearest_names, shorten
from toolsrv_runtime.contract.models import (
    AssistantMessage,
    ChatRequest,
    Tool,
    ToolCall,
    ToolMessage,
)
from toolsrv_runtime.templates.literals import LiteralError, read_lenient, read_literal

MOST_NAME: Final = 256
_MOST_BRANCHES = 8
_MOST_CHOICES = 1000
_MOST_STEPS = 50_000
_DEPTH = 12
_BRANCH = 4
"""What an alternative takes of the depth: three levels of them are followed."""
_PREFIXES = ("functions.", "function.", "tools.", "tool.")
_INDEX = re.compile(r":\d{1,6}\Z")
_SEPARATORS = str.maketrans("-. ", "___")
_ID = re.compile(r"[A-Za-z0-9]{9}")
_WORDS = ("True", "False", "None")
_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

_Schema = Mapping[str, Any]


def normalise_call(
    name: str, arguments: object, request: ChatRequest
) -> tuple[ToolCall | None, str]:
    """Return the call, or the problem as one line for the model. The call has no id yet.

    ``arguments`` may be an object, its JSON text (encoded once or twice), or nothing: "", None.
    """
    tool, problem = resolve_tool(name, request)
    if tool is None:
        return None, problem
    values = _object(arguments)
    if values is None:
        what = shorten(" ".join(str(arguments)[:200].split()))
        return None, f"The arguments of {tool.name} must be a JSON object, not: {what}"
    properties = tool.parameters.get("properties")
    if isinstance(properties, Mapping):
        types = _Types(tool.parameters)
        values = {key: types.cast(value, properties.get(key)) for key, value in values.items()}
    return ToolCall(tool.name, values), ""


def resolve_tool(name: str, request: ChatRequest) -> tuple[Tool | None, str]:
    """Return the callable tool that ``name`` names, or the problem as one line for the model."""
    tool = offered_tool(name, request)
    callable_ = [one.name for one in request.tools if one.name in request.expected.names]
    if tool is not None and tool.name in request.expected.names:
        return tool, ""
    if tool is not None:
        others = f"; what can be called: {list_names(callable_)}" if callable_ else ""
        return None, f"{tool.name} cannot be called now{others}"
    shown = shorten(" ".join(name[:MOST_NAME].split()))
    if not callable_:
        return None, f"There is no tool {shown!r}, and none can be called now"
    near = nearest_names(name[:MOST_NAME], callable_)
    if near:
        return None, f"There is no tool {shown!r}; the nearest: {list_names(near)}"
    return None, f"There is no tool {shown!r}; what can be called: {list_names(callable_)}"


def offered_tool(name: str, request: ChatRequest) -> Tool | None:
    """Return the tool of the request that ``name`` names, callable or not, None without one."""
    wanted = name.strip().strip("\"'`").strip()
    if not wanted or len(wanted) > MOST_NAME:
        return None
    forms = [wanted]
    forms += [wanted[len(prefix) :] for prefix in _PREFIXES if wanted.startswith(prefix)]
    forms += [_INDEX.sub("", form) for form in forms if _INDEX.search(form)]
    keys: tuple[Callable[[str], str], ...] = (str, str.casefold, _plain)
    for key in keys:
        for form in forms:
            found = [tool for tool in request.tools if key(tool.name) == key(form)]
            if len(found) == 1:
                return found[0]
    return None


def typed_text(text: str, tool: Tool, key: str) -> Any:
    """Return the value of a parameter that stands as raw text, by the parameter's schema.

    A parameter that is a string stays text, of alternatives the first that fits counts. The others
    are read as JSON, then as a Python literal; what is neither stays text.
    """
    properties = tool.parameters.get("properties")
    schema = properties.get(key) if isinstance(properties, Mapping) else None
    return _Types(tool.parameters).from_text(text, schema, _DEPTH)


def call_id(wanted: object, taken: Collection[str], seed: str) -> str:
    """Return ``wanted`` if it is nine alphanumeric characters and free, else one made of ``seed``."""
    if isinstance(wanted, str) and _ID.fullmatch(wanted) and wanted not in taken:
        return wanted
    for attempt in range(len(taken) + 1):
        digest = hashlib.sha256(f"{attempt} {seed}".encode("utf-8", "replace")).digest()
        made = "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest[:9])
        if made not in taken:
            return made
    raise AssertionError  # pragma: no cover - one more attempt than ids are taken


def ids(request: ChatRequest) -> set[str]:
    """Return the ids of calls that the conversation holds."""
    calls = [
        call for one in request.messages if isinstance(one, AssistantMessage) for call in one.calls
    ]
    calls += [one.call for one in request.messages if isinstance(one, ToolMessage)]
    return {call.id for call in calls if call.id}


def _plain(name: str) -> str:
    return name.casefold().translate(_SEPARATORS)


def _object(arguments: object) -> dict[str, Any] | None:
    """Return arguments as an object; texts are decoded twice at most."""
    value = arguments
    for _ in range(2):
        if not isinstance(value, str):
            break
        if not value.strip():
            return {}
        value = _literal(value)
    if value is None:
        return {}
    return {str(key): one for key, one in value.items()} if isinstance(value, dict) else None


class _Nothing:
    """No value was read (None is one)."""


_NOTHING = _Nothing()


def _literal(text: str) -> Any:
    """Return the value that the whole text is, else ``_NOTHING``."""
    try:
        read = read_lenient(text)
    except LiteralError:
        return _NOTHING
    return _NOTHING if text[read.end :].strip() else read.value


def _strict(text: str) -> Any:
    """Return the JSON value that the whole text is, without any repair, else ``_NOTHING``."""
    try:
        read = read_literal(text)
    except LiteralError:
        return _NOTHING
    return _NOTHING if read.repairs or text[read.end :].strip() else read.value


@dataclass(slots=True)
class _Types:
    """Types of values by a JSON Schema. Schemas are untrusted: ``left`` bounds all steps."""

    root: _Schema
    left: int = _MOST_STEPS

    def resolved(self, schema: Any) -> _Schema:
        """Return a schema with local ``$ref``s followed; an empty one where it is none."""
        while isinstance(schema, Mapping) and "$ref" in schema:
            self.left -= 1
            reference = schema["$ref"]
            if self.left <= 0 or not isinstance(reference, str) or reference[:1] != "#":
                return {}
            found: Any = self.root
            for part in reference[1:].split("/")[:_DEPTH]:
                key = part.replace("~1", "/").replace("~0", "~")
                found = found.get(key) if part and isinstance(found, Mapping) else found
            schema = found
        return schema if isinstance(schema, Mapping) else {}

    def named(self, schema: _Schema, depth: int) -> set[str]:
        """Return the JSON types that a schema allows, as far as it names them."""
        self.left -= 1
        kind = schema.get("type")
        types = {kind} if isinstance(kind, str) else set()
        if isinstance(kind, list):
            types = {one for one in kind if isinstance(one, str)}
        if schema.get("nullable") is True and types:
            types.add("null")
        if not types and depth > 0:
            for branch in self.branches(schema):
                types |= self.named(branch, depth - _BRANCH)
        choices = schema.get("enum")
        if not types and isinstance(choices, list):
            types = {_type(one) for one in choices[:_MOST_CHOICES]}
        return types

    def branches(self, schema: _Schema) -> list[_Schema]:
        """Return the alternatives of ``anyOf`` or ``oneOf``."""
        for key in ("anyOf", "oneOf"):
            found = schema.get(key)
            if isinstance(found, list) and found and self.left > 0:
                return [self.resolved(one) for one in found[:_MOST_BRANCHES]]
        return []

    def fits(self, value: Any, schema: _Schema, depth: int) -> bool:
        """Whether type, ``enum`` and ``const`` allow a value; containers are not looked into."""
        self.left -= 1
        if self.left <= 0 or depth <= 0:
            return True
        types = self.named(schema, depth)
        kind = _type(value)
        if types and kind not in types and not (kind == "integer" and "number" in types):
            return False
        choices = schema.get("enum")
        if isinstance(choices, list) and value not in choices[:_MOST_CHOICES]:
            return False
        if "const" in schema and value != schema["const"]:
            return False
        branches = self.branches(schema)
        return not branches or any(self.fits(value, one, depth - _BRANCH) for one in branches)

    def cast(self, value: Any, schema: Any, depth: int = _DEPTH) -> Any:
        """Return a value in its schema's type, unchanged where that would lose something."""
        schema = self.resolved(schema)
        if depth <= 0 or self.left <= 0 or not schema:
            return value
        if not self.fits(value, schema, depth):
            readings = self.readings(value, schema)
            value = next((one for one in readings if self.fits(one, schema, depth)), value)
        for branch in self.branches(schema):
            if self.fits(value, branch, depth - _BRANCH):
                return self.cast(value, branch, depth - _BRANCH)
        properties, items = schema.get("properties"), schema.get("items")
        if isinstance(value, dict) and isinstance(properties, Mapping):
            return {
                key: self.cast(one, properties.get(key), depth - 1) for key, one in value.items()
            }
        if isinstance(value, list) and isinstance(items, Mapping):
            return [self.cast(one, items, depth - 1) for one in value]
        return value

    def readings(self, value: Any, schema: _Schema) -> list[Any]:
        """Return what a value may stand for in another type without loss, likeliest first."""
        types = self.named(schema, _DEPTH)
        if isinstance(value, str):
            text = value.strip()
            read = _strict(text)
            if read is _NOTHING and (types & {"array", "object"} or text in _WORDS):
                read = _literal(text)
            if read is _NOTHING or isinstance(read, str):
                return []
            return [read, *_whole(read)]
        if isinstance(value, int | float) and not isinstance(value, bool):
            return [*_whole(value), *([json.dumps(value)] if "string" in types else [])]
        return []

    def from_text(self, text: str, schema: Any, depth: int) -> Any:
        """Return the value that raw text stands for; see ``typed_text``."""
        schema = self.resolved(schema)
        for branch in self.branches(schema) if depth > 0 else []:
            value = self.from_text(text, branch, depth - _BRANCH)
            if self.fits(value, branch, _DEPTH):
                return value
        types = self.named(schema, _DEPTH)
        if "string" in types:
            return None if "null" in types and text.strip() in ("null", "None") else text
        value = _literal(text)
        return text if value is _NOTHING else value


def _whole(value: Any) -> list[int]:
    """Return a float without a fraction as an integer, where that is exact."""
    exact = isinstance(value, float) and value.is_integer() and abs(value) < 2**53
    return [int(value)] if exact else []


def _type(value: object) -> str:
    if value is None:
        return "null"
    for kind, name in ((bool, "boolean"), (str, "string"), (int, "integer"), (float, "number")):
        if isinstance(value, kind):
            return name
    return "object" if isinstance(value, dict) else "array"
