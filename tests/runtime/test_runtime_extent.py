"""Letters for words where a text is one word."""

from __future__ import annotations

import pytest

from toolsrv_registry.api import Parameter
from toolsrv_runtime.reading.extent import narrowed

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
