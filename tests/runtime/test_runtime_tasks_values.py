"""Values that the model that ships takes out of tasks in people's words, each whole."""

from __future__ import annotations

from typing import Any

import pytest
from tests.agents import Solved

pytestmark = [pytest.mark.nightly, pytest.mark.scored("tasks")]


@pytest.mark.parametrize(
    ("task", "arguments"),
    [
        (
            'They say I lean on "very". Count it here: "A very long day. It was very, very hot."',
            {"text": "A very long day. It was very, very hot.", "find": "very"},
        ),
        (
            'How often does the word banana stand in "banana split, banana bread, no banana"?',
            {"text": "banana split, banana bread, no banana", "find": "banana"},
        ),
        (
            "What resistance makes 52.5 amps of 10,918 volts?",
            {"volts": 10918, "amps": 52.5},
        ),
        (
            "gas mark 7 on the dial, what is that in celsius? the roast was 147.20",
            {"temperature": 7, "scale": "gas_mark"},
        ),
        (
            "I ran 13 km in 1:08:00 this morning, what was my pace per km?",
            {"distance": "13 km", "time": "1:08:00"},
        ),
        (
            "I got through 12 km in 1:03:30 yesterday. What was my pace?",
            {"distance": "12 km", "time": "1:03:30"},
        ),
        (
            "Is #708090 lettering on ivory readable? I'd like the contrast ratio.",
            {"foreground": "#708090", "background": "ivory"},
        ),
        (
            "For the punch: how many millilitres go into 12 fluid ounces?",
            {"amount": 12, "from_unit": "fluid ounces", "to_unit": "millilitres"},
        ),
        (
            "My piano teacher wants a G minor seventh chord. Which notes do I press?",
            {"root": "G", "kind": "minor_seventh"},
        ),
        (
            "A colleague claims dusty and study are the same letters just shuffled, true?",
            {"first": "dusty", "second": "study"},
        ),
        (
            "How many litres are a couple of pints?",
            {"amount": 2, "from_unit": "pints", "to_unit": "litres"},
        ),
        (
            "Our rent is now 1,250, last year it was 1,100. What's the change in percent?",
            {"old_value": 1100, "new_value": 1250},
        ),
        ("how would a swede write 1984 in words", {"number": 1984, "language": "Swedish"}),
        (
            "A shirt costs nineteen ninety-nine dollars. What do I pay with 20 percent off?",
            {"price": 19.99, "percent": 20},
        ),
        ("What's the biggest city of Kazakhstan?", {"country": "Kazakhstan", "limit": 1}),
    ],
)
def test_the_shipped_model_takes_values_whole(
    task: str,
    arguments: dict[str, Any],
    solved: Solved,
) -> None:
    outcome = solved(task)
    assert [e.arguments for e in outcome.evidence if e.used][:1] == [arguments]
