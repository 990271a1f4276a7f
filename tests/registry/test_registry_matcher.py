"""The matcher that ships: which API serves a clause, where its values stand, and files gone wrong."""

from __future__ import annotations

import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_registry.api import Api
from toolsrv_registry.encoder import HashingEncoder
from toolsrv_registry.errors import DataError
from toolsrv_registry.matcher import SHIPPED_MATCHER, Matcher, MatchRequest
from toolsrv_registry.registry import Registry
from toolsrv_registry.search.retriever import Retriever

APIS = {api.id: api for api in load_offline_catalog().apis}
CONVERT, LEAP = "Science/unit_converter/convert_units", "Tools/date_calculator/leap_year"
CALORIES = "Health_and_Fitness/body_metrics/daily_calories"
MORSE = "Communication/signal_desk/morse_code_to_text"
OFFERED = [APIS[one] for one in (LEAP, CONVERT, MORSE)]


@pytest.fixture(scope="module")
def matcher() -> Matcher:
    return Matcher()


def asked(text: str, clause: str = "", facts: tuple[tuple[str, str], ...] = ()) -> MatchRequest:
    begin = text.index(clause)
    return MatchRequest(text, (begin, begin + len(clause or text)), facts)


TASK = "How many litres are 40 gallons, for my tank? And was 1996 a leap year?"


@pytest.mark.parametrize(
    ("clause", "api"),
    [("How many litres are 40 gallons", CONVERT), ("was 1996 a leap year", LEAP)],
)
def test_each_clause_finds_the_api_that_serves_it(clause: str, api: str, matcher: Matcher) -> None:
    found = matcher.match(asked(TASK, clause), OFFERED)
    best = max(zip(OFFERED, found, strict=True), key=lambda one: one[1].serves)
    assert best[0].id == api
    assert best[1].serves > 0


def test_values_are_found_by_what_they_mean(matcher: Matcher) -> None:
    (found,) = matcher.match(asked(TASK, "How many litres are 40 gallons"), [APIS[CONVERT]])
    said = {}
    for name, slot in found.parameters.items():
        best = slot.best(1)[0]
        said[name] = TASK[best.begin : best.end]
        assert best.score > slot.none
    assert said == {"amount": "40", "from_unit": "gallons", "to_unit": "litres"}


def test_a_value_may_be_what_an_earlier_call_answered(matcher: Matcher) -> None:
    text = "Which year does MDCCCXLVII stand for, and was that a leap year?"
    facts = (("number", "1847"),)
    (found,) = matcher.match(asked(text, "was that a leap year", facts), [APIS[LEAP]])
    best = found.parameters["year"].best(1)[0]
    assert (best.source, best.begin, best.end) == (1, 0, 4)


def test_the_score_of_words_is_that_of_their_span(matcher: Matcher) -> None:
    (found,) = matcher.match(asked(TASK, "How many litres are 40 gallons"), [APIS[CONVERT]])
    slot = found.parameters["amount"]
    best = slot.best(1)[0]
    assert slot.score(0, best.begin, best.end) == pytest.approx(best.score)
    assert slot.score(0, best.begin + 1, best.end + 1) == -float("inf")
    year = TASK.index("1996")
    assert slot.score(0, year, year + 4) < best.score


def test_an_allowed_value_is_meant_by_other_words_too(matcher: Matcher) -> None:
    text = "Woman, 44, 71 kg, 168 cm, very active. How much energy does she use in a day?"
    (found,) = matcher.match(MatchRequest(text), [APIS[CALORIES]])
    meant = {
        one.name: one.enum[found.parameters[one.name].listed()[0][0]]
        for one in APIS[CALORIES].parameters
        if one.enum
    }
    assert meant == {"sex": "female", "activity": "active"}
    assert found.parameters["sex"].best() == []
    assert found.parameters["age"].listed() == []


def test_a_whole_text_tells_which_clause_asks_for_an_api(matcher: Matcher) -> None:
    found = matcher.match(MatchRequest(TASK), OFFERED)
    for api, words in ((CONVERT, "gallons"), (LEAP, "leap year")):
        match = found[[one.id for one in OFFERED].index(api)]
        assert match.serves > 0
        best = match.clause.best(1)[0]
        assert words in TASK[best.begin : best.end]
        assert best.score > match.clause.none


def test_threads_share_one_matcher(matcher: Matcher) -> None:
    texts = [f"How many litres are {n} gallons?" for n in range(12)]
    alone = [matcher.match(asked(text), OFFERED)[1].serves for text in texts]
    fresh = Matcher()
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda text: fresh.match(asked(text), OFFERED)[1].serves, texts))
    fresh.close()
    assert found == pytest.approx(alone, abs=1e-5)


def test_any_text_can_be_asked(matcher: Matcher) -> None:
    long = "word " * 5_000
    for text in ("", "\ud800 half a pair", "\x00\u202e", long, "数字を変換する 🙂"):
        found = matcher.match(MatchRequest(text, (0, len(text))), OFFERED)
        assert len(found) == 3
    assert matcher.match(MatchRequest("x", (5, 900), (("a", "\udfff"),)), [OFFERED[0]])


def spoilt(tmp_path: Path) -> Path:
    folder = tmp_path / "matcher"
    shutil.copytree(SHIPPED_MATCHER, folder)
    return folder


@pytest.mark.parametrize("name", ["model.int8.onnx", "tokenizer.json", "card.json"])
def test_a_missing_file_is_named(name: str, tmp_path: Path) -> None:
    folder = spoilt(tmp_path)
    (folder / name).unlink()
    with pytest.raises(DataError, match=name):
        Matcher(folder).load()


def test_an_altered_file_is_refused(tmp_path: Path) -> None:
    folder = spoilt(tmp_path)
    with (folder / "model.int8.onnx").open("r+b") as file:
        file.seek(5_000)
        file.write(b"altered")
    with pytest.raises(DataError, match="not the one its card describes"):
        Matcher(folder).load()


def test_a_retriever_goes_on_without_it(tmp_path: Path) -> None:
    with Registry.open(tmp_path, encoder=HashingEncoder()) as registry:
        apis: list[Api] = OFFERED
        missing = Matcher(tmp_path / "none")
        retriever = Retriever(registry.store, registry.index, HashingEncoder(), matcher=missing)
        assert retriever.match(asked(TASK), apis) == []
        retriever.close()


def test_closing_waits_for_what_is_being_read_and_ends() -> None:
    matcher = Matcher()
    reading = threading.Thread(target=matcher.match, args=(asked(TASK), list(APIS.values())))
    reading.start()
    while reading.is_alive() and not any(
        one.name.startswith("matcher") for one in threading.enumerate()
    ):
        reading.join(0.001)
    closing = threading.Thread(target=matcher.close, daemon=True)
    closing.start()
    closing.join(60)
    assert not closing.is_alive()
    reading.join(60)
    assert not reading.is_alive()
