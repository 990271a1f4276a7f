"""What an answered amount costs at a price per unit."""

from __future__ import annotations

import time

import pytest

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_registry.functions import FunctionList
from toolsrv_runtime.contract.format import Action, Step
from toolsrv_runtime.planner import costs
from toolsrv_runtime.planner.scene import Offer, Scene

APIS = {api.id.rpartition("/")[2]: api for api in load_offline_catalog().apis}
FUNCTIONS = {
    one.api.id.rpartition("/")[2]: one
    for one in FunctionList([APIS["convert_units"], APIS["calculate"], APIS["fuel_cost"]])
}
TASK = "How many litres are in 12 gallons, and what would that cost at 1.85 a litre?"
LITRES = {"amount": 12, "from_unit": "gallon", "to_unit": "liter", "result": 45.424941}
ROUTE = {"from_city": "Madrid", "distance_km": 503.2, "distance_miles": 312.7}


def scene(response: object, task: str = TASK) -> Scene:
    offers = tuple(Offer(at, one) for at, one in enumerate(FUNCTIONS.values(), start=1))
    move = Action("", FUNCTIONS["convert_units"].name, '{"amount": 12}', (), "How many litres")
    step = Step(move=move, observation="", response=response, ok=True)
    return Scene(task, offers, (step,), (step,), ())


@pytest.mark.parametrize(
    ("part", "response", "expression"),
    [
        ("what would that cost at 1.85 a litre", LITRES, "45.424941 * 1.85"),
        ("what do I pay at $2 per liter", LITRES, "45.424941 * 2"),
        ("what would the trip cost at 0.20 euros per km", ROUTE, "503.2 * 0.20"),
        ("what would it cost at 0.3 a mile", ROUTE, "312.7 * 0.3"),
        ("what would that cost at 1.85 a bottle", LITRES, ""),
        ("what would that cost at 1.85 a kilo", LITRES, ""),
        ("what would that cost", LITRES, ""),
        ("what would 780 km cost with it at 1.85 a litre", LITRES, ""),
        ("is 1.85 a litre a good price", LITRES, ""),
    ],
)
def test_the_answer_in_the_unit_of_the_price_is_multiplied(
    part: str, response: object, expression: str
) -> None:
    assert costs.expression(part, scene(response)) == expression


def test_only_a_calculator_takes_the_product() -> None:
    here = scene(LITRES)
    offer = costs.calculator("what would that cost at 1.85 a litre", here)
    assert offer is not None
    assert offer.function.api.id.endswith("/calculate")
    part = "what would that cost at 1.85 a litre"
    told = {
        one.name: costs.told(one, api, part, here)
        for api in (APIS["calculate"], APIS["fuel_cost"])
        for one in api.parameters
    }
    assert told.pop("expression") == "45.424941 * 1.85"
    assert set(told.values()) == {""}


def test_a_task_asks_for_it_with_a_price_per_unit() -> None:
    assert costs.asks(TASK)
    assert costs.wishes(scene(LITRES)) == ["what would that cost at 1.85 a litre"]
    assert not costs.asks("What does a litre cost in Oslo?")
    before = time.process_time()
    assert not costs.asks("cost at " * 200_000)
    assert time.process_time() - before < 2
