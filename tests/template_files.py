"""The chat templates of tests/runtime/data/templates, with a vocabulary of bytes for each."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import llguidance
from llguidance import TokenizerWrapper

from toolsrv_runtime.contract.models import (
    AssistantMessage,
    ChatRequest,
    Piece,
    ReplyConstraints,
    SpecialTokens,
    SystemMessage,
    Tool,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from toolsrv_runtime.templates.tool_template import ToolTemplate

FOLDER = Path(__file__).parent / "runtime" / "data" / "templates"
FILES = sorted(path.name for path in FOLDER.glob("*.jinja"))


@cache
def sources() -> dict[str, dict[str, Any]]:
    """Return what is recorded of each file."""
    found: dict[str, dict[str, Any]] = json.loads((FOLDER / "sources.json").read_text("utf-8"))
    return found


@cache
def special_tokens(name: str) -> SpecialTokens:
    """Return the special tokens of a file's family; their ids follow those of the 256 bytes."""
    about = sources()[name]
    control = list(dict.fromkeys(filter(None, (*about["control"], about["bos"], about["eos"]))))
    words = [one for one in about["user_defined"] if one not in control]
    ids = {text: 256 + at for at, text in enumerate([*control, *words])}
    return SpecialTokens(
        about["bos"],
        about["eos"],
        {text: ids[text] for text in control},
        {text: ids[text] for text in words},
    )


@cache
def template(name: str) -> ToolTemplate:
    """Return a file's template, learnt with its family's tokens."""
    return ToolTemplate((FOLDER / name).read_text("utf-8"), tokens=special_tokens(name))


class ByteVocabulary:
    """A tokenizer of bytes and special tokens, in the form that llguidance takes."""

    def __init__(self, tokens: SpecialTokens) -> None:
        words = {**tokens.control, **tokens.user_defined}
        self.tokens = [bytes([one]) for one in range(256)] + [one.encode() for one in words]
        self.tokens.append(b"<end>")
        self.eos_token_id = len(self.tokens) - 1
        self.bos_token_id = None
        self.special_token_ids = [*tokens.control.values(), self.eos_token_id]
        self._control = tokens.control
        self._words = tokens.user_defined

    def __call__(self, text: bytes) -> list[int]:
        return self.ids(text.decode(errors="replace"), special=False)

    def ids(self, text: str, *, special: bool) -> list[int]:
        """Return the tokens of a text, cut as llama.cpp does: longest special token first."""
        words = {**(self._control if special else {}), **self._words}
        names = sorted(words, key=len, reverse=True)
        found: list[int] = []
        for part in re.split(f"({'|'.join(map(re.escape, names))})", text) if names else [text]:
            found += [words[part]] if part in words else part.encode(errors="replace")
        return found

    def prompt(self, pieces: Iterable[Piece]) -> list[int]:
        """Return the tokens of a prompt."""
        return [one for x in pieces for one in self.ids(x.text, special=x.special)]


@cache
def vocabulary(name: str) -> tuple[ByteVocabulary, llguidance.LLTokenizer]:
    """Return a file's vocabulary of bytes, and llguidance's view of it."""
    made = ByteVocabulary(special_tokens(name))
    return made, llguidance.LLTokenizer(TokenizerWrapper(made))


def accepts(name: str, grammar: str, reply: str) -> bool:
    """Whether a grammar takes a whole reply, its control tokens as tokens."""
    made, tokenizer = vocabulary(name)
    matcher = llguidance.LLMatcher(tokenizer, grammar, log_level=0)
    assert not matcher.is_error(), matcher.get_error()
    tokens = made.ids(reply, special=True)
    return matcher.try_consume_tokens(tokens) == len(tokens) and matcher.is_accepting()


WEATHER = Tool(
    "get_weather",
    "Weather of a city",
    {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Name of the city"},
            "days": {"type": "integer"},
            "unit": {"type": "string", "enum": ["C", "F"]},
        },
        "required": ["city"],
    },
)
SUM = Tool(
    "add_numbers",
    "Add two numbers",
    {
        "type": "object",
        "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
        "required": ["a", "b"],
    },
)
ANY = Tool(
    "store_record",
    "Store a record",
    {
        "type": "object",
        "properties": {
            "note": {"type": "string"},
            "count": {"type": "integer"},
            "share": {"type": "number"},
            "sure": {"type": "boolean"},
            "nothing": {"type": "null"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "place": {
                "type": "object",
                "properties": {"city": {"type": "string"}, "floor": {"type": "integer"}},
            },
        },
    },
)
TOOLS = (WEATHER, SUM, ANY)
NAMES = tuple(one.name for one in TOOLS)
FIRST = ToolCall("get_weather", {"city": "Lima", "days": 3, "unit": "C"}, "Ab1Cd2Ef3")
SECOND = ToolCall("add_numbers", {"a": 1, "b": 2.5}, "Gh4Ij5Kl6")


def talk(
    *,
    text: str = "plain",
    expected: ReplyConstraints | None = None,
    tools: tuple[Tool, ...] = TOOLS,
) -> ChatRequest:
    """Return a conversation with two calls and their results; ``text`` stands in all of it."""
    first = ToolCall(FIRST.name, {**FIRST.arguments, "city": f"Lima {text}"}, FIRST.id)
    return ChatRequest(
        (
            SystemMessage(f"You answer with tools. {text}"),
            UserMessage(f"What is the weather? {text}"),
            AssistantMessage("", (first, SECOND)),
            ToolMessage(first, f'{{"sky": "clear {text}"}}'),
            ToolMessage(SECOND, f"3.5 {text}"),
        ),
        tools,
        expected or ReplyConstraints(NAMES, 1),
    )
