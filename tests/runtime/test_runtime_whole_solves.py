"""Whole tasks solved by the model that ships: one of each kind; hundreds are scored at night."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from toolsrv_runtime.contract.models import Engine
from toolsrv_runtime.outcome import Limits, Outcome
from toolsrv_runtime.profiles import Profile
from toolsrv_runtime.solve import SolveOptions

Solve = Callable[..., Outcome]
REACT = SolveOptions(strategy="react")
TIGHT = SolveOptions(limits=Limits(calls=1))


@pytest.mark.parametrize(
    ("task", "options", "status", "calls", "said"),
    [
        pytest.param(
            "how long does a 5 Ah battery last at 200 mA",
            SolveOptions(),
            "answered",
            ["battery_runtime"],
            ["25"],
            id="one call",
        ),
        pytest.param(
            "What's 15% of 80 and 20% of 45?",
            SolveOptions(),
            "answered",
            ["percentage_of_number", "percentage_of_number"],
            ["12", "9"],
            id="two calls",
        ),
        pytest.param(
            "Is 97 prime, and how do you write it in binary and in Roman numerals?",
            SolveOptions(),
            "answered",
            ["convert_number_base", "number_to_roman", "prime_check"],
            ["1100001", "XCVII"],
            id="three calls",
        ),
        pytest.param(
            "I have a stopover in WAW, which currency do I need there?",
            SolveOptions(),
            "answered",
            ["airport_by_code", "national_currency"],
            ["PLN"],
            id="a chain",
        ),
        pytest.param(
            "What is the stock price of Apple?", SolveOptions(), "gave_up", [], [], id="given up"
        ),
        pytest.param(
            "What is the capital of Peru?",
            REACT,
            "answered",
            ["capital_city"],
            ["Lima"],
            id="react",
        ),
        pytest.param(
            "What are the capitals of Peru, Chile and Bolivia?",
            TIGHT,
            "partial",
            ["capital_city"],
            ["Lima"],
            id="partial by budget",
        ),
    ],
)
def test_a_whole_task_ends_as_it_should(
    task: str,
    options: SolveOptions,
    status: str,
    calls: list[str],
    said: list[str],
    solve: Solve,
    loaded: tuple[Engine, Profile],
) -> None:
    engine, profile = loaded
    outcome = solve(engine, options, profile=profile, task=task)
    assert outcome.status == status
    used = sorted(one.api_id.rpartition("/")[2] for one in outcome.evidence if one.used)
    assert used == calls
    assert all(one in outcome.answer for one in said)
