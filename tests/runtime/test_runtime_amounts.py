"""Amounts told by words before a unit."""

from __future__ import annotations

import pytest

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_registry.api import Api
from toolsrv_runtime.planner.reading.amounts import told
from toolsrv_runtime.planner.reading.wish import Wish

APIS = {api.id.rpartition("/")[2]: api for api in load_offline_catalog().apis}


def amount(function: str, text: str, context: str = "") -> str:
    api: Api = APIS[function]
    parameter = next(one for one in api.required if one.type == "NUMBER")
    return told(parameter, api, Wish(text, context or text))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a cup of honey: how many grams?", "1"),
        ("How many grams is half a cup of flour?", "0.5"),
        ("What's the weight of half of a cup of rice?", "0.5"),
        ("How many kilometres is a quarter of a mile?", "0.25"),
        ("Three quarters of a mile in metres?", "0.75"),
        ("two-thirds of a cup", "0.666667"),
        ("a quarter mile in km", "0.25"),
        ("a cup and a half of flour", "1.5"),
        ("How many litres are a couple of pints?", "2"),
        ("half a dozen inches, a dozen feet", ""),
        ("half a dozen inches in cm", "6"),
        ("How heavy are a dozen eggs?", "12"),
        ("An inch is how many millimetres?", "1"),
        ("How many feet in a mile?", "1"),
        ("How many inches in a foot, how many feet in a yard?", "1"),
        ("a square mile in acres", "1"),
        ("two cups of flour", ""),
        ("2 cups of flour and a cup of milk", ""),
        ("one and a half gallons", ""),
        ("two and a quarter miles", ""),
        ("half a cup and a cup", ""),
        ("a fifth of a mile, most of a cup", ""),
        ("five pounds a litre, ten cents a cup", ""),
        ("a foot-long one, a cupboard", ""),
        ("two miles an hour, a mile a minute", ""),
        ("What is a mile?", "1"),
        ("How many grams is that?", ""),
    ],
)
def test_words_before_a_unit_are_a_number(text: str, said: str) -> None:
    assert amount("convert_units", text) == amount("ingredient_weight", text) == said


def test_what_leads_up_to_a_part_counts_where_the_part_is_about_nothing_else() -> None:
    before = "a cup of honey: how many grams?"
    assert amount("ingredient_weight", "how many grams?", before) == "1"
    assert amount("ingredient_weight", "how many grams is that?", before) == ""
    assert amount("ingredient_weight", "how many grams?", f"20% off, {before}") == ""


def test_an_amount_is_in_the_unit_of_its_parameter() -> None:
    assert amount("grams_to_moles", "How many moles are in a gram of NaCl?") == "1"
    assert amount("grams_to_moles", "How many moles are in half a kilo of NaCl?") == "500"


@pytest.mark.parametrize(
    "function", ["fuel_cost", "leap_year", "beat_length", "discount", "savings_goal", "flip_coin"]
)
def test_other_numbers_are_no_amounts(function: str) -> None:
    api = APIS[function]
    text = "What do I pay for a mile, or for a cup?"
    assert [told(one, api, Wish(text, text)) for one in api.parameters] == [""] * len(
        api.parameters
    )
