"""Fractions of amounts: the sum that is asked for, or the amount that they are."""

from __future__ import annotations

import time

import pytest

from toolsrv_runtime.planner.reading.fractions import as_sums
from toolsrv_runtime.planner.reading.idioms import in_plain_words


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("What is 1/3 of 450 g?", "What is 1 / 3 * 450?"),
        ("what is two thirds of 90 minutes", "what is 2 / 3 * 90"),
        ("three-quarters of the 1,200 euros, and then?", "3 / 4 * 1200, and then?"),
        ("What's ⅔ of 240?", "What's 2 / 3 * 240?"),
        ("How much is half of $75?", "How much is 1 / 2 * 75?"),
        ("What is 1/3 of 450 g in ounces?", "What is 150 g in ounces?"),
        ("2/3 of 100 km at 80 km/h", "66.666667 km at 80 km/h"),
        ("How many minutes is a quarter of 3 hours?", "How many minutes is 0.75 hours?"),
    ],
)
def test_a_fraction_is_a_sum_or_an_amount(said: str, told: str) -> None:
    assert as_sums(said) == told
    assert in_plain_words(said) == told


@pytest.mark.parametrize(
    "said",
    [
        "the first half of 2027",
        "half of 2027 is over",
        "a quarter of a mile",
        "on the third of 5 days",
        "3 * 1/3 of 450",
        "a tenth of 5%",
        "2/3 of 3/4 cup",
        "24/7 of it",
        'Reverse "1/3 of 450 g"',
        "in 2/4 time",
        "meet at a quarter of 2",
    ],
)
def test_what_is_no_fraction_of_an_amount_stays(said: str) -> None:
    assert in_plain_words(said) == said


def test_a_long_text_takes_no_long_time() -> None:
    begin = time.monotonic()
    as_sums("a third of 1,200 and " * 5_000)
    assert time.monotonic() - begin < 2
