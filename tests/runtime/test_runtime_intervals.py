"""Musical intervals in semitones."""

from __future__ import annotations

import pytest

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_runtime.planner.reading.intervals import told
from toolsrv_runtime.planner.reading.wish import Wish

APIS = {api.id.rpartition("/")[2]: api for api in load_offline_catalog().apis}
TRANSPOSE = APIS["transpose_note"]
SEMITONES = next(one for one in TRANSPOSE.parameters if one.name == "semitones")


@pytest.mark.parametrize(
    ("text", "semitones"),
    [
        ("what is G up a fifth", "7"),
        ("which note is a minor third below C", "-3"),
        ("D, down by a perfect fourth", "-5"),
        ("an octave higher than A3", "12"),
        ("a tritone up from B", "6"),
        ("half of a fifth or a sixth", ""),
        ("a perfect third up", ""),
        ("up 5 semitones", ""),
        ("a fifth chord", ""),
    ],
)
def test_an_interval_is_a_number_of_semitones(text: str, semitones: str) -> None:
    assert told(SEMITONES, TRANSPOSE, Wish(text)) == semitones


def test_only_semitones_are_told_so() -> None:
    for api in APIS.values():
        for parameter in api.parameters:
            assert parameter.name == "semitones" or not told(parameter, api, Wish("up a fifth"))
