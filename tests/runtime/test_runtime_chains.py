"""Tasks whose values have to be found out first, solved by the model that ships."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from toolsrv_runtime.engine.base import Engine
from toolsrv_runtime.outcome import Outcome
from toolsrv_runtime.profile import Profile
from toolsrv_runtime.solve import SolveOptions

Calls = list[tuple[str, dict[str, Any]]]

CHAINS: list[tuple[str, Calls]] = [
    (
        (
            'My boys left me a note: "WKH FDNH LV LQ WKH JDUDJH". They giggled that each letter has been'
            " moved on by three. What does it say?"
        ),
        [("caesar_cipher", {"text": "WKH FDNH LV LQ WKH JDUDJH", "shift": -3})],
    ),
    (
        (
            "My professor booked the field trip and sent nothing but a ticket to LPB. Whatever country"
            " that is in: what money do they use there and which languages will I hear?"
        ),
        [
            ("airport_by_code", {"code": "LPB"}),
            ("national_currency", {"country": "Bolivia"}),
            ("official_languages", {"country": "Bolivia"}),
        ],
    ),
    (
        (
            "It starts on 4 October 2027 and goes on until the 29th of that month; how many working days"
            " is that?"
        ),
        [("working_days_between", {"start": "2027-10-04", "end": "2027-10-29"})],
    ),
    (
        (
            "cousin in Houston says its 98 Fahrenheit and 60% humidity. How hot does that feel in"
            " celsius?"
        ),
        [("heat_index", {"temperature_c": 36.67, "humidity": 60})],
    ),
    (
        (
            "A buyer whose number begins with +351 insists on delivery on 10 June 2027. Is that a bank"
            " holiday where she lives?"
        ),
        [
            ("country_of_calling_code", {"calling_code": 351}),
            ("is_it_a_holiday", {"country": "Portugal", "date": "2027-06-10"}),
        ],
    ),
    (
        (
            "My son's pen friend lives where you dial +370 in front and is turning 12. We want the number"
            " on the card as a word, in the language they speak over there."
        ),
        [
            ("country_of_calling_code", {"calling_code": 370}),
            ("official_languages", {"country": "Lithuania"}),
            ("number_to_words", {"number": 12, "language": "Lithuanian"}),
        ],
    ),
    (
        (
            "Treasure hunt! The card shows -.- . -. -.-- .- which should be a country, and the next clue"
            " lies in its capital. Where do we go?"
        ),
        [
            ("morse_code_to_text", {"morse": "-.- . -. -.-- .-"}),
            ("capital_city", {"country": "KENYA"}),
        ],
    ),
    (
        (
            "my pupils get a secret country: Ujwz. every letter has been pushed five places on. For the"
            " solution sheet I need how many people live in that country"
        ),
        [
            ("caesar_cipher", {"text": "Ujwz", "shift": -5}),
            ("population_and_area", {"country": "Peru"}),
        ],
    ),
    (
        (
            "The big sale starts on the day after American Thanksgiving 2027. I need that date written"
            " out in Polish for the banner of our Krakow web shop"
        ),
        [
            (
                "find_holiday_date",
                {"country": "United States", "holiday": "Thanksgiving", "year": 2027},
            ),
            ("add_to_date", {"date": "2027-11-25", "amount": 1, "unit": "days"}),
            ("date_in_language", {"date": "2027-11-26", "language": "Polish"}),
        ],
    ),
    (
        (
            "my dashcam saved the bump under 1781274600 which is unix seconds they tell me. The insurer"
            " wants to know what the clock in Denver showed then, date and time."
        ),
        [
            ("unix_timestamp_to_date", {"timestamp": 1781274600}),
            (
                "convert_time",
                {"time": "2026-06-12 14:30", "from_zone": "UTC", "to_zone": "Denver"},
            ),
        ],
    ),
    (
        (
            "Our new distributor's numbers all start with +998. On 9 November 2027 we in Dublin have a"
            " call with his office, which sits in the capital over there. By how many hours are they"
            " ahead of us that day?"
        ),
        [
            ("country_of_calling_code", {"calling_code": 998}),
            ("capital_city", {"country": "Uzbekistan"}),
            (
                "time_difference",
                {"from_city": "Dublin", "to_city": "Tashkent", "date": "2027-11-09"},
            ),
        ],
    ),
    (
        (
            'Two cards of our trivia box where someone spilled coffee over the answers: "Which money has'
            ' the code PYG?" and "With what prefix do you phone somebody in Suriname?"'
        ),
        [
            ("currency_information", {"currency": "PYG"}),
            ("calling_code_of_country", {"country": "Suriname"}),
        ],
    ),
    (
        (
            "draw one ticket number between 1 and 340 for the raffle, with seed 21 so the notary can"
            " repeat it. plus four sentences of filler latin for the programme booklet, same seed"
        ),
        [
            ("random_number", {"minimum": 1, "maximum": 340, "seed": 21}),
            ("lorem_ipsum", {"sentences": 4, "seed": 21}),
        ],
    ),
    (
        (
            "We hauliers are founding an association, Verband Norddeutscher Spediteure. What short form do"
            " its first letters make? How is that said alfa-bravo style when we radio the depot, and what"
            " is it in dots and dashes for the logo?"
        ),
        [
            ("make_acronym", {"text": "Verband Norddeutscher Spediteure"}),
            ("spelling_alphabet", {"text": "VNS"}),
            ("text_to_morse_code", {"text": "VNS"}),
        ],
    ),
    (
        (
            'by how many percent do "Waterproof hiking jacket, navy, size M" and "Hiking jacket'
            ' waterproof, size M, navy blue" resemble each other?'
        ),
        [
            (
                "text_similarity",
                {
                    "first": "Waterproof hiking jacket, navy, size M",
                    "second": "Hiking jacket waterproof, size M, navy blue",
                },
            )
        ],
    ),
    (
        "the amp i want is 890 but minus 12%, what would i pay",
        [("discount", {"price": 890, "percent": 12})],
    ),
]


@pytest.mark.parametrize(("task", "calls"), CHAINS)
def test_what_a_value_comes_from_is_asked_first(
    solve: Callable[..., Outcome], loaded: tuple[Engine, Profile], task: str, calls: Calls
) -> None:
    engine, profile = loaded
    outcome = solve(engine, SolveOptions(), profile=profile, task=task)
    assert outcome.status == "answered"
    made = [one for one in outcome.evidence if one.ok]
    assert [(one.api_id.rpartition("/")[2], one.arguments) for one in made] == calls
