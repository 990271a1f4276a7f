"""Functions that undo each other: what one answered is not put back, and a value's form decides."""

from __future__ import annotations

import json

import pytest
from tests.priors import Tuned

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_registry.functions import Function, FunctionList
from toolsrv_runtime.contract.format import Action, Step
from toolsrv_runtime.planner.inverse import is_inverse, is_shaped_for, put_back, wants_back
from toolsrv_runtime.planner.matched import Matched
from toolsrv_runtime.planner.scene import Offer, Scene, news

APIS = {api.id.rpartition("/")[2]: api for api in load_offline_catalog().apis}


def functions(*names: str) -> list[Function]:
    return list(FunctionList([APIS[name] for name in names]))


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("number_to_roman", "roman_to_number", True),
        ("text_to_morse_code", "morse_code_to_text", True),
        ("base64_encode", "base64_decode", True),
        ("base64_encode", "hex_decode", False),
        ("base64_encode", "base64_encode", False),
        ("calling_code_of_country", "country_of_calling_code", False),
        ("number_to_roman", "morse_code_to_text", False),
    ],
)
def test_functions_undo_each_other_by_their_names(one: str, other: str, expected: bool) -> None:
    first, *rest = functions(*dict.fromkeys((one, other)))
    second = rest[0] if rest else first
    assert is_inverse(first, second) is is_inverse(second, first) is expected


def test_an_answer_is_not_put_back() -> None:
    there, back = functions("roman_to_number", "number_to_roman")
    move = Action("", there.name, json.dumps({"roman": "MDCCXLVIII"}), about="x")
    step = Step(move, "", ok=True, response={"roman": "MDCCXLVIII", "number": 1748})
    offers = (Offer(1, there), Offer(2, back))
    scene = Scene("MDCCXLVIII, and 2014?", offers, (step,), (step,), tuple(news(step)))
    assert put_back(back, scene) == {"1748"}
    assert put_back(there, scene) == set()


def test_dots_and_dashes_are_for_what_reads_them() -> None:
    writes, reads = functions("text_to_morse_code", "morse_code_to_text")
    offers = (Offer(1, writes), Offer(2, reads))
    for task, shaped in (("What is -- . .-.. in morse?", True), ("What is MELON in morse?", False)):
        matched = Matched(Scene(task, offers, (), (), ()), task[:-1], Tuned())
        assert is_shaped_for(writes, reads, matched) is shaped
        assert not is_shaped_for(reads, writes, matched)


@pytest.mark.parametrize(
    ("task", "back"),
    [
        ("Encode hello in base64 and decode it back", True),
        ("Encode it, then undo that", True),
        ("Encode hello in base64", False),
        ("the backs of chairs in Roman numerals", False),
    ],
)
def test_an_answer_is_put_back_where_a_task_wants_it_so(task: str, back: bool) -> None:
    assert wants_back(task) is back
