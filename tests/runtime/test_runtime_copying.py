"""The grammars of copying accept what stands in a text and nothing else."""

from __future__ import annotations

import llguidance
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsrv_runtime.planner import copying
from toolsrv_runtime.templates import grammar_rules
from toolsrv_runtime.values import facts

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
        ("the sofa's 15km use #3", True),
        ("the sofa's 15 use #3", False),
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


SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "number"},
        "style": {"type": "string", "enum": ["short", "long"]},
        "note": {"type": "string", "default": "none"},
    },
    "required": ["city"],
}


@pytest.mark.parametrize(
    ("arguments", "good"),
    [
        ('{"city": "Lima"}', True),
        ('{"city": "Lima", "days": 3}', True),
        ('{"city": "PX-88213-Q", "style": "long", "note": "none"}', True),
        ('{"city": "2026-05-03"}', True),
        ('{"city": "the \\"old\\" town"}', True),
        ('{"city": "Quito"}', False),
        ('{"city": "Lim"}', False),
        ('{"city": "Lima", "style": "medium"}', False),
        ('{"days": 3}', False),
        ("{}", False),
    ],
)
def test_grounded_json_takes_texts_from_the_task_and_from_answers(
    arguments: str, *, good: bool
) -> None:
    texts = grammar_rules.grounding_texts(
        'PX-88213-Q to the "old" town on 3 May 2026', ['{"city": "Lima"}']
    )
    rules = grammar_rules.words_rule("WORDS", texts) + grammar_rules.object_rules(
        "a", SCHEMA, "WORDS"
    )
    assert accepts(f"start: a\n{rules}", arguments) is good


def test_grounded_json_of_optional_arguments_may_be_empty() -> None:
    schema = {**SCHEMA, "required": []}
    rules = grammar_rules.words_rule("WORDS", ["Lima"]) + grammar_rules.object_rules(
        "a", schema, "WORDS"
    )
    for arguments in (
        "{}",
        '{"city": "Lima"}',
        '{"days": 3, "style": "short"}',
        '{"note": "none"}',
    ):
        assert accepts(f"start: a\n{rules}", arguments)
    assert not accepts(f"start: a\n{rules}", '{"days": 3, "city": "Lima"}')


def test_a_model_that_is_not_grounded_writes_any_words() -> None:
    assert accepts(copying.free(), 'anything at all"')
    assert not accepts(copying.free(), 'a \\ b"')
