"""Countries and languages by their people's names."""

from __future__ import annotations

from importlib.resources import files

import pytest

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_catalogs.offline.values.country import parse_country
from toolsrv_registry.api import Api, Parameter
from toolsrv_runtime.planner.reading import speakers
from toolsrv_runtime.planner.reading.wish import Wish
from toolsrv_runtime.values import kinds


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("Polish", "Poland"),
        ("the Danes", "Denmark"),
        ("south africans", "South Africa"),
        ("Swiss", "Switzerland"),
        ("an Irishman", "an Irishman"),
        ("Turkey", "Turkey"),
        ("PL", "PL"),
        ("", ""),
    ],
)
def test_a_people_stands_for_its_country_and_nothing_else_does(said: str, meant: str) -> None:
    assert kinds.country_of_people(said) == meant


def test_every_country_of_the_table_is_one_that_the_catalog_that_ships_knows() -> None:
    table = files("toolsrv_runtime.values") / "peoples.txt"
    rows = [line.partition(": ") for line in table.read_text("utf-8").splitlines()]
    assert len(rows) > 160
    for country, _, words in rows:
        parse_country(country)
        for word in words.split():
            assert kinds.country_of_people(word.replace("-", " ")) == country


def test_only_a_parameter_for_countries_is_read_so() -> None:
    api = Api(id="c/t/n", category="c", tool="t", name="n")
    country, language = Parameter(name="country"), Parameter(name="language")
    assert kinds.normalise_value(kinds.value_kind(country, api), "Polish") == "Poland"
    assert kinds.normalise_value(kinds.value_kind(language, api), "Polish") == "Polish"


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("how would a swede write that number in words", "Swedish"),
        ("Write 75 as a Frenchman would say it", "French"),
        ("Spell it out the way Germans do it", "German"),
        ("Say 99 like the Danes do.", "Danish"),
        ("What would a Pole call Germany?", "Polish"),
        ("How do Spanish speakers write 17?", "Spanish"),
        ("as a Hungarian puts it", "Hungarian"),
        ("how would a german and how would a dutchman say it", ""),
        ("How would a Swede say it in Danish?", ""),
        ("How would a Belgian say 90?", ""),
        ("How do you say 90?", ""),
        ("What currency do Danes use?", ""),
        ("My Swedish friend asked", ""),
    ],
)
def test_how_a_people_says_it_names_the_language(text: str, meant: str) -> None:
    api = next(one for one in load_offline_catalog().apis if one.id.endswith("number_to_words"))
    found = {one.name: speakers.told(one, api, Wish(text, text)) for one in api.parameters}
    assert found == {"number": "", "language": meant, "form": ""}
    assert speakers.told(api.optional[0], api, Wish("Write 75.", text)) == meant


def test_of_two_languages_neither_is_told_by_a_people() -> None:
    source, target = (Parameter(name=f"{one}_language") for one in ("source", "target"))
    api = Api(id="c/t/n", category="c", tool="t", name="n", required=(source, target))
    assert speakers.told(target, api, Wish("How would a Swede say it?")) == ""
