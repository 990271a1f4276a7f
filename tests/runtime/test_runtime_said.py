"""Tasks that new rules were made for, solved by the model that ships: what was said decides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from toolsrv_runtime.engine.base import Engine
from toolsrv_runtime.outcome import Outcome
from toolsrv_runtime.profile import Profile
from toolsrv_runtime.solve import SolveOptions

TOLD: list[tuple[str, list[tuple[str, dict[str, Any]]]]] = [
    (
        (
            "Sister-in-law was born 14 June 1998 and is mad about the Chinese animal thing, I'd "
            "like to get her the right one on a mug. Which is hers?"
        ),
        [("zodiac_sign", {"birth_date": "1998-06-14"})],
    ),
    (
        (
            "my daughter left me a secret note: phhw dw grfn. She pushed each letter three places "
            "on. Crack it for me and I'd like to answer with the same words in dots and dashes"
        ),
        [
            ("caesar_cipher", {"text": "phhw dw grfn", "shift": -3}),
            ("text_to_morse_code", {"text": "meet at dock"}),
        ],
    ),
    (
        (
            "bet with my lab partner - he says bismuth's atomic number can't be divided by "
            "anything. look up the number n check him pls"
        ),
        [("element_information", {"element": "bismuth"}), ("prime_check", {"number": 83})],
    ),
    (
        (
            "so we're hauling the kit 620 km in the diesel van, say 105 an hour the whole way. "
            "hours behind the wheel? the festival also makes us report our co2"
        ),
        [
            ("travel_time", {"distance": "620 km", "speed_kmh": 105}),
            ("car_emissions", {"distance": "620 km", "fuel": "diesel"}),
        ],
    ),
    (
        (
            "Geocache puzzle. 101101 in binary has to become an ordinary number, that number goes "
            "on the lid the Roman way, and the finder's password is it spelled out in German"
        ),
        [
            ("convert_number_base", {"number": "101101", "to_base": 10, "from_base": 2}),
            ("number_to_roman", {"number": 45}),
            ("number_to_words", {"number": 45, "language": "German"}),
        ],
    ),
    (
        (
            "Yesterday the truck did 612 km in eight and a half hours, stops included. What was "
            "that per hour on average, and when he keeps the same average today, how long is he "
            "busy with 450 km?"
        ),
        [
            ("average_speed", {"distance": "612 km", "hours": 8.5}),
            ("travel_time", {"distance": "450 km", "speed_kmh": 72}),
        ],
    ),
    (
        (
            "For the webshop: turn the heading 'Crème Brûlée Candles: 3 for 2!' into something I "
            "can put in the address bar. And if I print https://bloom.example/spring as a QR with "
            "the toughest error level (it will hang in the rain), how many modules wide and high "
            "is it?"
        ),
        [
            ("slugify", {"text": "Crème Brûlée Candles: 3 for 2!"}),
            ("qr_code_size", {"text": "https://bloom.example/spring", "error_correction": "H"}),
        ],
    ),
    (
        (
            'For the grandchildren\'s treasure hunt I wrote a card that says "Vprynaq", moving '
            "each letter thirteen places, and I have lost my key sheet. Please undo it for me: it "
            "hides a country. I'd then like its capital and how many souls live in that country."
        ),
        [
            ("caesar_cipher", {"text": "Vprynaq", "shift": 13}),
            ("population_and_area", {"country": "Iceland"}),
            ("capital_city", {"country": "Iceland"}),
        ],
    ),
    (
        (
            "lcm of 84 and 126? break the lcm down to primes. and i need the lcm written in dutch "
            "words for my flatmates dumb bet"
        ),
        [
            ("gcd_and_lcm", {"first": 84, "second": 126}),
            ("prime_factors", {"number": 252}),
            ("number_to_words", {"number": 252, "language": "dutch"}),
        ],
    ),
    (
        (
            "For our team treasure hunt the clue is 4b6f6c6b617461, which is simply hex for some "
            "city name. Which one is it and how many km from Mumbai in straight line?"
        ),
        [
            ("hex_decode", {"encoded": "4b6f6c6b617461"}),
            ("distance_between_cities", {"from_city": "Mumbai", "to_city": "Kolkata"}),
        ],
    ),
    (
        (
            "Jake's bike is tagged $180 but it's 35% off this week, and then the register slaps "
            "our 7.25% tax on what's left. What am I really paying at the end?"
        ),
        [
            ("discount", {"price": 180, "percent": 35}),
            ("sales_tax", {"price": 117, "tax_percent": 7.25}),
        ],
    ),
    (
        (
            "ran 10k in 48:30 at track!! going off that what would i get in a 21.1 km race, and "
            "what's that per km"
        ),
        [
            (
                "predict_race_time",
                {"known_distance": "10k", "known_time": "48:30", "race_distance": "21.1 km"},
            ),
            ("running_pace", {"distance": "21.1 km", "time": "1:47:01"}),
        ],
    ),
    (
        (
            "my bf sent me .-.. .. ...- . -.. in morse. decode it, flip the letters back to front "
            "and then do that in huge slanty ascii letters so i can spam him"
        ),
        [
            ("morse_code_to_text", {"morse": ".-.. .. ...- . -.."}),
            ("reverse_text", {"text": "LIVED", "what": "letters"}),
            ("ascii_banner", {"text": "DEVIL", "font": "slant"}),
            ("text_to_morse_code", {"text": "LIVED"}),
        ],
    ),
]


@pytest.mark.parametrize(("task", "calls"), TOLD)
def test_what_is_said_decides_what_is_called(
    solve: Callable[..., Outcome],
    loaded: tuple[Engine, Profile],
    task: str,
    calls: list[tuple[str, dict[str, Any]]],
) -> None:
    engine, profile = loaded
    outcome = solve(engine, SolveOptions(), profile=profile, task=task)
    assert outcome.status == "answered"
    made = [one for one in outcome.evidence if one.ok]
    assert [(one.api_id.rpartition("/")[2], one.arguments) for one in made] == calls
