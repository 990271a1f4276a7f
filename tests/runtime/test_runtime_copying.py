"""The grammars of copying accept what stands in a text and nothing else."""

from __future__ import annotations

import llguidance
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolsrv_runtime.formats import copying, facts

TASK = 'Hi, number is "PX-88213-Q". And the sofa\'s 15km off, ok?'
BYTES = llguidance.LLTokenizer("byte")


def accepts(grammar: str, text: str) -> bool:
    matcher = llguidance.LLMatcher(BYTES, llguidance.grammar_from("lark", grammar))
    tokens = BYTES.tokenize_str(text)
    return matcher.try_consume_tokens(tokens) == len(tokens) and matcher.is_accepting()


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("PX-88213-Q use #1", True),
        ("sofa's 15km off, use nothing", True),
        ("the sofa's 15 use #3", True),
        ("all done. answer", True),
        ("the sofa's 15 use #4", False),
        ("number was use #1", False),
        ("PX-88213-Q", False),
        ("\nAction: ", False),
    ],
)
def test_a_thought_begins_with_words_of_the_task_or_ends(text: str, *, good: bool) -> None:
    assert accepts(copying.need(TASK, offers=3, served=True), text) is good


def test_nothing_served_is_given_up_not_answered() -> None:
    grammar = copying.need(TASK, offers=3, served=False)
    assert accepts(grammar, "\nAction: ")
    assert not accepts(grammar, "all done. answer")


@pytest.mark.parametrize(
    ("text", "good"),
    [('Lima"', True), ('15"', True), ('2026-01-01"', True), ('Lim"', False), ('Quito"', False)],
)
def test_a_value_is_a_run_of_words_of_a_source(text: str, *, good: bool) -> None:
    assert accepts(copying.value([TASK, "Lima", "2026-01-01"]), text) is good


@settings(max_examples=60, deadline=None)
@given(st.text(min_size=1, max_size=60))
def test_the_whole_of_any_text_can_be_copied(text: str) -> None:
    plain = facts.plain(text)
    assert accepts(copying.value([text]), f'{plain}"')


@pytest.mark.parametrize(
    ("said", "words"),
    [("Lima and Quito use #2", "Lima and Quito"), ("x use nothing", "x"), ("all done. answer", "")],
)
def test_the_words_of_a_thought_are_read_back(said: str, words: str) -> None:
    assert copying.needed(said) == words


def test_signs_that_a_model_cannot_write_come_back() -> None:
    text = 'name it "a\\b" and\n go'
    assert copying.original("a b", text) == "a\\b"
    assert copying.original("and go", text) == "and\n go"
    assert copying.original("elsewhere", text) == "elsewhere"
