"""The compound that a share of an element is asked of."""

from __future__ import annotations

import time

import pytest

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_runtime.planner.reading import compounds
from toolsrv_runtime.planner.reading.wish import Wish

APIS = {api.id.rpartition("/")[2]: api for api in load_offline_catalog().apis}
API = APIS["elemental_composition"]
(FORMULA,) = API.parameters


@pytest.mark.parametrize(
    ("part", "compound"),
    [
        ("What is water's mass percent of oxygen?", "water"),
        ("what is the mass percent of oxygen in water", "water"),
        ("the percentage by mass of hydrogen in hydrogen peroxide?", "hydrogen peroxide"),
        ("What percentage of carbon dioxide is oxygen by mass?", "carbon dioxide"),
        ("how much oxygen is in baking soda by weight", "baking soda"),
        ("What share of CO2's mass is oxygen?", "CO2"),
        ("nitrogen content of ammonia, and its molar mass", "ammonia"),
        ("how much nitrogen is in ammonium nitrate (NH4NO3) by mass", "NH4NO3"),
        ("the molar mass of oxygen", ""),
        ("how many percent oxygen is that", ""),
        ("carbon in oxygen", ""),
    ],
)
def test_the_whole_is_the_compound_and_the_element_its_share(part: str, compound: str) -> None:
    assert compounds.told(FORMULA, API, Wish(part)) == compound


def test_a_long_text_takes_no_long_time() -> None:
    text = "share of oxygen in a b c d " * 2_000
    begin = time.process_time()
    compounds.told(FORMULA, API, Wish(text))
    assert time.process_time() - begin < 2
