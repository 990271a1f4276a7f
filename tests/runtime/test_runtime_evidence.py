"""The evidence check: what of an answer is traced, to what, and what is not."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsrv_catalogs.text import clean
from toolsrv_runtime.evidence import CLAIMS_LIMIT, SOURCE_LIMIT, Traced, trace
from toolsrv_runtime.outcome import Claim

RESPONSE: dict[str, Any] = {
    "capital": "Lima",
    "population": 12345678,
    "born": "1987-03-09",
    "at": "2026-05-03T14:30:00+02:00",
    "rate": 1.08345,
    "share": 0.125,
    "rivers": ["Amazon", "Ucayali", "Marañón"],
    "iban": "DE89370400440532013000",
    "mail": "info@example.org",
    "id": "123e4567-e89b-12d3-a456-426614174000",
    "author": "José Martínez",
    "low": -4,
    "rooms": "twelve rooms and two hundred and five beds",
    "rates": {"EUR": 3.7},
}


def told(answer: str, task: str = "What about Peru?", response: Any = RESPONSE) -> Traced:
    return trace(answer, task, [(3, response)])


def texts(claims: tuple[Claim, ...]) -> list[str]:
    return [one.text for one in claims]


@pytest.mark.parametrize(
    ("said", "how"),
    [
        ("12345678", "said"),
        ("12,345,678", "said"),
        ("12 345 678", "said"),
        ("12.345.678", "said"),
        ("12.3 million", "rounded"),
        ("1.08", "rounded"),
        ("1.0834", "rounded"),
        ("1,08", "rounded"),
        ("12.5%", "said"),
        ("12.5 percent", "said"),
        ("0.13", "rounded"),
        ("-4", "said"),
        ("12", "said"),
        ("twelve", "said"),
        ("205", "said"),
        ("three", "counted"),
        ("2026", "said"),
        ("9 March 1987", "said"),
        ("March 9th, 1987", "said"),
        ("9.3.1987", "said"),
        ("March 1987", "said"),
        ("3 May", "said"),
        ("2:30 pm", "said"),
        ("2.30 p.m.", ""),
        ("14:30", "said"),
        ("Jose Martinez", "said"),
        ("Marañón", "said"),
        ("EUR", "said"),
        ("Peru", "said"),
        ("Sunday", "said"),
        ("DE89 3704 0044 0532 0130 00", "said"),
        ("123E4567-E89B-12D3-A456-426614174000", "said"),
        ("INFO@example.org", "said"),
        ("12345679", ""),
        ("1.09", ""),
        ("1.0836", ""),
        ("12.4 million", ""),
        ("4 March 1987", ""),
        ("3 June", ""),
        ("2:30 am", ""),
        ("José Alvarez", ""),
        ("New York", ""),
        ("Tuesday", ""),
        ("DE89370400440532013001", ""),
        ("info@example.com", ""),
        ("https://example.org/a?b=1", ""),
        ("0", ""),
    ],
)
def test_a_statement_is_supported_by_its_value_in_any_spelling(said: str, how: str) -> None:
    traced = told(f"it says {said} here")
    if how:
        assert texts(traced.unsupported) == []
        assert {one.how for one in traced.supported} == {how}
    else:
        assert traced.unsupported


def test_a_claim_names_its_nodes_and_whether_the_task_says_it() -> None:
    traced = trace("it is Lima in Peru", "What about Peru?", [(3, "Lima"), (7, {"a": ["lima"]})])
    lima, peru = traced.supported
    assert (lima.text, lima.kind, lima.nodes, lima.in_task) == ("Lima", "name", (3, 7), False)
    assert (peru.text, peru.start, peru.nodes, peru.in_task) == ("Peru", 14, (), True)


def test_numbering_ordinals_and_the_capital_of_a_sentence_state_nothing() -> None:
    traced = told("1. First of all: one thing.\n2. However the second. Nobody knows.\n3) Yes")
    assert traced == Traced()


def test_a_name_at_the_start_of_a_sentence_is_traced_without_a_word_of_the_sentence() -> None:
    traced = told("So it is. Perhaps Lima. However New York.")
    assert texts(traced.supported) == ["Lima"]
    assert texts(traced.unsupported) == ["However New York"]


CAPITALS = [(1, {"country": "Peru", "capital": "Lima"}), (2, {"capital": "Santiago"})]


@pytest.mark.parametrize(
    "answer",
    [
        "Berlin is the capital of Peru",
        "Lima is it. Berlin is not.",
        "Berlin",
        "Berlin.",
        "**Berlin**",
        "`Berlin`",
        "(Berlin)",
        "Capital: Berlin",
        "Capital: **Berlin**",
        "**Capital:** Berlin",
        'The answer is "Berlin"',
        "The answer is: Berlin (as far as known)",
        "1. Lima\n2. Berlin",
        "* Lima\n* Berlin",
        "Lima\nBerlin",
        "Berlin: Lima",
        "Berlin's mayor works in Lima",
    ],
)
def test_a_wrong_name_is_listed_wherever_it_stands(answer: str) -> None:
    traced = trace(answer, "What are the capitals of Peru and Chile?", CAPITALS)
    assert texts(traced.unsupported) == ["Berlin"]


@pytest.mark.parametrize("word", ["Cloudy", "Orange", "Daily"])
def test_a_common_word_is_a_claim_where_a_value_stands(word: str) -> None:
    assert texts(trace(f"Condition: {word}", "t", []).unsupported)[-1:] == [word]
    assert texts(trace(f"{word} it is.", "t", []).unsupported) == []


def test_a_name_with_an_accent_is_no_word_in_lower_case() -> None:
    assert texts(trace("Ålesund is it.", "t", []).unsupported) == ["Ålesund"]


def test_another_first_name_is_not_supported_by_the_last_name() -> None:
    assert texts(told("Juan Martínez wrote it.").unsupported) == ["Juan Martínez"]
    assert texts(told("Perhaps José Martínez wrote it.").supported) == ["José Martínez"]


WEATHER = {
    "sunrise": "06:12",
    "bmi": 25.3,
    "flights": [1, 2, 3],
    "temperature": {"celsius": 21.5},
    "weather": "sunny",
    "city": "Oslo",
}


@pytest.mark.parametrize(
    "answer",
    [
        "There are three flights.",
        "Unfortunately I could not find it.",
        "Unfortunately, none of the calls worked.",
        "I'm sorry, but I couldn't find that. Don't worry.",
        "Sunrise is at 06:12.",
        "Your BMI is 25.3.",
        "Yes.",
        "No, it isn't. There's more.",
        "**Weather:** sunny\n**Temperature**: 21.5",
        "Here is what I found:\n- Flights: 3\n- Temperatures around 21.5",
        "Currently it is sunny in Oslo. Expect 21.5 degrees.",
        "According to the response, Oslo is sunny.",
        "Note: Prices may vary. However, I checked.",
        "1. First, convert it.\n2. Then multiply it by 21.5.",
        "Summary\nOslo is sunny.",
        "## Weather in Oslo\nSunny, with 21.5",
        "Flying takes longer. Driving is cheaper.",
        "Well-known places are open. Umbrellas are not needed.",
        "Is it raining? Apparently not. Enjoy Oslo!",
        "It has a gnomon. Gnomons cast shadows.",
        "Result: None",
        "La temperatura es 21.5",
    ],
)
def test_ordinary_sentences_name_nothing(answer: str) -> None:
    traced = trace(answer, "What is the weather in Oslo, and my BMI?", [(1, WEATHER)])
    assert texts(traced.unsupported) == []


def test_what_of_a_very_long_answer_nobody_looked_at_is_counted() -> None:
    long = " ".join(map(str, range(1000, 1000 + CLAIMS_LIMIT + 7, 1)))
    traced = trace(long.replace(" ", "; "), "t", [])
    assert (len(traced.unsupported), traced.unread) == (CLAIMS_LIMIT, 7)
    assert trace("It is 1000.", "t", []).unread == 0


@pytest.mark.parametrize(
    ("answer", "value", "supported"),
    [
        ("The temperature is 5.25 degrees.", -5.25, False),
        ("The change is 12%.", -12, False),
        ("The change is -12%.", 12, False),
        ("It is 5.3 degrees.", -5.25, False),
        ("The profit was $5.", -5, False),
        ("It lost ground. The change is 12%.", -12, False),
        ("The temperature is -5.25 degrees.", -5.25, True),
        ("The temperature is 5.25 degrees below zero.", -5.25, True),
        ("The temperature is minus 5.25 degrees.", -5.25, True),
        ("The temperature is minus five degrees.", -5, True),
        ("It fell by 12 %.", -12, True),
        ("It is 12 % lower.", -12, True),
        ("A loss of 12.3 million.", -12_300_000, True),
        ("The balance is -$12.", -12, True),
        ("The balance is \u2212\u20ac 12.", -12, True),
        ("Lima lies 77.03 degrees west.", -77.03, True),
        ("Lima is 5 hours behind London.", -5, True),
        ("The difference is 5 hours.", -5, True),
        ("It takes 5-7 days.", "5-7 days", True),
        ("It takes 5 to 7 days.", "5 -7 days", True),
        ("It is open from 9 -17.", "9 to 17", True),
        ("The result - 12 - is final.", 12, True),
        ("It is on 2026-05-03, room 12-3.", "2026-05-03, room 12-3", True),
    ],
)
def test_a_number_is_supported_with_its_sign(answer: str, value: Any, supported: bool) -> None:
    traced = trace(answer, "x", [(1, {"value": value}), (2, "Lima London")])
    assert (texts(traced.unsupported) == []) is supported


@given(st.decimals(min_value="0.01", max_value=10**6, places=2), st.booleans())
def test_another_sign_is_another_number(value: Any, negative: bool) -> None:
    said, other = (f"-{value}", str(value)) if negative else (str(value), f"-{value}")
    assert texts(trace(f"It is {said} here.", "x", [(1, {"v": float(said)})]).unsupported) == []
    assert texts(trace(f"It is {said} here.", "x", [(1, {"v": float(other)})]).unsupported)


def test_a_currencys_code_is_said_by_its_own_name_and_no_other() -> None:
    spain = {"currency": "Euro", "other": "Dollar", "sign": "$"}
    assert texts(trace("It costs 5 EUR.", "5", [(1, spain)]).unsupported) == []
    assert texts(trace("It costs 5 EUR.", "5", [(1, {"sign": "\u20ac"})]).unsupported) == []
    assert texts(trace("It costs 5 USD.", "5", [(1, spain)]).unsupported) == ["USD"]


def test_names_around_of_are_each_a_whole_value_or_of_the_task() -> None:
    lima = {"city": "Lima", "country": "Peru"}
    assert texts(trace("It is Lima of Peru.", "x", [(1, lima)]).unsupported) == []
    assert texts(trace("It is Lima of Peru.", "in Peru", [(1, "Lima")]).unsupported) == []
    bank = {"name": "Bank of Peru", "country": "Chile", "bank": 1}
    assert texts(trace("It is the Bank of Chile.", "x", [(1, bank)]).unsupported) == [
        "Bank of Chile"
    ]


def test_an_error_is_a_source_too() -> None:
    assert trace("it failed with 503", "t", [(1, "status 503")]).supported


SAYINGS = (
    "Lima New York is at the May March 3 2026 1,234.5 1.234,5 5 200 2026-05-03 10:30 10 pm am "
    "twenty three hundred and of 12GB H2O a@b.org http://x.org/1 +49 30 901820 9:5 ½ Ångström "
    "1.2 million % 5% -4 −4 (7) [8], 9; U.S.A. 1e5 O'Brien José's 978-3-16 #ff00aa"
)
WORDS = st.one_of(
    st.sampled_from(SAYINGS.split()),
    st.integers().map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(str),
    st.dates().map(str),
    st.datetimes().map(lambda one: one.isoformat()),
    st.uuids().map(str),
    st.text(min_size=1, max_size=8),
)


@given(st.lists(WORDS, min_size=1, max_size=12), st.data())
def test_text_copied_from_a_response_is_always_supported(words: list[str], data: Any) -> None:
    words = clean(" ".join(words), SOURCE_LIMIT).split()  # as a model sees a response
    start = data.draw(st.integers(0, len(words)))
    end = data.draw(st.integers(start, len(words)))
    answer = " ".join(words[start:end])
    traced = trace(answer, "", [(1, {"text": [{"x": " ".join(words)}]})])
    assert texts(traced.unsupported) == []


@given(
    st.integers(10_000_000, 99_999_999),
    st.lists(st.one_of(st.integers(), st.dates().map(str), st.text())),
)
def test_a_number_of_eight_digits_that_nobody_said_is_always_unsupported(
    number: int, values: list[int | str]
) -> None:
    if any(str(number) in str(one) or abs(number) == one for one in values):
        return
    said = f"The total is {number} in all."
    assert texts(trace(said, "", [(1, values)]).unsupported) == [str(number)]


@pytest.mark.parametrize("base", ["ab-", "1,", "x@", "one-", "12:34:", "1 234 ", "a.b", "#", "_"])
def test_no_text_is_slow(base: str) -> None:
    text = base * (SOURCE_LIMIT // 4 // len(base))
    began = time.process_time()
    trace("Lima has 5 on 3 May 2026", "", [(1, text)])
    assert time.process_time() - began < 3


def test_what_is_nested_deeply_is_read_without_recursion() -> None:
    deep: Any = "Lima"
    for _ in range(5_000):
        deep = [deep]
    assert trace("it is Lima", "", [(1, deep), (2, {"a": {"b": "Lima"}})]).supported[0].nodes == (
        2,
    )


@pytest.mark.parametrize(
    ("answer", "supported", "unsupported"),
    [
        ("It is on the third of May 2026.", ["third of May 2026"], []),
        ("It is on the fourth of May 2026.", [], ["fourth of May 2026"]),
        ("It was on the ninth of March, 1987.", ["ninth of March, 1987"], []),
        ("It was on the twenty-ninth of March 1987.", [], ["twenty-ninth of March 1987"]),
        ("It is by Mr. Martínez.", ["Martínez"], []),
        ("It is by Dr. Brown and Mrs Green.", [], ["Brown", "Green"]),
    ],
)
def test_days_in_words_and_names_behind_titles_are_traced(
    answer: str, supported: list[str], unsupported: list[str]
) -> None:
    found = told(answer)
    assert texts(found.supported) == supported
    assert texts(found.unsupported) == unsupported


@pytest.mark.parametrize(
    ("answer", "response", "supported", "unsupported"),
    [
        ("It is at half past two.", {"at": "14:30"}, ["half past two"], []),
        ("It is at half past two.", {"at": "13:30"}, [], ["half past two"]),
        ("It is at half past two at night.", {"at": "14:30"}, [], ["half past two at night"]),
        ("It is at 16:45.", {"at": "a quarter to five pm"}, ["16:45"], []),
        ("Open from eight in the morning.", {"at": "08:00"}, ["eight in the morning"], []),
        ("Open until noon.", {"at": "12:00:00"}, ["noon"], []),
        ("Open until midnight.", {"at": "12:00"}, [], ["midnight"]),
        ("The solar noon is later.", {"solar_noon": "12:34"}, [], []),
        ("It is at 10 pm or 9 am.", {"at": ["22:00", "09:00"]}, ["10 pm", "9 am"], []),
        ("It is at 10 pm.", {"at": ["10:00", "22:01"]}, [], ["10 pm"]),
        ("It is at 12 am and 12 pm.", {"at": ["00:00"]}, ["12 am"], ["12 pm"]),
        ("It is at 10 p.m. or 9 PM.", {"at": ["22:00", "21:00"]}, ["10 p.m.", "9 PM"], []),
        (
            "It is at half past two, a quarter past five, a quarter to six and noon: 4 times.",
            {"at": ["14:30", "17:15", "05:45", "12:00"]},
            ["half past two", "a quarter past five", "a quarter to six", "noon", "4"],
            [],
        ),
        ("It takes 2½ cups and ⅓ more.", {"cups": 2.5, "more": 0.3333}, ["2½", "⅓"], []),
        ("It takes 2½ cups.", {"cups": 2.6}, [], ["2½"]),
        ("It takes −½ cups.", {"cups": 0.5}, [], ["−½"]),
        ("It takes 2.5 cups.", {"cups": "2½ cups"}, ["2.5"], []),
    ],
)
def test_times_in_words_and_fractions_of_one_character_are_traced(
    answer: str, response: Any, supported: list[str], unsupported: list[str]
) -> None:
    found = trace(answer, "", [(1, response)])
    assert texts(found.supported) == supported
    assert texts(found.unsupported) == unsupported


def test_a_name_in_a_script_without_capitals_is_traced_where_a_response_may_run_on() -> None:
    answer = "The names are 東京, 大阪 and नमस्ते दुनिया."
    found = trace(answer, "", [(1, {"name": "東京都", "other": "नमस्ते दुनिया"})])
    assert texts(found.supported) == ["東京", "नमस्ते दुनिया"]
    assert texts(found.unsupported) == ["大阪"]


def test_a_text_mostly_in_a_script_without_capitals_names_nothing() -> None:
    assert trace("東京は日本の首都です", "", [(1, "x")]) == Traced()


@pytest.mark.parametrize(
    ("answer", "response", "supported", "unsupported"),
    [
        ("It is 12 345 here.", {"a": 12, "b": 345}, ["12 345"], []),
        ("It is 12 345 here.", {"a": 12, "b": 346}, [], ["12 345"]),
        ("It was 31.02.2026.", {"on": "31.02.2026"}, ["31.02.2026"], []),
        ("It was 31.02.2026.", {"on": "28.02.2026"}, [], ["31.02.2026"]),
        ("It was in May 2026.", {"on": "2026-05-03"}, ["May 2026"], []),
        ("It was in May 2025.", {"on": "2026-05-03"}, [], ["May 2025"]),
        ("Сегодня тепло.", {"city": "Oslo"}, [], []),
        ("It has 3 rooms.", {"rooms": ["a", "b", "c"]}, ["3"], []),
        ("It has 4 rooms.", {"rooms": ["a", "b", "c"]}, [], ["4"]),
        ("It has 3.5 rooms.", {"rooms": ["a", "b", "c"]}, [], ["3.5"]),
        ("Call +49 30 901820.", {"phone": "+49-30-901820"}, ["+49 30 901820"], []),
    ],
)
def test_parts_of_dates_numbers_and_names_are_traced(
    answer: str, response: Any, supported: list[str], unsupported: list[str]
) -> None:
    found = trace(answer, "", [(1, response)])
    assert texts(found.supported) == supported
    assert texts(found.unsupported) == unsupported
