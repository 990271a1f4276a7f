"""Answers of the model that ships to tasks in people's words: each value, what is missing, today."""

from __future__ import annotations

import datetime as dt

import pytest
from tests.agents import Solved

pytestmark = [pytest.mark.nightly, pytest.mark.scored("tasks")]


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ("What are the capitals of Peru, Chile and Bolivia?", ["Lima", "Santiago", "Sucre"]),
        ("What's 15% of 80 and 20% of 45?", ["result is 12", "result is 9"]),
        (
            "How many kilometres lie between the capitals of Portugal and Poland?",
            ["Lisbon", "2759.5"],
        ),
        ("How far apart are the capitals of Portugal and Poland?", ["Lisbon", "2759.5"]),
        ("What's the distance between the capitals of Peru and Chile?", ["Lima", "2467.8"]),
        ("Which symbol does the currency of Israel have?", ["ILS", "₪"]),
        (
            "What is the capital of Peru, what is the capital of Chile, and which money has Peru?",
            ["Lima", "Santiago", "PEN"],
        ),
        ("What's 12 times 7 in Roman numerals?", ["84", "LXXXIV"]),
        ("What is 12 times 7, and is 7 a prime number?", ["84", "number is 7, is prime is true"]),
        ("What's the square root of 1764?", ["result is 42"]),
        ("12 ounces in grams, 350 F in C and 6 feet in metres", ["340.19", "176.67", "1.8288"]),
        (
            "Above the door it says MDCCXLVIII, which year is that? I was married there in 2014, how would they have carved that one?",
            ["1748", "MMXIV"],
        ),
        (
            "What is the largest city in Tanzania, and when will the sun set there on 1 May 2027?",
            ["city is Dar es Salaam", "18:15"],
        ),
        (
            "Our club is named Green Turtle Rescue Fund. I'd like its acronym and a slug for the web.",
            ["GTRF", "green-turtle-rescue-fund"],
        ),
        (
            "1) symbol for the Vietnamese dong? 2) how would a German write 1849.9 euros on a bill?",
            ["VND", "1.849,90"],
        ),
    ],
)
def test_one_wish_for_several_values_is_answered_for_each(
    solved: Solved, task: str, said: list[str]
) -> None:
    outcome = solved(task)
    assert outcome.status == "answered"
    for one in said:
        assert one in outcome.answer


def test_a_value_that_no_call_was_made_with_is_missing(solved: Solved) -> None:
    task = "My savings goal is 5000 and I put away 150 a month, how long? And with 200?"
    outcome = solved(task)
    assert outcome.status in {"partial", "answered"}
    made = {str(call.arguments.get("monthly_saving")) for call in outcome.evidence}
    assert ("200" in made) == (outcome.status == "answered")
    assert ("200" in made) or any("200" in words for words in outcome.missing)


def test_what_is_counted_from_today_is(solved: Solved) -> None:
    today = dt.datetime.now().astimezone().date()
    for task, start, end in (
        ("How many days until 1 January 2300?", today, dt.date(2300, 1, 1)),
        ("How many days have passed since 4 July 1976?", dt.date(1976, 7, 4), today),
        ("how many days are left this year", today, dt.date(today.year, 12, 31)),
    ):
        outcome = solved(task)
        (call,) = outcome.evidence
        assert call.arguments == {"start": start.isoformat(), "end": end.isoformat()}
    outcome = solved("What date is it in 90 days?")
    assert (today + dt.timedelta(days=90)).isoformat() in outcome.answer
    outcome = solved("is next year a leap year?")
    assert outcome.evidence[0].arguments == {"year": today.year + 1}
