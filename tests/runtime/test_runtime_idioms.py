"""Idioms in plain words, quotations left alone, and the tasks that were missed for them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsrv_runtime.planner.hints import query
from toolsrv_runtime.planner.reading.idioms import in_plain_words


@pytest.mark.parametrize(
    ("said", "plain"),
    [
        ("what do its web addresses end in, and", "what is its internet domain, and"),
        ("What do web addresses from there end in?", "what is the internet domain from there?"),
        ("he says 83 can't be divided by anything. Check", "he says 83 is a prime number. Check"),
        ("91 cannot be evenly divided by any number except 1 and itself", "91 is a prime number"),
        (
            "below what temp will the glass of water start sweating, at 36 degrees",
            "what is the dew point, at 36 degrees",
        ),
        ("at what temperature do my windows fog up?", "what is the dew point?"),
        ("Labor Day here in the States?", "Labor Day here in the United States?"),
        ("How late is it for me?", "what time is it for me?"),
        ("What's 0b1011?", "What's 0b1011 in decimal?"),
        ("what do Norway's web sites end on?", "what is Norway's internet domain?"),
        (
            'A post called "Why Not?": give me the bit for the address bar',
            'A post called "Why Not?": give me the URL slug',
        ),
        ('And the address-bar version of "Warm Coats"', 'And the URL slug of "Warm Coats"'),
        (
            "It is titled Rainy Evenings, what should the ending of its web address look like",
            "It is titled Rainy Evenings, what should the URL slug look like",
        ),
        (
            "which notes can I use if I stay in F# minor?",
            "what are the notes of the F# minor scale?",
        ),
        ("if prices climb by 3.5 percent each year?", "with inflation of 3.5 percent each year?"),
        ("and if the prices go up 2% a year", "and with inflation of 2% a year"),
        (
            "The largest money market is in Chile; the city there with the most people",
            "The largest money market is in Chile; the biggest city of Chile",
        ),
        (
            "which is the town in Sri Lanka with the most inhabitants?",
            "which is the biggest town in Sri Lanka?",
        ),
        ("Peru, Chile, the biggest city there", "Peru, Chile, the biggest city there"),
        ("What notes may we play in B flat major", "what are the notes of the B flat major scale"),
    ],
)
def test_an_idiom_is_put_in_words_that_documents_have(said: str, plain: str) -> None:
    assert in_plain_words(said) == plain
    assert query(said) == plain


def test_how_many_asks_for_the_one_word_that_is_quoted() -> None:
    said = 'I overdo "really". My line: "It was really late, not really." {}?'
    plain = said.format("how often does the word really occur in there")
    assert in_plain_words(said.format("How many are in there")) == plain
    assert in_plain_words(said.format("How many times did I use it in here")) == plain


@pytest.mark.parametrize(
    "said",
    [
        "what do estonian websites end in? like .de for germany",  # nothing is won
        "the end of the URL in Norway",  # nothing has a title
        'Reverse "the bit for the address bar" please',
        'How many words has "what do its web addresses end in"',
        "which notes are in a chord of F# minor",
        "What do their films end with?",
        "What temperature will the oven have",
        "how late is the train",
        "what is 0xFF in binary",
        "what is 0b12?",
        "in the States of Brazil",
        "in the states that border Ohio",
        "can't be divided by 7",
        'Eggs: "a dozen and two". How many are in there?',
        "if prices rise 10 percent, what does a ticket of 40 cost",
    ],
)
def test_everything_else_stays_as_it_is(said: str) -> None:
    assert in_plain_words(said) == said


@given(st.text(max_size=300))
def test_any_text_can_be_read(said: str) -> None:
    assert isinstance(in_plain_words(said), str)
    assert in_plain_words(f"“{said.replace('”', '')}”") == f"“{said.replace('”', '')}”"
