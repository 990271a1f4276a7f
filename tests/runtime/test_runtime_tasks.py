"""Tasks in people's words, solved by the model that ships: which calls with which arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from toolsrv_runtime.engine.base import Engine
from toolsrv_runtime.outcome import Outcome
from toolsrv_runtime.profile import Profile
from toolsrv_runtime.solve import SolveOptions

KITCHEN = (
    "The kitchen is 18,500. At 5.4 % over 6 years, what would we pay a month? The shop also offers"
    " 12 % off that price if we pay at once, so what would it cost then?"
)
Calls = list[tuple[str, dict[str, Any]]]

SOLVED: list[tuple[str, Calls]] = [
    # Which value a wish is about: the one that another wish of the sentence is about.
    (
        "Is 97 prime, and how do you write it in binary and in Roman numerals?",
        [
            ("prime_check", {"number": 97}),
            ("convert_number_base", {"number": "97", "to_base": 2}),
            ("number_to_roman", {"number": 97}),
        ],
    ),
    (
        'I need "Crème brûlée" as a slug and also its Morse code',
        [
            ("slugify", {"text": "Crème brûlée"}),
            ("text_to_morse_code", {"text": "Crème brûlée"}),
        ],
    ),
    (
        "The hex colour #336699: its RGB please, and is white text readable on it?",
        [
            ("color_to_rgb", {"color": "#336699"}),
            ("contrast_ratio", {"foreground": "white", "background": "#336699"}),
        ],
    ),
    # Or the answer, where that is what the words mean.
    (
        'rot13 of "attack at dawn" then reverse that',
        [
            ("caesar_cipher", {"text": "attack at dawn"}),
            ("reverse_text", {"text": "nggnpx ng qnja"}),
        ],
    ),
    (
        "Transpose F4 up by 5 semitones and tell me the frequency of the note you get",
        [
            ("transpose_note", {"note": "F4", "semitones": 5}),
            ("note_frequency", {"note": "A#4"}),
        ],
    ),
    (
        "Reverse the word drawer and spell the word you get in the NATO alphabet",
        [
            ("reverse_text", {"text": "drawer", "what": "letters"}),
            ("spelling_alphabet", {"text": "reward"}),
        ],
    ),
    (
        "How far is it from Lyon to Turin and how long would that take at an average of 70 km/h?",
        [
            ("distance_between_cities", {"from_city": "Lyon", "to_city": "Turin"}),
            ("travel_time", {"distance": "234.1", "speed_kmh": 70}),
        ],
    ),
    (
        KITCHEN,
        [
            ("loan_payment", {"loan": 18500, "rate": 5.4, "years": 6}),
            ("discount", {"price": 18500, "percent": 12}),
        ],
    ),
    (
        "The greatest common divisor of 84 and 126, and then that number as a roman numeral.",
        [("gcd_and_lcm", {"first": 84, "second": 126}), ("number_to_roman", {"number": 42})],
    ),
    # Names where a function takes codes.
    (
        "How long is a flight from Vienna to Zurich?",
        [
            ("airports_of_a_city", {"city": "Vienna"}),
            ("airports_of_a_city", {"city": "Zurich"}),
            ("flight_distance", {"from_airport": "VIE", "to_airport": "ZRH"}),
        ],
    ),
    # Days and times.
    (
        "My flight lands in Lisbon at 18:40 local time on 3 May 2027; what time is that in Toronto?",
        [
            (
                "convert_time",
                {"time": "2027-05-03 18:40", "from_zone": "Lisbon", "to_zone": "Toronto"},
            )
        ],
    ),
    (
        "The date of Easter in 2030, and the calendar week of 1 October in the same year",
        [("easter_sunday", {"year": 2030}), ("week_number", {"date": "2030-10-01"})],
    ),
    (
        "What day of the week will Christmas 2031 be, and how many days is it from 1 December 2031?",
        [
            ("weekday_of_date", {"date": "2031-12-25"}),
            ("days_between_dates", {"start": "2031-12-01", "end": "2031-12-25"}),
        ],
    ),
    # Numbers in another unit, scale or base, and ages.
    (
        "I owe 1200 at 19.9% and pay it back over 12 months, what's the monthly rate?",
        [("loan_payment", {"loan": 1200, "rate": 19.9, "years": 1})],
    ),
    (
        "3 cups of sugar in grams, and the oven should be 375 fahrenheit, what is that in celsius?",
        [
            ("ingredient_weight", {"ingredient": "sugar", "amount": 3, "unit": "cups"}),
            ("oven_temperature", {"temperature": 375, "scale": "fahrenheit"}),
        ],
    ),
    (
        "What is an oven at 220 celsius in fahrenheit?",
        [("oven_temperature", {"temperature": 220, "scale": "celsius"})],
    ),
    (
        "what is 1010 binary in decimal",
        [("convert_number_base", {"number": "1010", "to_base": 10, "from_base": 2})],
    ),
    (
        "A bike ride of 42 km took 1 h 45 min. What was my average speed?",
        [("average_speed", {"distance": "42 km", "hours": 1.75})],
    ),
    (
        "Band practice tomorrow and the chart says Bdim. Which keys do I put my fingers on?",
        [("chord_notes", {"root": "B", "kind": "diminished"})],
    ),
    (
        "I'm 34, resting pulse 58: what's my maximum heart rate?",
        [("heart_rate_zones", {"age": 34})],
    ),
    # One wish for two values, and one call told twice.
    (
        "Translate the number 58 into French words and also into German words",
        [
            ("number_to_words", {"number": 58, "language": "German"}),
            ("number_to_words", {"number": 58, "language": "French"}),
        ],
    ),
    (
        "What is 17.5% of 8640? Please write that amount out in words, it's for a cheque",
        [
            ("percentage_of_number", {"percent": 17.5, "number": 8640}),
            ("number_to_words", {"number": 1512}),
        ],
    ),
]


@pytest.mark.parametrize(("task", "calls"), SOLVED)
def test_a_task_is_solved_by_just_these_calls(
    solve: Callable[..., Outcome], loaded: tuple[Engine, Profile], task: str, calls: Calls
) -> None:
    engine, profile = loaded
    outcome = solve(engine, SolveOptions(), profile=profile, task=task)
    made = [
        (call.api_id.rpartition("/")[2], call.arguments) for call in outcome.evidence if call.ok
    ]
    assert sorted(map(str, made)) == sorted(map(str, calls))
    assert outcome.status == "answered"


@pytest.mark.parametrize(
    "task",
    [
        "Write me a poem about flying from Vienna to Zurich",
        "Book me a flight from Oslo to Bergen on Friday",
    ],
)
def test_names_of_airports_alone_are_no_wish(
    solve: Callable[..., Outcome], loaded: tuple[Engine, Profile], task: str
) -> None:
    outcome = solve(loaded[0], SolveOptions(), profile=loaded[1], task=task)
    assert (outcome.status, outcome.evidence) == ("gave_up", ())
