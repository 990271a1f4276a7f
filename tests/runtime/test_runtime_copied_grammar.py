"""Grammars of answers: numbers and names copied, one value held; over a vocabulary of long tokens."""

from __future__ import annotations

import itertools

import llguidance
import pytest

from toolsrv_runtime.contract.models import ChatRequest, ReplyConstraints, Tool, UserMessage
from toolsrv_runtime.engine.vocabulary import GrammarCache
from toolsrv_runtime.templates.tool_template import ToolTemplate

KNOWN = (
    "the capital of Peru, in #8c5d1f",
    'Data {"capital": "Lima", "people": 1234567, "pays": "Sol \ud800"}',
)
HELD = ("36", "North (Pier)", "a+b\ud800")
LENGTH = 5
"""Letters of the longest tokens: long ones are what makes a grammar of single characters fail."""


@pytest.fixture(scope="module")
def tokenizer() -> llguidance.LLTokenizer:
    words = ("".join(one) for one in itertools.product("abeimnost ", repeat=LENGTH))
    pieces = [bytes([one]) for one in range(256)] + [one.encode() for one in words]
    encoder = {piece: number for number, piece in enumerate(pieces)}
    made: llguidance.LLTokenizer = llguidance.LLTokenizer.from_tiktoken(  # type: ignore[attr-defined]
        encoder=encoder,
        special_tokens={"<end>": len(pieces)},
        pattern=r"[\s\S]",
        eos_token=len(pieces),
    )
    return made


def accepted(
    tokenizer: llguidance.LLTokenizer,
    text: str,
    expected: ReplyConstraints = ReplyConstraints(copied=KNOWN),  # noqa: B008 - frozen
) -> bool:
    grammar = ToolTemplate(None).grammar(ChatRequest((UserMessage("u"),), (), expected))
    matcher = GrammarCache(tokenizer).matcher(grammar)
    for byte in text.encode():
        matcher.compute_logit_bias()
        assert not matcher.is_error(), matcher.get_error()
        if not matcher.consume_token(byte):
            return False
    matcher.compute_logit_bias()
    assert not matcher.is_error(), matcher.get_error()
    return bool(matcher.is_accepting())


@pytest.mark.parametrize(
    ("text", "may"),
    [
        ("The capital is Lima. It has 1234567 people and pays in Sol.", True),
        ("lower case words of any length may be written here. And so on.", True),
        ("It is Quito.", False),
        ("It has 99 people.", False),
        ("It is painted in #8c5d1f.", True),
        ("It is painted in #1f5d8c.", False),
        ("They say Limas.", False),
        ("Lima's people, Lima: a Sol", True),
        ("Lima", True),
    ],
)
def test_numbers_and_names_of_a_copied_text_stand_in_its_sources(
    tokenizer: llguidance.LLTokenizer, text: str, may: bool
) -> None:
    assert accepted(tokenizer, text) is may


@pytest.mark.parametrize(
    ("text", "may"),
    [
        ("It falls in week 36.", True),
        ("36", True),
        ("Go to North (Pier)", True),
        ("a+b is the sum", False),
        ("It was in 2036.", False),
        ("It is 36th.", False),
        ("It falls in the third week.", False),
        (f"{'la ' * 60}36", False),
        (f"{'la ' * 30}36, {'la ' * 60}", True),
    ],
)
def test_a_text_holds_one_of_the_values_whole_and_soon(
    tokenizer: llguidance.LLTokenizer, text: str, may: bool
) -> None:
    assert accepted(tokenizer, text, ReplyConstraints(one_of=HELD)) is may


def test_a_schema_with_half_a_character_still_makes_a_grammar(
    tokenizer: llguidance.LLTokenizer,
) -> None:
    odd = {"type": "string", "enum": ["a\ud800", "b"]}
    parameters = {"type": "object", "properties": {"x\udc00": odd}, "required": []}
    tool = Tool("f", "", parameters)
    request = ChatRequest((UserMessage("u"),), (tool,), ReplyConstraints(("f",), text=False))
    matcher = GrammarCache(tokenizer).matcher(ToolTemplate(None).grammar(request))
    assert not matcher.is_error()
