"""Questions that only ask what a decoded text says."""

from __future__ import annotations

import json

import pytest
from tests.priors import Tuned

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_registry.functions import FunctionList
from toolsrv_runtime.contract.format import Action, Step
from toolsrv_runtime.planner.needs import Needs
from toolsrv_runtime.planner.readout import asks_what_it_says, reads
from toolsrv_runtime.planner.scene import Offer, Scene

APIS = {api.id.rpartition("/")[2]: api for api in load_offline_catalog().apis}
TOLD = "My neighbour put a note on the door: it's rot13."


def scene(task: str, name: str, given: dict[str, str], told: dict[str, object]) -> Scene:
    """Return the scene of a task after one call; functions for other things are on offer too."""
    functions = FunctionList([APIS[one] for one in dict.fromkeys((name, "check_bic"))])
    offers = tuple(Offer(at, one) for at, one in enumerate(functions, start=1))
    move = Action("", offers[0].function.name, json.dumps(given), about="It's rot13")
    path = (Step(move, "", ok=True, response=told),)
    return Scene(task, offers, path, path, ())


@pytest.mark.parametrize(
    "question",
    [
        "What is she telling me",
        "What does it say",
        "what's the message",
        "So what did he write",
        "what is that in plain English",
        "What is that supposed to mean",
        "What's he trying to tell us",
        "What does the note say",
        "What did my neighbour write there",
        "what was the hidden message",
        "What is the writer saying",
    ],
)
def test_what_a_text_says_is_all_that_is_asked(question: str) -> None:
    assert asks_what_it_says(question, TOLD)


@pytest.mark.parametrize(
    "question",
    [
        "What does it say in Morse code",
        "What does the weather forecast say",
        "What does serendipity mean",
        "What's the meaning of life",
        "What should I answer her",
        "What is that in French",
        "What does she need",
        "How many words does it say",
        "Who wrote it",
        "",
    ],
)
def test_more_than_what_a_text_says_is_asked(question: str) -> None:
    assert not asks_what_it_says(question, TOLD)


@pytest.mark.parametrize(
    ("name", "given", "told", "decoded"),
    [
        ("caesar_cipher", {"text": "Gur pnxr"}, {"result": "The cake"}, True),
        ("morse_code_to_text", {"morse": ".... .."}, {"text": "HI"}, True),
        ("base64_decode", {"encoded": "SGk="}, {"text": "Hi"}, True),
        ("base64_decode", {"encoded": "NDI="}, {"text": "Hi"}, False),
        ("base64_decode", {"encoded": "SGk="}, {"text": "42"}, False),
        ("base64_encode", {"text": "Gur pnxr"}, {"encoded": "R3VyIHBueHI="}, False),
        ("capital_city", {"country": "Peru"}, {"capital": "Lima"}, False),
    ],
)
def test_a_call_that_decoded_a_text_of_the_task_has_read_it(
    name: str, given: dict[str, str], told: dict[str, object], decoded: bool
) -> None:
    task = "Gur pnxr, .... .. and SGk= of Peru. What does it say?"
    (step,) = scene(task, name, given, told).path
    assert reads(step, APIS[name], task) is decoded


@pytest.mark.parametrize(
    ("question", "missing"),
    [("What is she telling me", []), ("Which horse will win", ["Which horse will win"])],
)
def test_only_what_a_text_says_is_open_no_more(question: str, missing: list[str]) -> None:
    task = f"Gur pnxr vf va gur bira, or so my roommate's note says. It's rot13. {question}?"
    given = {"text": "Gur pnxr vf va gur bira"}
    told = scene(task, "caesar_cipher", given, {"result": "The cake is in the oven"})
    assert Needs(told, Tuned()).open(["It's rot13"]) == missing
