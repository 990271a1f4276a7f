"""Clauses: where a task is split, and that nothing is lost."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsrv_registry.search.clauses import CLAUSE_LIMIT, TEXT_LIMIT, clauses

JOINING = frozenset(
    """additionally after afterwards also and as besides but finally following furthermore lastly
    moreover next plus that then this well""".split()  # noqa: SIM905  (readable as a sentence)
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What time is it?", ["What time is it"]),
        ("Find a hotel. Convert 3.5 pounds!", ["Find a hotel", "Convert 3.5 pounds"]),
        ("count words; reverse text", ["count words", "reverse text"]),
        (
            "get the weather and then convert money",
            ["get the weather", "convert money"],
        ),
        (
            "the weather in Rome, and hotels nearby, also news about it",
            ["the weather in Rome", "hotels nearby", "news about it"],
        ),
        ("hash this text after that count it twice", ["hash this text", "count it twice"]),
        ("show rain and tell me the time", ["show rain", "tell me the time"]),
        (
            "what is the capital, how many live there, and where is it",
            ["what is the capital", "how many live there", "where is it"],
        ),
        ("salt and pepper shops", ["salt and pepper shops"]),
        ("the price in U.S. dollars", ["the price in U.S. dollars"]),
        ("- first thing\n- second thing", ["first thing", "second thing"]),
        ("", []),
        (" .;! ", []),
    ],
)
def test_a_task_is_split_at_its_joints(text: str, expected: list[str]) -> None:
    assert clauses(text) == expected


def test_cjk_sentences_are_split() -> None:
    text = "東京の天気を教えてください\u3002それから一万円をユーロに換えてください\u3002"
    assert len(clauses(text)) == 2


def test_a_fragment_joins_its_neighbour() -> None:
    assert clauses("Hello; find a hotel in Rome") == ["Hello find a hotel in Rome"]


def test_there_are_at_most_twelve_and_the_last_takes_the_rest() -> None:
    found = clauses(". ".join(f"Find thing {n}" for n in range(30)))
    assert len(found) == CLAUSE_LIMIT
    assert found[-1].endswith("thing 29")


@given(st.text(max_size=400))
def test_clauses_cover_every_word_but_the_joining_ones(text: str) -> None:
    found = clauses(text)
    kept = re.findall(r"\w+", " ".join(found))
    everything = re.findall(r"\w+", text)
    lost = list(everything)
    for word in kept:
        if word in lost:
            lost.remove(word)
    assert [word for word in lost if word.lower() not in JOINING] == []


@given(st.text(max_size=6000))
def test_clauses_are_clean_and_few(text: str) -> None:
    found = clauses(text)
    assert len(found) <= CLAUSE_LIMIT
    assert all(clause.strip() == clause and clause for clause in found)
    assert sum(map(len, found)) <= TEXT_LIMIT


@pytest.mark.parametrize("unit", [" ", "a ", "\n", ", and then", " and also", ". ", "\u2028 then "])
def test_a_hundred_kilobytes_of_anything_are_quick(unit: str) -> None:
    started = time.perf_counter()
    clauses(unit * (100_000 // len(unit)))
    assert time.perf_counter() - started < 1.0
