"""Questions for a ratio, told as sums."""

from __future__ import annotations

import time

import pytest

from toolsrv_runtime.planner.reading.ratios import as_sums
from toolsrv_runtime.values import arithmetic


@pytest.mark.parametrize(
    ("task", "expression"),
    [
        ("15 is what percent of 60?", "15 / 60 * 100"),
        ("what percentage of 80 is 20", "20 / 80 * 100"),
        ("What percentage is 18 out of 72?", "18 / 72 * 100"),
        ("what percent are 9 of 45", "9 / 45 * 100"),
        ("What's 3/8 as a percentage?", "3 / 8 * 100"),
        ("Add up 12.50, 8.99 and 23.40.", "12.50 + 8.99 + 23.40"),
        ("the total of 3, 4 and 1,250", "3 + 4 + 1250"),
        (
            "Add up 12.50, 8.99 and 23.40 and split it between three of us",
            "(12.50 + 8.99 + 23.40) / 3",
        ),
        ("the factorial of 5?", "1 * 2 * 3 * 4 * 5"),
        ("what is 3 factorial plus 7", "1 * 2 * 3 + 7"),
        ("12.5 makes which percentage of 1,250?", "12.5 / 1250 * 100"),
        ("119 euros including 19% VAT, what is the net price?", "119 / (1 + 19 / 100)"),
        (
            "It was $108.25 with 8.25 % sales tax. What is it before tax?",
            "108.25 / (1 + 8.25 / 100)",
        ),
    ],
)
def test_a_ratio_is_worked_out(task: str, expression: str) -> None:
    assert [
        one.expression for one in arithmetic.find_arithmetic(as_sums(task)) if one.is_plain
    ] == [expression]


@pytest.mark.parametrize(
    "task",
    ["Hello. Rolls are 6 for 4.20, what does one cost?", "Rolls at 6 for €4.20; what's one?"],
)
def test_the_price_of_one_is_the_price_by_the_number(task: str) -> None:
    assert "calculate 4.20 / 6" in as_sums(task)


@pytest.mark.parametrize(
    "task",
    [
        "what is 15% of 60",
        "119 euros including 19% VAT: how much tax is in it",
        "a net price of 100 with 19% VAT and 10 % off",
        "add 19% VAT to 250 net",
        "what percent is that",
        "add 3 and 5 days to 4 May",
        "add 10 and 20% to it",
        "rolls are 6 for 4.20",
        "the sum of 4 May and 10/11",
        "the factorial of 2.5",
        "the factorial of 21",
        "the factorial of 100",
    ],
)
def test_anything_else_stays(task: str) -> None:
    assert as_sums(task) == task


def test_a_hostile_text_is_quick() -> None:
    begun = time.perf_counter()
    as_sums("what percent of 1 is net 1 including 1% " * 500)
    assert time.perf_counter() - begun < 2
