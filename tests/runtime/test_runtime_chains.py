"""Tasks whose values have to be found out first, or are told in odd ways, solved by the model that ships."""

from __future__ import annotations

import pytest
from tests.agents import Calls, Solved, calls_made

pytestmark = [pytest.mark.nightly, pytest.mark.scored("chains")]

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

TOLD: list[tuple[str, Calls]] = [
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


@pytest.mark.parametrize(("task", "calls"), [*CHAINS, *TOLD])
def test_what_is_called_is_what_was_said_or_found_out(
    solved: Solved, task: str, calls: Calls
) -> None:
    outcome = solved(task)
    assert outcome.status == "answered"
    assert calls_made(outcome) == calls
