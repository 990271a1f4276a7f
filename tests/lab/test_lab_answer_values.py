"""Whether a text states a value of a response: literally, otherwise spelt, or in a sentence."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsrv_lab.answer_values import states
from toolsrv_runtime.values.facts import sentence


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("The capital is Lima.", "Lima"),
        ("capital is sao paulo", "São Paulo"),
        ("Labour Day falls on 6 September 2027.", "2027-09-06"),
        ("The sun rises at 4:13 AM there.", "04:13"),
        ("Good light from 7:01 a.m. to 7:49 a.m.", "07:01 to 07:49"),
        ("That is about 21.3 km.", "21.318841"),
        ("Some 3,170,208 people live there.", "3170208"),
        ("Switzerland and Liechtenstein use it.", "Liechtenstein, Switzerland"),
        ("The flag is 🇫🇮.", "🇫🇮"),
        ("it is ten-cheap-noodle-bars", "ten-cheap-noodle-bars"),
    ],
)
def test_a_value_may_be_stated_in_other_words(text: str, value: str) -> None:
    assert states(text, value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("The capital is Cusco.", "Lima"),
        ("It takes 15 minutes.", "5"),
        ("The ratio is 4.77.", "4"),
        ("That is 1 km.", "1.4"),
        ("It is on 9 June 2027.", "2027-09-06"),
        ("Only Switzerland uses it.", "Liechtenstein, Switzerland"),
        ("The moon is waxing.", "waxing crescent"),
        ("It is written in 12 parts.", "phhw ph dw 12"),
        ("", "Lima"),
        ("anything", ""),
    ],
)
def test_what_a_text_does_not_say_is_not_stated(text: str, value: str) -> None:
    assert not states(text, value)


@pytest.mark.parametrize(
    ("text", "field", "truth"),
    [
        ("The VAT number is valid.", "valid", True),
        ("valid is true", "valid", True),
        ("The number is invalid.", "valid", False),
        ("No, it is not valid; the check digit is wrong.", "valid", False),
        ("2028 isn't an ordinary year.\nIt is a leap year.", "leap_year", False),
        ("Oslo is one hour ahead, and 17 May is a holiday.", "is_holiday", True),
        ("Yes, 17 is prime, not divisible by any other.", "is_prime", True),
        ("Yes.", "valid", True),
    ],
)
def test_a_truth_value_is_affirmed_or_negated(text: str, field: str, truth: bool) -> None:
    assert states(text, str(truth).lower(), field)
    assert not states(text, str(not truth).lower(), field)


def test_an_answer_that_says_nothing_of_a_truth_value_states_none() -> None:
    assert not states("The weather is fine.", "true", "valid")
    assert not states("The weather is fine.", "false", "valid")


@given(st.integers(-(10**9), 10**9) | st.floats(-1e6, 1e6).map(lambda one: round(one, 3)))
def test_a_number_is_stated_by_itself(number: float) -> None:
    assert states(sentence([("result", str(number))]), str(number))
