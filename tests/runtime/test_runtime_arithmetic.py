"""Arithmetic in words: which words of a text it is, and as what expression an API reads it."""

from __future__ import annotations

import pytest

from toolsrv_catalogs.offline.expression import evaluate
from toolsrv_runtime.values import arithmetic, kinds


@pytest.mark.parametrize(
    ("text", "words", "expression", "value"),
    [
        ("what's 12 times 7", "12 times 7", "12 * 7", 84),
        ("What is the square root of 1764?", "the square root of 1764", "sqrt(1764)", 42),
        ("work out (3 + 4) squared for me", "(3 + 4) squared", "(3 + 4)^2", 49),
        ("17 multiplied by 23, minus 9?", "17 multiplied by 23, minus 9", "17 * 23 - 9", 382),
        ("3 plus 4, times 2", "3 plus 4, times 2", "(3 + 4) * 2", 14),
        ("2 to the power of 16", "2 to the power of 16", "2^16", 65536),
        ("ten to the third power", "ten to the third power", "10^3", 1000),
        ("twenty-three plus nineteen", "twenty-three plus nineteen", "23 + 19", 42),
        ("the sum of 3, 4 and 5", "the sum of 3, 4 and 5", "3 + 4 + 5", 12),
        ("please divide 1,250 by four", "divide 1,250 by four", "1250 / 4", 312.5),
        ("subtract 4 from 10", "subtract 4 from 10", "10 - 4", 6),
        ("half of 90 and then times 3", "half of 90 and then times 3", "(90 / 2) * 3", 135),
        (
            "cube root of 27 plus sqrt(16)",
            "cube root of 27 plus sqrt(16)",
            "27^(1/3) + sqrt(16)",
            7,
        ),
        ("the cube of 5", "the cube of 5", "5^3", 125),
        ("what's 20% of 50 plus 1", "20% of 50 plus 1", "(20 / 100 * 50) + 1", 11),
        ("-5 + 3", "-5 + 3", "-5 + 3", -2),
        ("6 divided by half of 4", "6 divided by half of 4", "6 / (4 / 2)", 3),
        ("40 over 10 percent of 80", "40 over 10 percent of 80", "40 / (10 / 100 * 80)", 5),
        ("cube root of 2 cubed", "cube root of 2 cubed", "(2^3)^(1/3)", 2),
        ("the square of -5", "the square of -5", "(-5)^2", 25),
        ("-5 squared", "-5 squared", "(-5)^2", 25),
        ("2 squared cubed", "2 squared cubed", "(2^2)^3", 64),
    ],
)
def test_words_are_read_as_an_expression(
    text: str, words: str, expression: str, value: float
) -> None:
    (found,) = arithmetic.find_arithmetic(text)
    assert text[found.begin : found.end] == words
    assert found.expression == expression
    assert found.is_plain
    assert evaluate(expression) == pytest.approx(value)
    assert kinds.find_values("expression", text) == [words]
    assert kinds.normalise_value("expression", words) == expression


@pytest.mark.parametrize(
    "text",
    [
        "the 7 of us drove 12 km in 3 hours",
        "5 km plus 3 miles",
        "call +49 30 901820",
        "twenty thirty plus",
        "a 3x5 card",
        "add 5 days to 1 May",
        "over and over, times change; the sum of it",
        "((((((((",
        "",
    ],
)
def test_other_words_are_none(text: str) -> None:
    assert arithmetic.find_arithmetic(text) == ()
    assert arithmetic.to_expression(text) == ""


@pytest.mark.parametrize(
    "text",
    ["24/7", "5-6", "15% of 80", "2 plus 1 child", "15 percent of 80", "555-1234", "2026-11-20"],
)
def test_what_is_often_something_else_is_nothing_to_work_out(text: str) -> None:
    assert arithmetic.arithmetic_share(text) == 0.0


def test_two_in_one_text_are_two() -> None:
    found = arithmetic.find_arithmetic("The square root of 1764, and what is 2^10?")
    assert [one.expression for one in found] == ["sqrt(1764)", "2^10"]


@pytest.mark.parametrize("text", ["(", "square root of ", "1+", "half of the sum of 1, ", "one "])
def test_a_hostile_text_is_cut(text: str) -> None:
    for one in arithmetic.find_arithmetic(text * 20_000):
        assert one.end <= arithmetic.TEXT_LIMIT
        assert one.end - one.begin <= arithmetic.LENGTH_LIMIT
