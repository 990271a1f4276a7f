"""Needs: where a list comes apart, and what stays together."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsrv_registry.search.clauses import subtasks


@pytest.mark.parametrize(
    ("clause", "expected"),
    [
        (
            "news about Tesla, its stock price and a joke",
            ["news about Tesla", "its stock price", "a joke"],
        ),
        ("weather, news and jokes", ["weather", "news", "jokes"]),
        (
            "stock price of Apple, flights to London and hotels in London",
            ["stock price of Apple", "flights to London", "hotels in London"],
        ),
        (
            "translate hello and throw a coin and recite a poem",
            ["translate hello", "throw a coin", "recite a poem"],
        ),
        ("premier league table, NBA scores", ["premier league table", "NBA scores"]),
        ("hotels in Rome, Paris and London", ["hotels in Rome, Paris and London"]),
        ("hotels in rome, paris and london", ["hotels in rome, paris and london"]),
        ("convert 3 miles and 5 yards", ["convert 3 miles and 5 yards"]),
        (
            "the distance between the tower and the bridge",
            ["the distance between the tower and the bridge"],
        ),
        (
            "plan a trip to Tokyo: find flights, hotels",
            ["plan a trip to Tokyo", "find flights", "hotels"],
        ),
        ("reverse this text: some words", ["reverse this text: some words"]),
        ("I am planning a trip to Rome", []),
        ("I need a taxi and a pizza", ["I need a taxi", "a pizza"]),
        ("", []),
    ],
)
def test_lists_come_apart_and_values_stay(clause: str, expected: list[str]) -> None:
    assert subtasks([clause]) == expected


@given(st.text(max_size=300))
def test_needs_are_taken_from_the_text_as_it_is(text: str) -> None:
    found = subtasks([text])
    assert all(need and need in text for need in found)


@pytest.mark.parametrize("unit", [" and a b", ", the x", "and ", ", ", "plus plus "])
def test_a_long_text_is_quick(unit: str) -> None:
    started = time.perf_counter()
    subtasks([unit * 500])
    assert time.perf_counter() - started < 1.0
