"""Short questions as a new user puts them: what is called for them, and what the answer says."""

from __future__ import annotations

import pytest
from tests.agents import Calls, Solved, calls_made

from toolsrv_runtime.values import dates

pytestmark = [pytest.mark.nightly, pytest.mark.scored("everyday")]

TASKS: list[tuple[str, Calls, str]] = [
    (
        "What phase is the moon in on 24 December 2026, and when does the sun set in Rome that day?",
        [
            ("moon_phase", {"date": "2026-12-24"}),
            ("sunrise_and_sunset", {"city": "Rome", "date": "2026-12-24"}),
        ],
        "full moon",
    ),
    (
        "What's the dew point at 24 °C and 60 % humidity in Fahrenheit?",
        [("dew_point", {"temperature_c": 24, "humidity": 60})],
        "dew point f is 60.4",
    ),
    (
        "It's 30 °F with 20 mph wind. What's the wind chill in Fahrenheit?",
        [("wind_chill", {"temperature_c": -1.11, "wind_kmh": 32.19})],
        "feels like f is 17.3",
    ),
    (
        "What are the capitals of the neighbours of Austria?",
        [("neighbouring_countries", {"country": "Austria"})],
        "Prague, Berlin, Budapest, Rome, Vaduz, Bratislava, Ljubljana, Bern",
    ),
    (
        "What is water's mass percent of oxygen?",
        [("elemental_composition", {"formula": "water"})],
        "o is 88.81",
    ),
    (
        "What is the lcm of 4, 6 and 10, in German words?",
        [
            ("calculate", {"expression": "lcm(4, 6, 10)"}),
            ("number_to_words", {"number": 60, "language": "German"}),
        ],
        "sechzig",
    ),
    (
        "What is 1/3 of 450 g?",
        [("calculate", {"expression": "1 / 3 * 450"})],
        "result is 150",
    ),
    (
        "What is 1/3 of 450 g in ounces?",
        [("convert_units", {"amount": 150, "from_unit": "g", "to_unit": "ounces"})],
        "5.29",
    ),
    (
        "What's a 5 % raise on a 42,000 salary?",
        [("percentage_of_number", {"percent": 5, "number": 42000})],
        "result is 2100",
    ),
    (
        "I get a 5% raise on my 42,000 salary. What will I earn?",
        [("calculate", {"expression": "42000 * (1 + 5 / 100)"})],
        "result is 44100",
    ),
    (
        "When is sunset in Lisbon on New Year's Eve?",
        [("sunrise_and_sunset", {"city": "Lisbon", "date": f"{dates.today().year}-12-31"})],
        "sunset is 17:2",
    ),
    (
        "What's the 15th prime number?",
        [("calculate", {"expression": "prime(15)"})],
        "result is 47",
    ),
    (
        "What is the square root of 2 times pi?",
        [("calculate", {"expression": "sqrt(2) * pi"})],
        "result is 4.44288",
    ),
]


@pytest.mark.parametrize(("task", "calls", "said"), TASKS)
def test_a_short_question_is_answered(solved: Solved, task: str, calls: Calls, said: str) -> None:
    outcome = solved(task)
    assert outcome.status == "answered"
    assert calls_made(outcome) == calls
    assert said in outcome.answer
