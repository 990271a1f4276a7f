"""Questions for what it comes to, once calls have told prices."""

from __future__ import annotations

import pytest

from toolsrv_runtime.contract.format import Action, Step
from toolsrv_runtime.planner.totals import asks_what_it_comes_to, tells_a_price


@pytest.mark.parametrize(
    "question",
    [
        "How much is it after the discount",
        "how much do I pay at the end",
        "and how much do we have to pay",
        "what is the total on the bill",
        "What is the price after the rebate",
        "so what do I owe",
        "How much will it come to",
        "what will the jacket cost then?",
        "What's the final price",
    ],
)
def test_what_it_comes_to_is_all_that_is_asked(question: str) -> None:
    assert asks_what_it_comes_to(question)


@pytest.mark.parametrize(
    "question",
    [
        "how much do I pay with 13 % tax",
        "How much tax is that",
        "what is the capital",
        "How much is a pound in grams",
        "what is the price of a litre, and of a gallon",
        "how many people pay",
        "What is it in binary",
    ],
)
def test_anything_more_is_another_wish(question: str) -> None:
    assert not asks_what_it_comes_to(question)


def test_a_price_is_told_by_its_name() -> None:
    move = Action("", "f", "{}")
    assert tells_a_price(Step(move, "", ok=True, response={"percent": 25, "sale_price": 180}))
    assert not tells_a_price(Step(move, "", ok=True, response={"percent": 25, "result": 180}))
    assert not tells_a_price(Step(move, "", ok=False, response={"sale_price": 180}))
