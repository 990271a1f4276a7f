"""Stories of common divisors and multiples, and all that is none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsrv_runtime.planner.reading.idioms import in_plain_words
from toolsrv_runtime.planner.reading.multiples import in_arithmetic


@pytest.mark.parametrize(
    ("said", "plain"),
    [
        (
            "A floor, 288 by 180 cm. What's the longest side a tile can have that goes into both lengths exactly?",
            "A floor, 288 by 180 cm. What's the greatest common divisor of 288 and 180?",
        ),
        (
            "ropes of 84 cm and 126 cm: the longest piece that divides both evenly, please",
            "ropes of 84 cm and 126 cm: the greatest common divisor of 84 and 126, please",
        ),
        (
            "Buses go every 12 and every 18 minutes. After how many minutes do they leave together again?",
            "Buses go every 12 and every 18 minutes. what is the least common multiple of 12 and 18?",
        ),
        (
            "The bells ring every 15 and 20 minutes; how long until they next ring at the same time?",
            "The bells ring every 15 and 20 minutes; what is the least common multiple of 15 and 20?",
        ),
        (
            "Bus 14 comes every 14 minutes and the tram every 18. They just went by together, after how many minutes will they do that again?",
            "Bus 14 comes every 14 minutes and the tram every 18. They just went by together, what is the least common multiple of 14 and 18?",
        ),
        (
            "A light flashes every 14 seconds, another every 21 seconds. When is it together again",
            "A light flashes every 14 seconds, another every 21 seconds. what is the least common multiple of 14 and 21",
        ),
        (
            "every 12, every 18 and every 24 hours: when are they together again?",
            "every 12, every 18 and every 24 hours: what is the least common multiple of 12, 18 and 24?",
        ),
        (
            "Lamps blink every 4, 6 and 10 seconds. When do they blink together again?",
            "Lamps blink every 4, 6 and 10 seconds. what is the least common multiple of 4, 6 and 10?",
        ),
    ],
)
def test_a_story_is_asked_in_words_of_arithmetic(said: str, plain: str) -> None:
    assert in_arithmetic(said) == plain
    assert in_plain_words(said) == plain


@pytest.mark.parametrize(
    "said",
    [
        "What is the longest river that goes into both seas?",  # no numbers
        "3 by 4, 5 by 6: the longest side that goes into both",  # which two?
        "ropes of 12 m, 18 m and 24 m: the longest piece that fits into all",
        "ropes of 12 m, 18 m and 24 m: the longest piece that goes into both",
        "every 12 minutes a bus; when do we meet together again?",  # one number
        "When do we all get together again?",
        "We meet every 2 weeks and pay every 30 days. When is Easter?",
        'Reverse "every 12 and every 18 minutes, when is it together again"',
        "every 1.5 and 2.5 hours: when do they ring together again?",
        "Is 288 by 180 the biggest screen there is?",
    ],
)
def test_everything_else_stays_as_it_is(said: str) -> None:
    assert in_arithmetic(said) == said


@given(st.text(alphabet='every 1234 and longest goes into both together again?"', max_size=200))
def test_any_text_can_be_read(said: str) -> None:
    assert isinstance(in_arithmetic(said), str)
