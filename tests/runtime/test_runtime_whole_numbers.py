"""Divisors and multiples of several numbers, and primes by their place, as calls of a calculator."""

from __future__ import annotations

import pytest

from toolsrv_runtime.planner.reading.ratios import as_sums
from toolsrv_runtime.values import arithmetic


@pytest.mark.parametrize(
    ("task", "expression"),
    [
        ("What is the lcm of 4, 6 and 10?", "lcm(4, 6, 10)"),
        ("the least common multiple of 4, 6, and 10 please", "lcm(4, 6, 10)"),
        ("greatest common divisor (gcd) of the numbers 84 and 126 and 210", "gcd(84, 126, 210)"),
        ("HCF of 12, 18, 30", "gcd(12, 18, 30)"),
        ("What's the 15th prime number?", "prime(15)"),
        ("the twenty-first prime", "prime(21)"),
        ("the 15th prime plus the 2nd prime", "prime(15) + prime(2)"),
        ("square root of 2 times pi", "sqrt(2) * pi"),
        ("π times 7 squared", "pi * 7^2"),
    ],
)
def test_what_a_calculator_does_is_told_as_it_takes_it(task: str, expression: str) -> None:
    found = arithmetic.find_arithmetic(as_sums(task))
    assert [one.expression for one in found if one.is_plain] == [expression]


@pytest.mark.parametrize(
    "task",
    [
        "the lcm of 4 and 6",
        "gcd of 1.5, 2 and 3",
        "the lcm of 4, 6 and 10%",
        "who was the 15th prime minister of Italy",
        "the first prime factor of 91",
        'How many letters has "the 15th prime"?',
        "Encode 'the lcm of 4, 6 and 10' as base64",
        "Is 15 a prime number? I sell pie and pi",
    ],
)
def test_everything_else_stays_as_it_is(task: str) -> None:
    assert as_sums(task) == task
    assert not arithmetic.find_arithmetic(task)
