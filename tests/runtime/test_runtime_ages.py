"""Ages as people tell them."""

from __future__ import annotations

import pytest

from toolsrv_registry.api import Api, Parameter
from toolsrv_runtime.planner.reading.ages import told
from toolsrv_runtime.planner.reading.wish import Wish

API = Api(id="health/body/rate", category="Health", tool="body", name="rate")


@pytest.mark.parametrize(
    ("text", "age"),
    [
        ("I'm 34, resting pulse 58", "34"),
        ("my mum is a 61-year-old", "61"),
        ("she turned 40 last week", "40"),
        ("a man aged 52 years", "52"),
        ("I’m 61 years old, really 61", "61"),
        ("I'm 180 cm tall", ""),
        ("I'm 82 kilos", ""),
        ("I'm 1.79 m", ""),
        ("I'm 34 and she's 36", ""),
        ("he is 5th", ""),
    ],
)
def test_an_age_is_the_only_one_told(text: str, age: str) -> None:
    assert told(Parameter(name="age", type="NUMBER"), API, Wish(text)) == age
    assert told(Parameter(name="heartRate", type="NUMBER"), API, Wish(text)) == ""
