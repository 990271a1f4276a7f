"""A number that a task states once for several calls."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsrv_runtime.formats.shared import shared


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("seed", "A name and an address. Use seed 12 for both, so that we get the same.", "12"),
        ("seed", "Seed: 7 for each of them.", "7"),
        ("sides", "Roll all of them with sides = 20.", "20"),
        ("max_length", "Cut both at max length 40.", "40"),
        ("seed", "A name with seed 12 and an address.", ""),
        ("seed", "Plant the seed 12 days after frost. Water both.", ""),
        ("panels", "12 panels of 410 W each", ""),
        ("panels", "12 panels 410 W each", ""),
        ("seed", "seedling 12 for both", ""),
        ("percent", "both got percent 12% more", ""),
        ("", "12 for both", ""),
    ],
)
def test_only_a_number_behind_the_name_and_for_several_is_shared(
    name: str, text: str, value: str
) -> None:
    assert shared(name, text) == value


@given(name=st.text(max_size=12), text=st.text(max_size=80))
def test_whatever_is_shared_stands_in_the_text(name: str, text: str) -> None:
    assert shared(name, text) in text
