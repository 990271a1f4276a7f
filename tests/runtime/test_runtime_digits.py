"""A task with its numbers in digits."""

from __future__ import annotations

import time

import pytest

from toolsrv_runtime.planner.reading.digits import in_digits


@pytest.mark.parametrize(
    ("task", "read"),
    [
        ("3/4 cup of honey", "0.75 cup of honey"),
        ("2 1/2 cups from 4 to 10", "2.5 cups from 4 to 10"),
        ("2½ cups, ½ tsp", "2.5 cups, 0.5 teaspoons"),
        ("two and a half cups", "2.5 cups"),
        ("thirty-one and a half degrees", "31.5 degrees"),
        ("an hour and a half", "1.5 hours"),
        ("a mile and a half", "1.5 miles"),
        ("three quarters of an hour", "45 minutes"),
        ("swim half an hour a day, or half of an hour", "swim 30 minutes a day, or 30 minutes"),
        (
            "today she made half hour of bicycle, a half-hour",
            "today she made 30 minutes of bicycle, a 30 minutes",
        ),
        ("half a million miles", "500000 miles"),
        ("a quarter of a million", "250000"),
        ("half a dozen eggs", "6 eggs"),
        ("half a kilowatt", "0.5 kilowatt"),
        ("1.5 million in words", "1500000 in words"),
        ("thirty-eight point five celsius", "38.5 celsius"),
        ("38 point 5 degrees", "38.5 degrees"),
        ("one metre eighty", "1.80 m"),
        ("1 meter 75", "1.75 m"),
        ("someone aged thirty three", "someone aged 33"),
        ("a hundred and twenty miles", "120 miles"),
        ("two thousand and twenty six", "2026"),
        ("five miles", "5 miles"),
        ("twenty below zero", "20 below zero"),
        ("minus seven in Italian", "minus 7 in Italian"),
        ("ten minus seven", "ten minus seven"),
        ("20,000mAh", "20000 mAh"),
        ("1,75 m and 70,5 kg", "1.75 m and 70.5 kg"),
        ("3 tsp salt, 2 tbsp oil", "3 teaspoons salt, 2 tablespoons oil"),
        ("what is 300 K in celsius", "what is 300 kelvin in celsius"),
        ("noon in Tokyo", "12:00 in Tokyo"),
        ("over a decade", "over 10 years"),
        ("two and a half decades", "25 years"),
        ("three centuries", "300 years"),
        ("three fortnights before", "6 weeks before"),
        ("the twenty second of May 1990", "the 22 of May 1990"),
        ("on the third of June", "on the 3 of June"),
        ("March the thirty-first", "March 31"),
        ("December twenty-fifth", "December 25"),
        ("half price on 80", "50% off on 80"),
        ("Reverse two and a half. And 2 1/2 cups?", "Reverse two and a half. And 2.5 cups?"),
        ("a third off", "33.33% off"),
    ],
)
def test_what_is_a_number_is_told_in_digits(task: str, read: str) -> None:
    assert in_digits(task) == read


@pytest.mark.parametrize(
    "task",
    [
        "1 1/2 + 3/4",
        "what is 3/4 + 1/2",
        "on 3/4/2026 or 12/5",
        "the twenty first of them",
        "the second may come",
        "march first, then run",
        "forty-two fifty for two",
        "nineteen eighty-four",
        '"two and a half men" in capitals',
        "count the words in this text: two and a half men on three miles",
        "https://a.example/two-and-a-half",
        "Reverse the phrase two and a half men",
        "how many letters are in seventy-nine",
        "make it uppercase: one hundred and one dalmatians",
        "half a cup of butter",
        "the numbers 1,2 and 3",
        "litres per hundred km",
        "one or two of them",
        "10k in 45 minutes",
        "afternoon in Tokyo",
    ],
)
def test_everything_else_stays(task: str) -> None:
    assert in_digits(task) == task


@pytest.mark.parametrize(
    ("task", "read"),
    [
        ("Borrowing 25.000 at 5,4%", "Borrowing 25000 at 5.4%"),
        ("€8.500 of it, 1.000 euro or 12.500 zloty", "€8500 of it, 1000 euro or 12500 zloty"),
        ("1.234.567,89 and 1.234.567", "1234567.89 and 1234567"),
        ("a debt of 3.141,50", "a debt of 3141.50"),
        ("at latitude 52.370, 2,5 m up", "at latitude 52.370, 2.5 m up"),
    ],
)
def test_dots_between_thousands_are_left_out(task: str, read: str) -> None:
    assert in_digits(task) == read


@pytest.mark.parametrize(
    "task",
    [
        "it weighs 2.205 pounds",
        "petrol at €1.899 a litre, power at €1.250 per kWh",
        "$3.499 a gallon",
        "latitude 52.370, longitude 4.895",
        "from the point 1,2 to 3.141",
        "who is 192.168.100.200",
        "version 1.000.2",
        "the numbers 1,2,3 and 1.000",
        '"25.000 at 5,4%" in capitals',
    ],
)
def test_three_decimals_stay_where_nothing_says_thousands(task: str) -> None:
    assert in_digits(task) == task


def test_a_hostile_text_is_quick() -> None:
    for text in (
        "one " * 5_000,
        "1/2 " * 5_000,
        "and a half " * 2_000,
        "9,9" * 5_000,
        "1.234" * 5_000,
        "€1.000 " * 5_000,
    ):
        begun = time.perf_counter()
        in_digits(text)
        assert time.perf_counter() - begun < 2
