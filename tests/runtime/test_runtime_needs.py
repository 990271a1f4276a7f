"""The second look at a task: what was copied as one and is two, and what was left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from toolsrv_registry.api import Api
from toolsrv_registry.functions import FunctionList
from toolsrv_registry.matcher import Match, MatchRequest
from toolsrv_runtime.contract.format import Action, Step
from toolsrv_runtime.planner.needs import Needs
from toolsrv_runtime.planner.scene import Offer, Scene

NAMES = ("sunrise", "distance", "capital")


class ByName:
    """A retriever that goes by the API's name in the text."""

    def match(self, asked: MatchRequest, apis: Sequence[Api]) -> list[Match]:  # noqa: ARG002
        return []

    def scores(self, text: str, apis: Sequence[Api]) -> list[float]:
        return [0.9 if api.name in text else 0.1 for api in apis]

    similarities = scores


def needs(task: str) -> Needs:
    apis = [Api(id=f"C/t/{name}", category="C", tool="t", name=name) for name in NAMES]
    offers = tuple(Offer(at, one) for at, one in enumerate(FunctionList(apis), start=1))
    return Needs(Scene(task, offers, (), (), ()), ByName())


TASK = "Off to Peru. What is the capital, when is sunrise there, and what is the distance to Lima?"


def test_words_with_two_needs_end_behind_the_first() -> None:
    whole = TASK.rstrip("?")
    assert needs(TASK).first(whole) == "Off to Peru. What is the capital"


def test_words_with_one_need_stay() -> None:
    for words in ("What is the capital", "Off to Peru", "what is the distance to Lima"):
        assert needs(TASK).first(words) == words


def test_words_that_are_not_in_the_task_stay_and_none_stay_none() -> None:
    assert needs(TASK).first("something else") == "something else"
    assert needs(TASK).first("") == ""


def test_what_was_left_out_is_taken_up_in_order() -> None:
    found = needs(TASK)
    assert found.left([]) == "What is the capital"
    assert found.left(["Off to Peru. What is the capital"]) == "when is sunrise there"
    assert found.left(["What is the capital", "when is sunrise there, and what is"]) == (
        "what is the distance to Lima"
    )
    assert found.left([TASK.rstrip("?")]) == ""


def test_a_need_that_was_passed_over_comes_before_the_words_that_were_copied() -> None:
    found = needs(TASK)
    assert found.next("when is sunrise there", []) == "What is the capital"
    assert found.next("when is sunrise there", ["What is the capital"]) == "when is sunrise there"


def test_words_that_were_served_are_not_served_again() -> None:
    found = needs(TASK)
    served = ["What is the capital", "when is sunrise there"]
    assert found.next("What is the capital, when is", served) == "what is the distance to Lima"
    assert found.next("", served) == "what is the distance to Lima"
    assert found.next("What is the capital", [*served, "what is the distance to Lima"]) == ""


@pytest.mark.parametrize("task", ["Thanks for all your help!", "Tell me a joke about cats", ""])
def test_what_no_function_fits_is_no_need(task: str) -> None:
    assert needs(task).left([]) == ""


def test_no_offer_means_no_need() -> None:
    assert Needs(Scene(TASK, (), (), (), ()), ByName()).left([]) == ""


@pytest.mark.parametrize(
    ("task", "taken", "left"),
    [
        ("Turn that word back to front. What's that?", "Turn that word back to front", []),
        ("Cut 10.0.0.0/8 into blocks. Can you list me the blocks?", "into blocks", []),
        ("Cut 10.0.0.0/8 into blocks. Can you list me the prices?", "into blocks", ["prices"]),
        ("Spell it backwards. Can you translate it?", "Spell it backwards", ["translate"]),
        ("The capital of Peru, please. What is the area of it?", "capital of Peru", ["area"]),
    ],
)
def test_a_question_that_says_nothing_new_is_not_open(
    task: str, taken: str, left: list[str]
) -> None:
    found = needs(task).open([taken])
    assert len(found) == len(left)
    assert all(word in words for word, words in zip(left, found, strict=True))


@pytest.mark.parametrize(
    ("question", "answer", "is_open"),
    [
        ("is it a proper one?", {"valid": True}, False),
        ("are they any good?", {"valid": False}, False),
        ("is it a proper one?", {"valid": 7}, True),
        ("is it 7 metres long?", {"valid": True}, True),
        ("what colour is it?", {"valid": True}, True),
    ],
)
def test_yes_or_no_to_a_statement_answers_whether_it_is(
    question: str, answer: dict[str, object], is_open: bool
) -> None:
    said = "They gave us the capital 5493."
    before = needs(f"{said} Before I write it down: {question}")._scene
    move = Action("", before.offers[2].function.name, "{}", about=said.rstrip("."))
    path = (Step(move, "", ok=True, response=answer),)
    found = Needs(replace(before, path=path, attempts=path), ByName())
    assert bool(found.open([said])) is is_open
