"""How many of a thing are wanted, and how many were made."""

from __future__ import annotations

import json

import pytest

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_registry.functions import FunctionList
from toolsrv_runtime.contract.format import Action, Step
from toolsrv_runtime.planner.counts import too_few
from toolsrv_runtime.planner.scene import Offer, Scene

APIS = {api.id.rpartition("/")[2]: api for api in load_offline_catalog().apis}


def short(
    function: str, task: str, given: dict[str, object], times: int = 1, made: object = "x"
) -> list[str]:
    offers = tuple(Offer(1, one) for one in FunctionList([APIS[function]]))
    move = Action("", offers[0].function.name, json.dumps(given), about=task)
    path = (Step(move, "", ok=True, response={"made": made, **given}),) * times
    return too_few(Scene(task, offers, path, path, ()))


@pytest.mark.parametrize(
    ("function", "task", "given", "words"),
    [
        ("random_number", "3 random numbers below 10", {"maximum": 10}, "3 random numbers"),
        ("random_number", "3 random numbers", {"minimum": 3, "maximum": 3}, "3 random numbers"),
        ("fake_person", "two fake people", {}, "two fake people"),
        ("fake_company", "invent three companies", {}, "three companies"),
        ("fake_address", "give me 2 Spanish addresses", {}, "2 Spanish addresses"),
        ("generate_password", "three passwords of 16", {"length": 16}, "three passwords"),
    ],
)
def test_what_is_short_of_the_number_is_told(
    function: str, task: str, given: dict[str, object], words: str
) -> None:
    assert short(function, task, given) == [words]


@pytest.mark.parametrize(
    ("function", "task", "given"),
    [
        ("random_number", "a random number below 10", {"maximum": 10}),
        ("random_number", "one random number", {}),
        ("generate_passphrase", "a passphrase of 3 words", {"words": 3}),
        ("generate_password", "12 character password", {"length": 12}),
        ("gcd_and_lcm", "the gcd of two numbers", {"first": 12}),
    ],
)
def test_nothing_else_is_short(function: str, task: str, given: dict[str, object]) -> None:
    assert short(function, task, given) == []


def test_a_number_that_is_made_or_given_counts_nothing() -> None:
    given: dict[str, object] = {"minimum": 3, "maximum": 3}
    assert short("random_number", "3 random numbers", given, made=3) == ["3 random numbers"]


def test_as_many_calls_are_enough() -> None:
    assert short("random_number", "2 random numbers", {}, times=2) == []
