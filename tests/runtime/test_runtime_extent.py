"""Letters for words where a text is one word, and where a text begins."""

from __future__ import annotations

import pytest

from toolsrv_registry.api import Parameter
from toolsrv_runtime.planner.reading.extent import begun, ended, narrowed

WHAT = Parameter(name="what", type="ENUM", enum=("letters", "words"))


@pytest.mark.parametrize(
    ("value", "given", "read"),
    [
        ("words", ["lighthouse"], "letters"),
        ("words", ["light house"], "words"),
        ("words", ["lighthouse", "3"], "letters"),
        ("words", ["3"], "words"),
        ("words", [], "words"),
        ("letters", ["lighthouse"], "letters"),
    ],
)
def test_a_single_word_has_only_letters_to_turn(value: str, given: list[str], read: str) -> None:
    assert narrowed(WHAT, value, given) == read


def test_a_list_without_letters_is_left_alone() -> None:
    of_lines = Parameter(name="what", type="ENUM", enum=("lines", "words"))
    assert narrowed(of_lines, "words", ["lighthouse"]) == "words"


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ("gonna be Friends Of Old Trams", "Friends Of Old Trams"),
        ("is going to be called Old Trams", "Old Trams"),
        ("will be late", "late"),
        ("Friends Of Old Trams", "Friends Of Old Trams"),
        ("will be", "will be"),
    ],
)
def test_a_text_begins_behind_the_verb_that_leads_up_to_it(value: str, read: str) -> None:
    text = Parameter(name="text", type="STRING")
    assert begun(text, value, f"The name {value}, its acronym please") == read


def test_a_quoted_text_is_left_whole() -> None:
    text = Parameter(name="text", type="STRING")
    assert begun(text, "will be late", 'Reverse "will be late"') == "will be late"


@pytest.mark.parametrize(
    ("name", "value", "task", "read"),
    [
        ("password", "Beer&Wine", "network Pub, password Beer&Wine!", "Beer&Wine!"),
        ("password", "p@ss w0rd", "the password is p@ss w0rd! Thanks", "p@ss w0rd!"),
        ("password", "secret", "the password is secret!", "secret"),
        ("password", "abc1", "is abc1 strong?", "abc1"),
        ("text", "Beer&Wine", "reverse Beer&Wine!", "Beer&Wine"),
    ],
)
def test_a_password_keeps_the_sign_that_ends_it(
    name: str, value: str, task: str, read: str
) -> None:
    assert ended(Parameter(name=name), value, task) == read
