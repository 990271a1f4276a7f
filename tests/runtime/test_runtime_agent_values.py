"""The matcher's reading of a task as hints: which words are which argument. The matcher that ships."""

from __future__ import annotations

import json

import pytest
from tests.priors import Shipped

from toolsrv_registry.api import Api
from toolsrv_registry.functions import FunctionList
from toolsrv_runtime.agent.coverage import ArgumentReader, Subtask
from toolsrv_runtime.contract.format import Action, Step

AWAY = "how many hours will I be away from my family's clock on 15 January 2027"
MOVING = (
    f"Relocating from Milan to Singapore. Which airports could I leave from in Milan, and {AWAY}?"
)
FOUND = {
    "city": "Milan",
    "country": "Italy",
    "count": 2,
    "airports": ["MXP Malpensa International Airport", "LIN Linate Airport"],
}
AIRPORTS = Step(
    Action(None, "airports", json.dumps({"city": "Milan"})),
    json.dumps(FOUND),
    ok=True,
    response=FOUND,
)


@pytest.mark.parametrize("path", [(), (AIRPORTS,)])
def test_two_arguments_never_have_the_same_words(
    apis: dict[str, Api], path: tuple[Step, ...]
) -> None:
    (function,) = FunctionList([apis["Location/world_clock/time_difference"]])
    begin = MOVING.index(AWAY)
    need = Subtask(AWAY, begin, begin + len(AWAY), (function.name,))
    found = ArgumentReader(MOVING, path, Shipped()).values(need, function)
    assert found["to_city"].startswith("Singapore")
    assert (found["from_city"], found["date"]) == ("Milan", "15 January 2027")
