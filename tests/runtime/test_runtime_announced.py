"""Texts that a task announces without quotation marks."""

from __future__ import annotations

import time

import pytest

from toolsrv_runtime.planner.reading import parts, spans
from toolsrv_runtime.planner.reading.announced import LIMIT, announced


@pytest.mark.parametrize(
    ("task", "texts"),
    [
        ("Words in this note: Meet Ana (the tall one), then go.", ["Meet Ana (the tall one), then go."]),
        ("How many letters has this line: one, two and three?", ["one, two and three"]),
        ("Reverse the following short text: ab cd\nAnd what is 2 + 2?", ["ab cd"]),
        ("Count this sentence: We left. Then we sang. And please tell me the time.", ["We left. Then we sang."]),
        ("Count this sentence: We left. What is the capital of Peru?", ["We left."]),
        ("Shift these words: a b; and that text: c d", ["a b; and that text: c d"]),
        ("Reverse this word: stressed", []),
        ('Reverse this text: "ab cd", then go', []),
        ("I need this: the capital of Peru, the time in Lima", []),
        ("the note says: go home", []),
    ],
)  # fmt: skip
def test_an_announced_text_is_data_to_its_end(task: str, texts: list[str]) -> None:
    assert [task[begin:end] for begin, end in announced(task)] == texts
    assert [one for one in spans.quoted(task) if one != "ab cd" or texts] == texts


def test_it_is_not_split_into_parts() -> None:
    task = "Count the words in this note: Meet Ana, then go home. And what is 7 in Roman numerals?"
    assert [part.text for part in parts.split(task)] == [
        "Count the words in this note",
        "Meet Ana, then go home",
        "what is 7 in Roman numerals",
    ]


def test_a_hostile_text_is_cut_and_quick() -> None:
    began = time.monotonic()
    for text in ("this note: " * 2_000, "this text: a " + "b. " * 40_000):
        assert all(end - begin <= LIMIT for begin, end in announced(text))
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    ("value", "task", "alone"),
    [
        (
            "https://farm.example/eggs gets",
            "how big is the code for https://farm.example/eggs gets",
            "https://farm.example/eggs",
        ),
        ("https://farm.example/eggs", "https://farm.example/eggs", "https://farm.example/eggs"),
        (
            "https://farm.example eggs",
            'encode "https://farm.example eggs"',
            "https://farm.example eggs",
        ),
        (
            "eggs at https://farm.example now",
            "eggs at https://farm.example now",
            "eggs at https://farm.example now",
        ),
    ],
)
def test_an_address_ends_where_the_words_go_on(value: str, task: str, alone: str) -> None:
    assert spans.address_alone(value, task) == alone
