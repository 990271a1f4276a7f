"""Sentences that only put another value into the call before; by the matcher that ships."""

from __future__ import annotations

import json

import pytest
from tests.priors import Silent, Tuned

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_registry.functions import FunctionList
from toolsrv_runtime.contract.format import Action, Step
from toolsrv_runtime.planner.ellipses import refills
from toolsrv_runtime.planner.scene import Offer, Scene
from toolsrv_runtime.planner.several import Several

APIS = {api.id.rpartition("/")[2]: api for api in load_offline_catalog().apis}

LOAN = "Borrowing 240,000 at 3.9 percent over twenty-five years, what do I pay a month"
OWED = {"loan": "240000", "rate": "3.9", "years": "25"}
KM = "How many miles are 42 km"
LENGTH = {"amount": "42", "from_unit": "km", "to_unit": "miles"}
JACKET = "A jacket costs 129 euros before 20% off. What do I pay"
PRICE = {"price": "129", "percent": "20"}


def after(task: str, name: str, *calls: tuple[str, dict[str, str]], ok: bool = True) -> Scene:
    """Return the scene of a task after calls of one function, each with the words it was for."""
    function = next(iter(FunctionList([APIS[name]])))
    path = tuple(
        Step(Action("", function.name, json.dumps(given), about=words), "", ok=ok)
        for words, given in calls
    )
    return Scene(task, (Offer(1, function),), path, path, ())


@pytest.mark.parametrize(
    ("name", "words", "given", "rest", "changed"),
    [
        ("loan_payment", LOAN, OWED, "And if I stretched it to thirty?", [{"years": "30"}]),
        (
            "loan_payment",
            LOAN,
            OWED,
            "And if I stretched it to thirty? Or hurried it into twenty?",
            [{"years": "30"}, {"years": "20"}],
        ),
        ("loan_payment", LOAN, OWED, "And if it were 4.5 percent?", [{"rate": "4.5"}]),
        ("loan_payment", LOAN, OWED, "What about 30 years?", [{"years": "30"}]),
        ("loan_payment", LOAN, OWED, "and what if it took 30 years then?", [{"years": "30"}]),
        ("convert_units", KM, LENGTH, "same in nautical miles pls", [{"to_unit": "nautical miles"}]),
        ("discount", JACKET, PRICE, "and with 12% instead?", [{"percent": "12"}]),
        (
            "capital_city",
            "What's the capital of Chile",
            {"country": "Chile"},
            "The same for Peru, please.",
            [{"country": "Peru"}],
        ),
        (
            "compound_interest",
            "I put 8000 aside at 2.5 percent for 12 years, what will it be",
            {"amount": "8000", "rate": "2.5", "years": "12"},
            "And what if I got 3.5 percent?",
            [{"rate": "3.5"}],
        ),
        (
            "transpose_note",
            "Transpose C4 up by 5 semitones",
            {"note": "C4", "semitones": "5"},
            "And if we went up 7?",
            [{"semitones": "7"}],
        ),
        (
            "hash_text",
            'Hash "secret" with md5',
            {"text": "secret", "algorithm": "md5"},
            "And what about sha256?",
            [{"algorithm": "sha256"}],
        ),
    ],
)  # fmt: skip
def test_another_value_is_put_into_the_call_before(
    name: str, words: str, given: dict[str, str], rest: str, changed: list[dict[str, str]]
) -> None:
    scene = after(f"{words}? {rest}", name, (words, given))
    found = list(refills(scene, Tuned()))
    assert [one.arguments for one in found] == [{**given, **one} for one in changed]
    assert all(one.words in rest for one in found)


@pytest.mark.parametrize(
    ("name", "words", "given", "rest"),
    [
        ("loan_payment", LOAN, OWED, "I turned thirty yesterday."),
        ("loan_payment", LOAN, OWED, "If I had 30 minutes, which bus would I take?"),
        ("loan_payment", LOAN, OWED, "And if I had 30 minutes?"),
        ("loan_payment", LOAN, OWED, "What is 30 in Roman numerals? And if it were 40?"),
        ("loan_payment", LOAN, OWED, "What about my mother?"),
        ("loan_payment", LOAN, OWED, "And if it were 3.9 percent?"),
        ("discount", JACKET, PRICE, "And what if I add 7% tax?"),
        ("capital_city", "the capital of Chile", {"country": "Chile"}, "And what if it rained?"),
        (
            "compound_interest",
            "How big does 5000 grow at 3 percent over 10 years",
            {"amount": "5000", "rate": "3", "years": "10"},
            "And if I left it for 15?",
        ),
        (
            "percentage_of_number",
            "What is 15% of 80",
            {"percent": "15", "number": "80"},
            "And what about 20% of 45?",
        ),
    ],
)
def test_what_is_no_ellipsis_or_not_sure_changes_nothing(
    name: str, words: str, given: dict[str, str], rest: str
) -> None:
    assert list(refills(after(f"{words}? {rest}", name, (words, given)), Tuned())) == []


def test_without_a_matcher_or_an_answer_nothing_is_put_in() -> None:
    task = f"{LOAN}? And if I stretched it to thirty?"
    assert list(refills(after(task, "loan_payment", (LOAN, OWED)), Silent())) == []
    assert list(refills(after(task, "loan_payment", (LOAN, OWED), ok=False), Tuned())) == []


@pytest.mark.parametrize(
    ("rest", "years"),
    [
        ("And if it took thirty, or twenty?", ["30", "20"]),
        ("And if it took thirty, what would I pay a month?", []),
        ("I could pay more. Or hurried it into twenty?", []),
    ],
)
def test_an_ellipsis_ends_its_sentence_or_goes_on_with_another(rest: str, years: list[str]) -> None:
    found = refills(after(f"{LOAN}? {rest}", "loan_payment", (LOAN, OWED)), Tuned())
    assert [one.arguments["years"] for one in found] == years


def test_an_ellipsis_is_one_more_call_once_all_lists_are_served() -> None:
    task = f"{LOAN}? And if I stretched it to thirty?"
    several = Several(after(task, "loan_payment", (LOAN, OWED)), Tuned())
    another = several.next()
    assert another is not None
    assert another.words == "if I stretched it to thirty"
    assert another.arguments == {**OWED, "years": "30"}
    assert several.unanswered() == [another.words]
    both = after(task, "loan_payment", (LOAN, OWED), (another.words, another.arguments))
    assert Several(both, Tuned()).next() is None
