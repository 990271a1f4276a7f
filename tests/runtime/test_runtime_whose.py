"""Whose a place is, by the words beside it."""

from __future__ import annotations

import time

import pytest

from toolsrv_runtime.planner.reading.whose import whose


@pytest.mark.parametrize(
    ("text", "side"),
    [
        ("We sit in Lima", "mine"),
        ("i'm in lima right now", "mine"),
        ("I\u2019ve moved to Lima", "mine"),
        ("we're stuck in Lima until Monday", "mine"),
        ("I am currently at home in Lima", "mine"),
        ("What time is that for us in Lima?", "mine"),
        ("our team here in Lima", "mine"),
        ("Greetings from Lima!", "mine"),
        ("I have to dial in from Lima", "mine"),
        ("I'm calling my sister in Oslo from Lima", "mine"),
        ("Lima is where I live", "mine"),
        ("It's noon in Lima, where we are", "mine"),
        ("At 5 pm my time (Lima)", "mine"),
        ("Our office is in Lima", "mine"),
        ("I am a nurse in Lima", "mine"),
        ("I live in Oslo and work in Lima", "mine"),
        ("I'm visiting my sister in Lima", "mine"),
        ("my sister in Lima", "theirs"),
        ("I want to ring the new client in Lima", "theirs"),
        ("We have a call with people in Lima", "theirs"),
        ("I live in Oslo, my aunt in Lima", "theirs"),
        ("My parents are in Lima", "theirs"),
        ("Grandma's in Lima, we're not", "theirs"),
        ("she's in Lima", "theirs"),
        ("My boss moved to Lima", "theirs"),
        ("They are still based in Lima", "theirs"),
        ("Anna lives in Lima", "theirs"),
        ("I'm in Oslo and he sits and works in Lima, he lives in Lima", "theirs"),
        ("she lives in Oslo but works in Lima", "theirs"),
        ("Can I ring Anna in Lima?", "theirs"),
        ("our investor from Lima", "theirs"),
        ("Lima is where the developers are", "theirs"),
        ("the Lima team", "theirs"),
        ("their office is in Lima", "theirs"),
    ],
)
def test_a_place_is_its_people_s(text: str, side: str) -> None:
    assert whose("Lima", text) == side


@pytest.mark.parametrize(
    "text",
    [
        "What time is it in Lima?",
        "I need to know the time in Lima",
        "My sister asks what time it is in Lima",
        "I used to live in Lima",
        "I'm from Lima",
        "I am not in Lima",
        "I live in Oslo and fly to Lima",
        "I'm in Limassol",
        "Lima, where I am from",
        "tell me in Lima time",
        "We will call people from Lima",
        "I join a call that she makes from Lima",
        "I live in Lima. My sister lives in Lima.",
        'He wrote: "I live in Lima"',
        "",
    ],
)
def test_what_is_not_said_or_said_of_both_is_nobody_s(text: str) -> None:
    assert whose("Lima", text) == ""


@pytest.mark.parametrize("word", ["I live in my ", "my sister ", "is where they are, ", "Lima in "])
def test_a_long_task_takes_no_longer_than_its_words(word: str) -> None:
    began = time.perf_counter()
    assert whose("Lima", word * (20_000 // len(word))) in {"", "theirs"}
    assert time.perf_counter() - began < 10
