"""A number that a task states once for several calls."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsrv_runtime.planner.reading.shared import shared


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("seed", "A name and an address. Use seed 12 for both, so that we get the same.", "12"),
        ("seed", "Seed: 7 for each of them.", "7"),
        ("sides", "Roll all of them with sides = 20.", "20"),
        ("max_length", "Cut both at max length 40.", "40"),
        ("seed", "With seed 3: a name and an address.", "3"),
        ("seed", "always with seed 3, a name and an address", "3"),
        ("seed", "with seed 3: a name, with seed 4: another", ""),
        ("time", "At time 10:30 for me", ""),
        ("seed", "A name with seed 12 and an address.", ""),
        ("seed", "Plant the seed 12 days after frost. Water both.", ""),
        ("panels", "12 panels of 410 W each", ""),
        ("panels", "12 panels 410 W each", ""),
        ("seed", "seedling 12 for both", ""),
        ("amount", "Each of us pays amount 20. Then convert amount 100 to euro.", ""),
        ("sides", "Roll both: one with sides 6, one with sides 20", ""),
        ("base", "Convert all from base 2 to base 16", ""),
        ("month", "I save every month 200 euro", ""),
        ("day", "I run every day 3 miles", ""),
        ("a", "each has a 3 m side", ""),
        ("date", "For all of them the date is 2024-05-01", ""),
        ("date", "Use date 12 May 2024 for both", ""),
        ("time", "time 10:30 for both", ""),
        ("distance", "distance 3.5km each", ""),
        ("_", "- 12 all", ""),
        ("percent", "both got percent 12% more", ""),
        ("", "12 for both", ""),
    ],
)
def test_only_a_number_behind_the_name_and_for_several_is_shared(
    name: str, text: str, value: str
) -> None:
    assert shared(name, text) == value


def test_blanks_cost_nothing() -> None:
    for name in ("_", "seed", "max_length"):
        assert shared(name, f"{name} both{' ' * 100_000}y {name}") == ""


@given(name=st.text(max_size=12), text=st.text(max_size=80))
def test_whatever_is_shared_stands_in_the_text(name: str, text: str) -> None:
    assert shared(name, text) in text
