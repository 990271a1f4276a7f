"""The highest and the lowest value of a list that a document puts in order."""

from __future__ import annotations

import pytest

from toolsrv_registry.api import Api, Parameter
from toolsrv_runtime.planner.reading.levels import told
from toolsrv_runtime.planner.reading.wish import Wish

LEVEL = Parameter(
    name="error_correction",
    type="ENUM",
    enum=("L", "M", "Q", "H"),
    description="Level of error correction, L lowest to H highest",
)
API = Api(id="m/qr/code", category="m", tool="qr", name="code", required=(LEVEL,))


@pytest.mark.parametrize(
    ("part", "level"),
    [
        ("a QR with the toughest error level", "H"),
        ("a code with the highest possible error correction", "H"),
        ("max correction please", "H"),
        ("with minimal error correction", "L"),
        ("the lowest level", "L"),
        ("the highest level or the lowest one", "H"),
        ("the highest level or the lowest level", ""),
        ("the best QR code", ""),
        ("error correction Q", ""),
    ],
)
def test_a_superlative_is_an_end_of_the_list(part: str, level: str) -> None:
    assert told(LEVEL, API, Wish(part, task=part)) == level


def test_only_where_the_document_says_which_end_is_which() -> None:
    part = "the highest level"
    unordered = LEVEL.model_copy(update={"description": "Level of error correction"})
    foreign = LEVEL.model_copy(update={"description": "from A lowest to Z highest"})
    for parameter in (unordered, foreign, LEVEL.model_copy(update={"enum": ()})):
        assert told(parameter, API, Wish(part, task=part)) == ""
