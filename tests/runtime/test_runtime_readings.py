"""Values as people spell them, read as APIs take them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsrv_runtime.values import kinds
from toolsrv_runtime.values.kinds import normalise_value


@pytest.mark.parametrize(
    ("kind", "said", "means"),
    [
        ("number", "nine hours", "9"),
        ("number", "7 %", "7"),
        ("number", "36,500", "36500"),
        ("number", "$1,250.50", "1250.50"),
        ("number", "2,5", "2.5"),
        ("number", "1 250", "1250"),
        ("number", "1.35 million", "1350000"),
        ("number", "450k", "450000"),
        ("number", "a hundred", "100"),
        ("number", "three and a half", "3.5"),
        ("number", "half an hour", "0.5"),
        ("number", "a dozen", "12"),
        ("number", "minus 3", "-3"),
        ("number", "−12 °C", "-12"),
        ("number", "3 semitones down", "-3"),
        ("number", "10 days before", "-10"),
        ("number", "hex", "16"),
        ("number", "a cup", "1"),
        ("number", "an", "1"),
        ("number", "a cup of honey", "a cup of honey"),
        ("length", "half marathon", "half marathon"),
        ("length", "half a mile", "0.5 mile"),
        ("number", "some", "some"),
        ("year", "1994", "1994"),
        ("date", "14 July 2027", "2027-07-14"),
        ("date", "fourteenth of August 1949", "1949-08-14"),
        ("date", "Mar 3rd, 2026", "2026-03-03"),
        ("date", "5/6/2026", "2026-06-05"),
        ("date", "12.03.2025", "2025-03-12"),
        ("date", "2026-05-06", "2026-05-06"),
        ("date", "March 3rd", "March 3rd"),
        ("date", "tomorrow", "tomorrow"),
        ("date", "31/31/2026", "31/31/2026"),
        ("length", "twelve km", "12 km"),
        ("length", "1,320 km", "1320 km"),
        ("weight", "64 kilos", "64 kg"),
        ("note", "B flat", "Bb"),
        ("time", "1130", "11:30"),
        ("time", "9.30 pm", "9:30 pm"),
        ("time", "1:06:00", "1:06:00"),
        ("time", "2027-05-03 10:30:45", "2027-05-03 10:30:45"),
        ("language", "hungarians", "Hungarian"),
        ("language", "the Danes", "Danish"),
        ("language", "Swahili", "Swahili"),
        ("language", "the Swiss", "the Swiss"),
        ("language", "klingons", "klingons"),
        ("text", "nine lives", "nine lives"),
        ("name", "Dar es Salaam (5,383,728)", "Dar es Salaam"),
        ("name", "Portland (Oregon)", "Portland (Oregon)"),
        ("name", "(12)", "(12)"),
    ],
)
def test_a_spelling_is_read_as_an_api_takes_it(kind: str, said: str, means: str) -> None:
    assert normalise_value(kind, said) == means


@given(st.integers(-(10**9), 10**9))
def test_a_number_reads_as_itself_with_and_without_commas(number: int) -> None:
    assert normalise_value("number", str(number)) == str(number)
    assert normalise_value("number", f"{number:,}") == str(number)


@given(st.dates())
def test_a_date_reads_as_itself(date: object) -> None:
    assert normalise_value("date", str(date)) == str(date)


@given(st.sampled_from(["number", "date", "length", "time", "note", "year", ""]), st.text())
def test_whatever_is_said_has_a_reading(kind: str, said: str) -> None:
    assert isinstance(normalise_value(kind, said), str)


@pytest.mark.parametrize("kind", ["hex", "colour"])
def test_a_colour_may_be_three_numbers(kind: str) -> None:
    assert kinds.find_values(kind, "what is rgb(255, 99, 71) on #fff?") == [
        "rgb(255, 99, 71)",
        "#fff",
    ]
    assert kinds.find_values(kind, "rgb(255, 99) of") == []
