"""A request as plain messages, and a call read from plain text.

For chat models without tool calls of their own: the functions stand in the system turn, and a
reply is one JSON object. Knows no server.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from toolsrv_runtime.engine.chat import Answer, Past, Request

Message = dict[str, Any]

THOUGHT_LIMIT = 200
"""Characters of a thought, where the shape of a reply is enforced."""

_BRACES = 100
"""Braces in a reply that may begin its object: each may have to be read to the reply's end."""

_HOW = (
    "\nReply with one JSON object and nothing else: "
    '{"thought": "what you do next and why", "call": {"name": "a function\'s name", '
    '"arguments": {…}}}\n'
    "Functions:\n"
)


def messages(request: Request) -> list[Message]:
    """Return the conversation in the roles system, user and assistant, the last two in turn.

    Without functions the reply is free text.
    """
    listing = "\n".join(json.dumps(one, ensure_ascii=False) for one in request.functions)
    how = _HOW + listing if request.functions else ""
    written: list[Message] = [
        {"role": "system", "content": request.instructions + how},
        {"role": "user", "content": request.task},
    ]
    for step in request.steps:
        written.append({"role": "assistant", "content": _reply(step)})
        written.append(
            {"role": "user", "content": f"Response of {step.function}: {step.observation}"}
        )
    return add_note(written, request)


def add_note(written: list[Message], request: Request) -> list[Message]:
    """Add the reply that was rejected, and the note, at the end of a conversation."""
    if request.rejected:
        written.append({"role": "assistant", "content": request.rejected})
    if request.note and written[-1]["role"] == "user":
        last = written[-1]["content"]
        written[-1] = {"role": "user", "content": f"{last}\n\n{request.note}"}
    elif request.note:
        written.append({"role": "user", "content": request.note})
    return written


def reply_schema(functions: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the JSON schema of a reply: a thought, and one of the functions with its arguments."""
    calls = [
        {
            "type": "object",
            "properties": {
                "name": {"type": "string", "enum": [one["name"]]},
                "arguments": _bare(one["parameters"]),
            },
            "required": ["name", "arguments"],
            "additionalProperties": False,
        }
        for one in functions
    ]
    thought = {"type": "string", "maxLength": THOUGHT_LIMIT}
    return {
        "type": "object",
        "properties": {"thought": thought, "call": {"anyOf": calls}},
        "required": ["thought", "call"],
        "additionalProperties": False,
    }


def read(text: str) -> Answer:
    """Return the call that a reply spells; its ``problem`` says why there is none.

    Words around the object are passed over, and so is what a model thought aloud before it.
    """
    said = text.rpartition("</think>")[2].strip()
    value = _object(said)
    if value is None:
        return Answer("", "", "", said, problem="it is not one JSON object")
    call = value.get("call")
    if not isinstance(call, dict):  # some leave the inner object out
        call = value
    name, arguments = call.get("name"), call.get("arguments", {})
    if not isinstance(name, str) or not name:
        return Answer("", "", "", said, problem='its "name" is not a function\'s name')
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False)
    thought = value.get("thought")
    return Answer(thought if isinstance(thought, str) else "", name, arguments, said)


def _object(text: str) -> dict[str, Any] | None:
    """Return the first JSON object in a text; one that holds nothing only where there is no other."""
    decoder, empty, at = json.JSONDecoder(strict=False), None, -1
    for _ in range(_BRACES):
        at = text.find("{", at + 1)
        if at < 0:
            break
        try:
            value: dict[str, Any] = decoder.raw_decode(text, at)[0]
        except (ValueError, RecursionError):
            continue
        if value:
            return value
        empty = value
    return empty


def _reply(step: Past) -> str:
    arguments = json.loads(step.arguments)
    call = {"name": step.function, "arguments": arguments}
    value = {"thought": step.thought, "call": call}
    return json.dumps(value, ensure_ascii=False)


def _bare(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema of arguments without its words: they stand in the system turn."""
    properties = {
        key: {name: one for name, one in value.items() if name != "description"}
        for key, value in schema["properties"].items()
    }
    return {**schema, "properties": properties}
