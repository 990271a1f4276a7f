"""Words and stems that tasks and APIs share."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsrv_registry.words import content_words, stem, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("getUserId v2/fetch:data", ["get", "user", "id", "v2", "fetch", "data"]),
        ("HTTPServer", ["http", "server"]),
        ("Zürich_2024", ["zürich", "2024"]),
        ("天气 now", ["天", "气", "now"]),
        ("", []),
    ],
)
def test_words_are_split_the_same_way_everywhere(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@pytest.mark.parametrize(
    "family",
    [
        ("convert", "converts", "converting", "converted", "converter"),
        ("time", "times", "timing"),
        ("currency", "currencies"),
        ("match", "matches"),
        ("plan", "planning", "planned"),
    ],
)
def test_forms_of_a_word_meet(family: tuple[str, ...]) -> None:
    assert len({stem(word) for word in family}) == 1


def test_different_words_stay_apart() -> None:
    assert len({stem(word) for word in ("news", "new", "bus", "us", "weather", "wet")}) >= 5


def test_a_text_of_stop_words_keeps_them() -> None:
    assert content_words("who is it") == ["who", "is", "it"]
    assert content_words("what is the weather") == ["weather"]


@given(st.text(max_size=200))
def test_every_text_has_words_of_bounded_length(text: str) -> None:
    for word in words(text):
        assert 0 < len(word) <= 40
        assert stem(word)
