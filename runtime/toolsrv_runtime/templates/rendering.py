"""Render a conversation with a model's chat template, Jinja source in a sandbox.

A model without a template gets plain ``System:``/``User:``/``Assistant:`` turns. What a template
cannot do is done before it: a refused system turn moves into the first user turn, neighbours of one
role are joined where roles must alternate, and calls and results that it would drop are written
into plain turns in the generic syntax.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import jinja2

from toolsrv_catalogs.text import clean
from toolsrv_runtime.contract.models import (
    AssistantMessage,
    Message,
    Piece,
    Prompt,
    SpecialTokens,
    SystemMessage,
    Tool,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from toolsrv_runtime.errors import ModelError
from toolsrv_runtime.templates.call_syntax import CallSyntax
from toolsrv_runtime.templates.marking import mark, marked, to_json, without_escapes
from toolsrv_runtime.templates.sandbox import LimitError, compile_limited, environment, limit_work

ChatTurn = tuple[str, Prompt]
"""A role (system, user, assistant) and what is said."""

NO_TOKENS = SpecialTokens()
"""The tokens of an unknown vocabulary."""

_DATE_CODES = re.compile(r"%(?![-]?[A-Za-z%])[^A-Za-z%]*[A-Za-z%]?")
_LONGEST_DATE = 200


@dataclass(frozen=True, slots=True)
class ChatTemplate:
    """A compiled template; ``place`` is the profile's file that it stands in, "" the model's."""

    compiled: jinja2.Template
    place: str


def render_chat(
    turns: Sequence[ChatTurn],
    template: str | None = None,
    place: str = "",
    tokens: SpecialTokens = NO_TOKENS,
) -> Prompt:
    """Return turns ready for the assistant's next; ``template`` is Jinja source, None plain turns.

    ``place`` as for ``compiled``; ``tokens`` are the model's own. Raises ModelError where the
    template does not work.
    """
    if template is None:
        return _plain(turns)
    return _render(compile_template(template, place), turns, template_variables(tokens))


def check_template(source: str, place: str = "", tokens: SpecialTokens = NO_TOKENS) -> None:
    """Raise ModelError where a template cannot write a small conversation."""
    said = (("system", "s"), ("user", "u"), ("assistant", "a"), ("user", "u"))
    render_chat([(role, (Piece(text),)) for role, text in said], source, place, tokens)


def template_variables(tokens: SpecialTokens, now: datetime | None = None) -> dict[str, Any]:
    """Return what every template may read besides messages, tools and switches.

    Source: ``apply_chat_template`` of transformers. ``now`` None is the present time, UTC.
    """
    clock = now or datetime.now(UTC)
    return {
        "bos_token": tokens.bos,
        "eos_token": tokens.eos,
        "strftime_now": lambda form: _date(clock, form),
    }


def _date(clock: datetime, form: Any) -> str:
    """Return the date in ``form``, without the widths that some C libraries pad to."""
    return clock.strftime(_DATE_CODES.sub("", str(form)[:_LONGEST_DATE]))


def _plain(turns: Sequence[ChatTurn]) -> Prompt:
    prompt: list[Piece] = []
    for role, pieces in turns:
        prompt += [Piece(f"{role.capitalize()}: ", special=True), *pieces, Piece("\n")]
    return (*prompt, Piece("Assistant:\n", special=True))


def compile_template(source: str, place: str = "") -> ChatTemplate:
    """Return a template, to be run in a sandbox; ``place`` is the profile that has it, if one has.

    Raises ModelError where it is none.
    """
    made = environment()
    made.globals["raise_exception"] = _raise
    try:
        with limit_work():
            return ChatTemplate(compile_limited(made, source), place)
    except Exception as error:  # noqa: BLE001 - source of others: it may raise anything
        raise template_error(error, place) from None


def _raise(message: str) -> None:
    raise jinja2.TemplateRuntimeError(message)


def template_error(error: Exception, place: str) -> ModelError:
    """Return the ModelError for what a template raised; ``place`` as for ``compiled``."""
    said = clean(str(error), 300) or type(error).__name__
    if isinstance(error, LimitError):
        said = f"it makes too much: {said}"
    if place:
        return ModelError(
            f"the chat template in {place} does not work: {said}",
            hint=f"mend chat_template in {place}, or leave it out: the model's own is used then",
        )
    return ModelError(
        f"the model's chat template does not work: {said}",
        hint="use another GGUF of this model, or set chat_template in a profile",
    )


def _render(template: ChatTemplate, turns: Sequence[ChatTurn], read: dict[str, Any]) -> Prompt:
    """Render with a marker for every turn's text, then put the text in as plain pieces.

    So control tokens that a task or a response spells stay text: only the template's own are
    tokens. A template that refuses a system turn gets it in front of the first user turn, and one
    that cannot do without a list of tools an empty one.
    """
    merged = [("user", (*turns[0][1], Piece("\n\n"), *turns[1][1])), *turns[2:]]
    fault: Exception = ValueError("it leaves out a turn")
    lists: tuple[list[Any] | None, ...] = (None, [])
    for said in (turns, merged):
        for tools in lists:
            try:
                return _fill(template.compiled, said, {**read, "tools": tools})
            except LimitError as error:
                raise template_error(error, template.place) from None
            except Exception as error:  # noqa: BLE001 - whatever it raises, it may like another way
                fault = error if tools is None else fault
    raise template_error(fault, template.place) from None


def _fill(template: jinja2.Template, turns: Sequence[ChatTurn], read: dict[str, Any]) -> Prompt:
    mark = secrets.token_hex(12)
    messages = [
        {"role": role, "content": f"[{mark}:{index}]"} for index, (role, _) in enumerate(turns)
    ]
    with limit_work():
        text = template.render(messages=messages, add_generation_prompt=True, **read)
    prompt: list[Piece] = []
    for index, (_, pieces) in enumerate(turns):
        before, found, text = text.partition(f"[{mark}:{index}]")
        if not found:
            raise jinja2.TemplateRuntimeError(f"turn {index + 1} is left out")
        prompt += [Piece(before, special=True), *pieces]
    return (*prompt, Piece(text, special=True))


Messages = Sequence[Mapping[str, Any]]
"""Messages as templates read them: role, content, and tool_calls where there are any."""


class Renderer:
    """A compiled template; ``place`` is the profile's file that it stands in, "" the model's.

    ``no_tools`` is what the template gets for no tools. Raises ModelError where the source is no
    template.
    """

    def __init__(self, source: str, place: str = "", tokens: SpecialTokens = NO_TOKENS) -> None:
        self.source = source
        self._template = compile_template(source, place)
        self._tokens = tokens
        self.no_tools: list[Any] | None = None

    def render(
        self,
        messages: Messages,
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        generate: bool = True,
        now: datetime | None = None,
        thinking: bool | None = None,
    ) -> str:
        """Return the rendering; ``thinking`` None leaves the switch undefined.

        Raises ModelError for a template that makes too much; else whatever the template raises.
        """
        switch = {} if thinking is None else {"enable_thinking": thinking, "thinking": thinking}
        try:
            with limit_work():
                rendered = self._template.compiled.render(
                    messages=[dict(one) for one in messages],
                    tools=list(tools) or self.no_tools,
                    add_generation_prompt=generate,
                    **template_variables(self._tokens, now),
                    **switch,
                )
        except LimitError as error:
            raise template_error(error, self._template.place) from None
        return without_escapes(rendered)

    def attempt(self, messages: Messages, **options: Any) -> str | None:
        """Return the rendering, or None where the template refuses these messages.

        Raises ModelError as ``render``.
        """
        try:
            return self.render(messages, **options)
        except ModelError:
            raise
        except Exception:  # noqa: BLE001 - source of others: it may raise anything
            return None

    def takes_no_list(self, messages: Messages) -> None:
        """Pass an empty list of tools from now on if the template cannot do without a list."""
        if self.attempt(messages) is None:
            self.no_tools = []
            if self.attempt(messages) is None:
                self.no_tools = None

    def refusal(self, error: Exception) -> Exception:
        """Return the ModelError for what the template raised."""
        return template_error(error, self._template.place)


_PLAIN_ID = re.compile(r"[A-Za-z0-9]{9}")
_BEFORE_TOOLS = """# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>
"""


@dataclass(frozen=True, slots=True)
class TemplateAbilities:
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


PLAIN_ABILITIES = TemplateAbilities()
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
    messages: Sequence[Message], tools: Sequence[Tool], shape: TemplateAbilities, syntax: CallSyntax
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


def _call(call: ToolCall, shape: TemplateAbilities) -> dict[str, Any]:
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
