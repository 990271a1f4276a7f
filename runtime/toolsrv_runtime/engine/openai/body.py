"""A request as the body of ``chat/completions``, in each way that a call is held in shape."""

from __future__ import annotations

import json
from typing import Any

from toolsrv_runtime.engine import textual
from toolsrv_runtime.engine.chat import Mode, Request

PROBED: tuple[Mode, ...] = ("tools", "json_schema", "grammar")
"""In this order a server is asked what it offers; ``none`` is what is left."""

_PROBE = Request(
    instructions="You are friendly.",
    task="Say hello, by calling the function report with the status ready.",
    functions=(
        {
            "name": "report",
            "description": "Reports a status.",
            "parameters": {
                "type": "object",
                "properties": {"status": {"type": "string", "enum": ["ready"]}},
                "required": ["status"],
                "additionalProperties": False,
            },
        },
    ),
    max_tokens=200,
)


def probe(mode: Mode, model: str) -> dict[str, Any]:
    """Return a small request whose reply shows whether the server holds calls in shape.

    Tool calls are asked for in words too: a server counts that has them and leaves the choice to
    the model. The other two contradict the words, so that only an enforced shape brings the call.
    """
    body = write(_PROBE, mode, model)
    if mode != "tools":
        body["messages"] = [{"role": "user", "content": "Say hello."}]
    return body


def is_probe_call(name: str, arguments: str) -> bool:
    """Whether a reply to ``probe`` is the call that was asked for."""
    return name == "report" and '"ready"' in arguments


def write(request: Request, mode: Mode, model: str) -> dict[str, Any]:
    """Return the body; the reply is streamed and ends with the count of its tokens."""
    body: dict[str, Any] = {
        "model": model,
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": request.max_tokens,
        "temperature": request.temperature,
        "top_p": request.top_p,
        "seed": request.seed % 2**31,
    }
    if mode == "tools" and request.functions:
        tools = [{"type": "function", "function": one} for one in request.functions]
        return body | {"messages": _turns(request), "tools": tools, "tool_choice": "required"}
    body["messages"] = textual.messages(request)
    if mode == "none" or not request.functions:
        return body
    schema = textual.reply_schema(request.functions)
    if mode == "json_schema":
        named = {"name": "reply", "strict": True, "schema": schema}
        return body | {"response_format": {"type": "json_schema", "json_schema": named}}
    return body | {"grammar": _gbnf(schema)}


def _turns(request: Request) -> list[textual.Message]:
    """Return the conversation with its calls as tool calls."""
    written: list[textual.Message] = [
        {"role": "system", "content": request.instructions},
        {"role": "user", "content": request.task},
    ]
    for number, step in enumerate(request.steps, start=1):
        handle = f"call{number:05d}"  # nine letters and digits: Mistral's templates want that
        function = {"name": step.function, "arguments": step.arguments}
        call = {"id": handle, "type": "function", "function": function}
        written.append({"role": "assistant", "content": step.thought, "tool_calls": [call]})
        written.append({"role": "tool", "tool_call_id": handle, "content": step.observation})
    return textual.add_note(written, request)


def _gbnf(schema: dict[str, Any]) -> str:
    from llama_cpp.llama_grammar import json_schema_to_gbnf  # noqa: PLC0415 - heavy

    grammar: str = json_schema_to_gbnf(json.dumps(schema))
    return grammar
