"""Countries by their people's names."""

from __future__ import annotations

from importlib.resources import files

import pytest

from toolsrv_catalogs.offline.values.country import parse_country
from toolsrv_registry.api import Api, Parameter
from toolsrv_runtime.formats import patterns, peoples, readings


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
    assert peoples.country(said) == meant


def test_every_country_of_the_table_is_one_that_the_catalog_that_ships_knows() -> None:
    table = files("toolsrv_runtime.formats") / "peoples.txt"
    rows = [line.partition(": ") for line in table.read_text("utf-8").splitlines()]
    assert len(rows) > 160
    for country, _, words in rows:
        parse_country(country)
        for word in words.split():
            assert peoples.country(word.replace("-", " ")) == country


def test_only_a_parameter_for_countries_is_read_so() -> None:
    api = Api(id="c/t/n", category="c", tool="t", name="n")
    country, language = Parameter(name="country"), Parameter(name="language")
    assert readings.read(patterns.kind(country, api), "Polish") == "Poland"
    assert readings.read(patterns.kind(language, api), "Polish") == "Polish"
