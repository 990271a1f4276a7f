"""Dice as people tell them."""

from __future__ import annotations

import pytest

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_runtime.planner.reading.dice import told
from toolsrv_runtime.planner.reading.wish import Wish

APIS = {api.id.rpartition("/")[2]: api for api in load_offline_catalog().apis}
ROLL = APIS["roll_dice"]
DICE = next(one for one in ROLL.parameters if one.name == "dice")


@pytest.mark.parametrize(
    ("text", "dice"),
    [
        ("Roll three dice for me", "3d6"),
        ("roll two eight-sided dice", "2d8"),
        ("a twenty-sided die, please", "1d20"),
        ("roll a die with 12 sides", "1d12"),
        ("three d10s", "3d10"),
        ("throw a pair of dice", "2d6"),
        ("a couple of ordinary dice", "2d6"),
        ("roll the dice", ""),
        ("roll 2d6", ""),
        ("two d6 and three d8", ""),
        ("diced onions, 3 of them", ""),
    ],
)
def test_dice_are_a_number_and_their_sides(text: str, dice: str) -> None:
    assert told(DICE, ROLL, Wish(text)) == dice


def test_no_other_parameter_is_dice() -> None:
    for api in APIS.values():
        for parameter in api.parameters:
            if parameter != DICE:
                assert told(parameter, api, Wish("three dice")) == ""
