"""What an answer tells of a response: numbers as they are, drawings line by line."""

from __future__ import annotations

import pytest

from toolsrv_runtime.values import facts


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (14908.57, "14908.57"),
        (181437.73, "181437.73"),
        (0.1 + 0.2, "0.3"),
        (12.0, "12"),
        (1234567.5, "1234567.5"),
        (1234567890.125, "1234567890.12"),
        (9999999999999.25, "9999999999999.25"),
        (7, "7"),
        (True, "true"),
    ],
)
def test_no_cent_of_a_number_is_lost(value: object, said: str) -> None:
    assert facts.whole({"total": value}) == {"total": said}


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (1.7418947301805e16, "1.7418947301805e+16"),
        (333333333333333.3, "333333333333333"),
        (-1.5e300, "-1.5e+300"),
        (17418947301805038, "17418947301805038"),
    ],
)
def test_no_digit_is_told_that_a_float_does_not_know(value: float, said: str) -> None:
    assert facts.whole({"total": value}) == {"total": said}


def test_an_answer_keeps_the_quotes_that_a_fact_loses() -> None:
    response = {"svg": '<svg width="132" class="qr"/>', "said": 'He said "no".'}
    assert facts.verbatim(response) == response
    assert facts.whole(response)["said"] == "He said no ."


def test_a_text_of_several_lines_is_told_line_by_line() -> None:
    art = " _\\_ \n|   |\n|___|\n"
    response = {"text": "box", "art": art, "note": "one line"}
    told = facts.verbatim(response)
    assert told["art"] == " _\\_\n|   |\n|___|"
    assert facts.sentence(told.items()) == (
        "text is box, art is\n _\\_\n|   |\n|___|\nnote is one line"
    )
    assert "\n" not in facts.whole(response)["art"]
    assert facts.verbatim({"a": "one\n"}) == {"a": "one"}
