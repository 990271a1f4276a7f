"""Special tokens: what a vocabulary calls so, and grammars that name them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from toolsrv_runtime.contract.models import Piece, SpecialTokens
from toolsrv_runtime.engine.llama import LlamaEngine
from toolsrv_runtime.engine.scripted import ScriptedEngine

START, END, CALL, CALL_END, ENDS = range(600, 605)
ASK = (Piece("<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n", special=True),)


@pytest.fixture(scope="module")
def chat(tiny_chat: Path) -> Iterator[LlamaEngine]:
    engine = LlamaEngine(tiny_chat, context=256, threads=1)
    yield engine
    engine.close()


def test_the_special_tokens_of_a_vocabulary_are_named_by_text(chat: LlamaEngine) -> None:
    special = chat.special_tokens
    assert (special.bos, special.eos) == ("<s>", "</s>")
    assert special.user_defined == {"<tool_call>": CALL, "</tool_call>": CALL_END}
    assert {"<s>": 1, "</s>": 2, "<|im_start|>": START, "<|im_end|>": END}.items() <= (
        special.control.items()
    )


def test_a_script_has_no_special_tokens() -> None:
    assert ScriptedEngine([]).special_tokens == SpecialTokens()


def test_a_literal_that_is_one_token_of_the_vocabulary_is_written_as_that_token(
    chat: LlamaEngine,
) -> None:
    grammar = 'start: "<tool_call>\\n" ("a" | "b") "\\n</tool_call>"\n'
    reply = chat.generate(ASK, grammar=grammar, max_tokens=40)
    assert reply.text in {"<tool_call>\na\n</tool_call>", "<tool_call>\nb\n</tool_call>"}
    assert (reply.tokens[0], reply.tokens[-1]) == (CALL, CALL_END)
    assert reply.finish == "grammar"
    # The next prompt spells it the same way.
    assert chat.vocabulary.prompt((Piece(reply.text, special=True),))[1:] == list(reply.tokens)


def test_control_tokens_that_a_grammar_names_are_written_forced_and_shown(
    chat: LlamaEngine,
) -> None:
    reply = chat.generate(ASK, grammar=f'start: <[{START}]> "x" <[{CALL}]>\n', max_tokens=40)
    assert reply.text == "<|im_start|>x<tool_call>"
    assert (reply.tokens[0], reply.tokens[-1]) == (START, CALL)
    assert reply.forced == len(reply.tokens)


def test_a_literal_never_becomes_a_control_token(chat: LlamaEngine) -> None:
    reply = chat.generate(ASK, grammar='start: "<|im_start|>x"\n', max_tokens=40)
    assert reply.text == "<|im_start|>x"
    assert START not in reply.tokens


@pytest.mark.parametrize("end", [END, ENDS, 2])
def test_every_token_that_ends_replies_ends_one_and_is_no_part_of_it(
    chat: LlamaEngine, end: int
) -> None:
    assert chat.vocabulary.ends >= {END, ENDS, 2}
    forced = chat.generate(ASK, grammar=f'start: "x" <[{end}]>\n', max_tokens=40)
    broken_off = chat.generate(ASK, grammar=f'start: "x" <[{end}]> "y"\n', max_tokens=40)
    drawn = chat.generate(ASK, grammar=f'start: "x" (<[{end}]> | <[{end}]> "y")\n', max_tokens=40)
    for reply in (forced, broken_off, drawn):
        assert (reply.text, reply.finish) == ("x", "grammar")
        assert end not in reply.tokens


def test_all_tokens_that_end_replies_are_allowed_where_the_grammar_is_fulfilled(
    chat: LlamaEngine,
) -> None:
    from llguidance import LLMatcher  # noqa: PLC0415

    matcher = LLMatcher(chat.vocabulary.grammar, "start: /x+/\n", log_level=0)
    matcher.consume_tokens(list(chat.vocabulary.text("x", special=False)))
    allowed = matcher.compute_logit_bias()
    assert all(allowed[end] for end in chat.vocabulary.ends)


def test_a_template_that_spells_the_beginning_itself_gets_it_once(chat: LlamaEngine) -> None:
    spelled = chat.vocabulary.prompt((Piece("<s>hi", special=True),))
    assert spelled == chat.vocabulary.prompt((Piece("hi", special=True),))
    assert chat.vocabulary.prompt((Piece("<s>hi"),)) != spelled
