"""Raises of a pay: the share that one is, or what is earned with it."""

from __future__ import annotations

import time

import pytest

from toolsrv_runtime.planner.reading.raises import as_sums
from toolsrv_runtime.planner.reading.ratios import as_sums as ratios_as_sums


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("What's a 5 % raise on a 42,000 salary?", "What's 5% of 42000?"),
        ("a 3 percent pay rise on 2,500 euros a month?", "3% of 2500?"),
        (
            "My new salary after a 3.5% raise on $60k?",
            "My new salary after 60000 * (1 + 3.5 / 100)?",
        ),
        ("What is 42,000 plus a 5% raise?", "What is 42000 * (1 + 5 / 100)?"),
        (
            "I get a 5% raise on my 42,000 salary. What will I earn?",
            "I get 42000 * (1 + 5 / 100)?",
        ),
        (
            "I earn 3,200 euros a month and get a 4% raise, what's my new salary?",
            "I earn 3200 * (1 + 4 / 100)?",
        ),
        ("a 10% pay cut on 50,000 - what do I earn then?", "50000 * (1 - 10 / 100)?"),
    ],
)
def test_a_raise_is_a_share_or_what_is_earned_with_it(said: str, told: str) -> None:
    assert as_sums(said) == told
    assert ratios_as_sums(said) == told


@pytest.mark.parametrize(
    "said",
    [
        "a 5% increase on 42,000",
        "I want a raise of 5%",
        "5% interest on 42,000 and a raise",
        "raise 5 to the power of 3",
        "prices rise 5% on 42,000 items",
        "a 5% pay raise on 20% of it",
    ],
)
def test_what_is_no_raise_of_a_pay_stays(said: str) -> None:
    assert as_sums(said) == said


def test_a_long_text_takes_no_long_time() -> None:
    begin = time.monotonic()
    as_sums("a 5% raise on my old gross " * 4_000)
    assert time.monotonic() - begin < 2
