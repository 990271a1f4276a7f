"""From whose place a task measures."""

from __future__ import annotations

import time

import pytest

from toolsrv_runtime.planner.reading.viewpoint import first

PLACES = "I'm in Oslo, my sister is in Lima. "


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("How many hours is she behind me?", "Oslo"),
        ("How many hours am I ahead of her?", "Lima"),
        ("How far behind her are we?", "Lima"),
        ("How many hours ahead are they?", "Oslo"),
        ("Am I ahead or behind?", "Lima"),
        ("How much later is it for my sister?", "Oslo"),
        ("Is it later here than there?", "Lima"),
        ("How many hours is Lima behind us?", "Oslo"),
        ("How far away is she from me?", "Oslo"),
        ("What's the distance from her to me?", "Lima"),
        ("How much earlier is it at her place than over here?", "Oslo"),
        ("How far ahead of the US is Lima?", ""),
        ("How many hours are between us?", ""),
        ("Are we ahead of them, or are they ahead of us?", ""),
        ("How many hours is that?", ""),
        ("We talk at 9 am her time. How many hours is that?", ""),
    ],
)
def test_a_comparison_is_with_somebody_s_place(text: str, place: str) -> None:
    for one, other in (("Oslo", "Lima"), ("Lima", "Oslo")):
        assert first(one, other, ["2027-01-20"], "", PLACES + text) == place


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("She wants to talk on Feb 10th 2027 at 3:30 pm her time.", "Lima"),
        ("She calls at 9 a.m. my time, please remind me.", "Oslo"),
        ("When it's nine here, what is it in Lima?", "Oslo"),
        ("When it's noon there, how late is it here?", "Lima"),
        ("It's 8 am for me.", "Oslo"),
        ("We talk at my 9 am.", "Oslo"),
        ("If I have 9:30 pm on my clock, what does she have?", "Oslo"),
        ("We talk at 3 pm on Friday in her time.", "Lima"),
        ("Her watch says half past nine.", "Lima"),
        ("At 9:00 my sister's time I'm up.", "Lima"),
        ("She says 4 pm. What will my clock say?", "Lima"),
        ("She says 4 pm. In my time?", "Lima"),
        ("She says 4 pm, when is that for us?", "Lima"),
        ("I say 4 pm. What's that in her time?", "Oslo"),
        ("I say 4 pm. What time would it be for my sister?", "Oslo"),
        ("She says 4 pm. When do I have to get up?", "Lima"),
        ("What is 3 pm in her time?", "Oslo"),
        ("She says 4 pm.", ""),
        ("Is 9 am good for her?", ""),
        ("At 9 am there is a meeting.", ""),
        ("She asks whether 9 am her time or 9 am my time is better.", ""),
        ('She wrote: "4 pm my time".', ""),
    ],
)
def test_a_time_of_day_is_told_at_somebody_s_place(text: str, place: str) -> None:
    for one, other in (("Oslo", "Lima"), ("Lima", "Oslo")):
        assert first(one, other, ["9:00"], "", PLACES + text) == place


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("I'm in Oslo. When it's 9 am here, what time is it in Lima?", "Oslo"),
        ("Our sister in Lima rings at 9 am her time, what's that in Oslo?", "Lima"),
        ("When it's 9 am here, what time is it there: Oslo, Lima?", ""),
        ("I'm in Oslo. When it's 9 am here, what time is it there?", ""),
        ("I live in Oslo and work in Lima. It's 9 am here.", ""),
    ],
)
def test_of_two_places_one_that_is_known_tells_both(text: str, place: str) -> None:
    assert first("Oslo", "Lima", ["9 am"], "", text) == place


@pytest.mark.parametrize("word", ["9 am on the ", "what time is ", "my sister ", "ahead of the "])
def test_a_long_task_takes_no_longer_than_its_words(word: str) -> None:
    began = time.perf_counter()
    assert first("Oslo", "Lima", ["9 am"], "", PLACES + word * (20_000 // len(word))) == ""
    assert first("Oslo", "Lima", [], "", PLACES + word * (20_000 // len(word))) in {"", "Lima"}
    assert time.perf_counter() - began < 10
