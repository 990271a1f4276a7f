"""A chat request's messages as a template takes them.

What a template cannot do is done here in its place: a system turn that it refuses goes into the
first user turn, neighbours of one role are joined where roles must alternate, calls and results
that it would drop are written into plain turns in the generic syntax.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolsrv_runtime.contract.chat import (
    AssistantMessage,
    Message,
    SystemMessage,
    Tool,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from toolsrv_runtime.templates.call_syntax import CallSyntax
from toolsrv_runtime.templates.marking import mark, marked, to_json

_PLAIN_ID = re.compile(r"[A-Za-z0-9]{9}")
_BEFORE_TOOLS = """# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>
"""


@dataclass(frozen=True, slots=True)
class Shape:
    """What a template can do.

    ``native``: it lists the tools, renders calls, and takes results. ``system``: it takes a system
    turn. ``arguments``: calls' arguments go in as an object or as JSON text. ``several``: a turn
    may hold more than one call. ``alternate``: user and assistant turns must alternate.
    ``parts``: content goes in as a list of typed parts.
    """

    native: bool = False
    system: bool = True
    arguments: str = "object"
    several: bool = True
    alternate: bool = False
    parts: bool = False


PLAIN = Shape()
"""A template that knows turns and nothing of tools."""


def tool_list(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    """Return tools in OpenAI's nested form with their texts moved (see ``marking``)."""
    found = []
    for tool in tools:
        function = {
            "name": mark(tool.name),
            "description": mark(tool.description),
            "parameters": _schema(tool.parameters),
        }
        found.append({"type": "function", "function": function})
    return found


_KEYWORDS = frozenset(
    {"type", "properties", "required", "items", "enum", "const", "description", "default", "title",
     "anyOf", "oneOf", "allOf", "$ref", "$defs", "definitions", "additionalProperties", "format",
     "pattern", "nullable", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems",
     "examples", "example"}
)  # fmt: skip
_TYPES = frozenset({"string", "integer", "number", "boolean", "null", "array", "object"})


def _schema(schema: Any) -> Any:
    """Return a schema with all but the words of JSON Schema itself moved: templates test those."""
    if not isinstance(schema, Mapping):
        return marked(schema)
    found: dict[str, Any] = {}
    for key, value in schema.items():
        name = key if key in _KEYWORDS else mark(str(key))
        if key == "type":
            kinds = value if isinstance(value, list) else [value]
            known = all(isinstance(one, str) and one in _TYPES for one in kinds)
            found[name] = value if known else marked(value)
        elif key in {"properties", "$defs", "definitions"} and isinstance(value, Mapping):
            found[name] = {mark(str(one)): _schema(inner) for one, inner in value.items()}
        elif key in {"anyOf", "oneOf", "allOf"} and isinstance(value, list):
            found[name] = [_schema(one) for one in value]
        elif key in {"items", "additionalProperties"}:
            found[name] = _schema(value)
        else:
            found[name] = marked(value)
    return found


def generic_instructions(tools: Sequence[Tool], syntax: CallSyntax) -> str:
    """Return the system text that lists the tools and shows the generic syntax."""
    listed = "\n".join(to_json(one) for one in tool_list(tools))
    example = syntax.write([ToolCall("<function-name>")]).replace("{}", "<args-json-object>")
    return (
        f"{_BEFORE_TOOLS}{listed}\n</tools>\n\nFor each function call, return a json object with "
        f"function name and arguments within <tool_call></tool_call> XML tags:\n{example}"
    )


def template_messages(
    messages: Sequence[Message], tools: Sequence[Tool], shape: Shape, syntax: CallSyntax
) -> list[dict[str, Any]]:
    """Return messages with their texts moved, in the order and roles that ``shape`` allows."""
    turns: list[dict[str, Any]] = []
    for message in messages:
        match message:
            case SystemMessage(text):
                turns.append({"role": "system", "content": mark(text)})
            case UserMessage(text):
                turns.append({"role": "user", "content": mark(text)})
            case AssistantMessage(text, calls) if not calls or not shape.native:
                written = syntax.write(calls, marked)
                said = "\n".join(one for one in (mark(text), written) if one)
                turns.append({"role": "assistant", "content": said})
            case AssistantMessage(text, calls):
                turns.append(
                    {
                        "role": "assistant",
                        "content": mark(text),
                        "tool_calls": [_call(one, shape) for one in calls],
                    }
                )
            case ToolMessage(call, text) if shape.native:
                turns.append(
                    {
                        "role": "tool",
                        "name": mark(call.name),
                        "tool_call_id": _id(call),
                        "content": mark(text),
                    }
                )
            case ToolMessage(_, text):
                said = f"<tool_response>\n{mark(text)}\n</tool_response>"
                if turns and turns[-1].get("results"):
                    turns[-1]["content"] += f"\n{said}"
                else:
                    turns.append({"role": "user", "content": said, "results": True})
    if shape.native and not shape.several:
        turns = _one_call_a_turn(turns)
    if tools and not shape.native:
        turns = _with_system(turns, generic_instructions(tools, syntax))
    if not shape.system:
        turns = _without_system(turns)
    if shape.alternate:
        turns = _alternating(turns)
    for turn in turns:
        turn.pop("results", None)
        if shape.parts:
            turn["content"] = [{"type": "text", "text": turn["content"]}]
    return turns


def _call(call: ToolCall, shape: Shape) -> dict[str, Any]:
    arguments: Any = marked(call.arguments)
    if shape.arguments == "text":
        arguments = to_json(arguments)
    return {
        "id": _id(call),
        "type": "function",
        "function": {"name": mark(call.name), "arguments": arguments},
    }


def _id(call: ToolCall) -> str:
    """Return the id of a call in the form that every template takes, the same for its result."""
    if _PLAIN_ID.fullmatch(call.id):
        return call.id
    key = call.id or f"{call.name} {to_json(call.arguments)}"
    return hashlib.sha256(key.encode(errors="replace")).hexdigest()[:9]


def _one_call_a_turn(turns: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give every call a turn of its own, followed by its result."""
    found: list[dict[str, Any]] = []
    waiting: list[dict[str, Any]] = []
    for turn in turns:
        calls = turn.get("tool_calls", [])
        if len(calls) > 1:
            found.append({**turn, "tool_calls": calls[:1]})
            waiting = [{**turn, "content": "", "tool_calls": [one]} for one in calls[1:]]
            continue
        if turn["role"] != "tool":
            found += waiting
            waiting = []
        found.append(turn)
        if turn["role"] == "tool" and waiting:
            found.append(waiting.pop(0))
    return found + waiting


def _with_system(turns: list[dict[str, Any]], text: str) -> list[dict[str, Any]]:
    if turns and turns[0]["role"] == "system":
        joined = f"{turns[0]['content']}\n\n{text}" if turns[0]["content"] else text
        return [{"role": "system", "content": joined}, *turns[1:]]
    return [{"role": "system", "content": text}, *turns]


def _without_system(turns: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    held = ""
    for turn in turns:
        if turn["role"] == "system":
            held = f"{held}\n\n{turn['content']}".strip()
        elif held and turn["role"] == "user":
            found.append({**turn, "content": f"{held}\n\n{turn['content']}"})
            held = ""
        else:
            found.append(turn)
    return [{"role": "user", "content": held}, *found] if held else found


def _alternating(turns: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for turn in turns:
        last = found[-1] if found else None
        plain = not turn.get("tool_calls") and turn["role"] in {"user", "assistant"}
        if (
            last is not None
            and plain
            and last["role"] == turn["role"]
            and not last.get("tool_calls")
        ):
            last["content"] = f"{last['content']}\n{turn['content']}"
        else:
            found.append(dict(turn))
    return found
