"""Times of day in words are read as figures; ranges and shares are left alone."""

from __future__ import annotations

import pytest

from toolsrv_runtime.planner import clues
from toolsrv_runtime.planner.reading.digits import in_digits


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ("a quarter to five pm in Lisbon", "16:45 in Lisbon"),
        ("half past seven in the evening on 12 November 2026", "19:30 on 12 November 2026"),
        ("twenty past nine in the morning", "09:20"),
        ("We meet at a quarter past three.", "We meet at 3:15."),
        ("at five to ten in the evening", "at 21:55"),
        ("twenty-five past nine", "9:25"),
        ("a quarter to one pm", "12:45"),
        ("eight o'clock at night, London time", "20:00, London time"),
        ("two o'clock at night", "02:00"),
        ("twelve o'clock at night", "00:00"),
        ("half past 3 p.m. on Monday", "15:30 on Monday"),
        ("14 October 2026 at nine in the morning", "14 October 2026 at 09:00"),
        ("at 9 in the night", "at 21:00"),
        ("until three in the night", "until 03:00"),
        ("from 7 in the evening until twelve in the afternoon", "from 19:00 until 12:00"),
    ],
)
def test_a_time_in_words_is_read(said: str, read: str) -> None:
    assert in_digits(said) == read


@pytest.mark.parametrize(
    "said",
    [
        "it lasts five to ten days",
        "a quarter to two thirds of it",
        "the path half to blame",
        "half past it",
        "take one in the morning and two in the evening",
    ],
)
def test_a_range_or_a_share_is_no_time(said: str) -> None:
    assert ":" not in in_digits(said)


def test_a_year_in_roman_numerals_is_a_sign() -> None:
    task = (
        "There's MDCCCXCII above the door. MIX it with MILD soap, said Louis XVIII's MIXER in MMXX."
    )
    assert [one.sign for one in clues.find(task)] == ["MDCCCXCII", "MMXX"]
