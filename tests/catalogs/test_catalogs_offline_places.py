"""Whose holidays are meant: parts of countries, and places that are no countries."""

from __future__ import annotations

import pytest

from toolsrv_catalogs.offline.testing import OfflineClient


@pytest.mark.parametrize(
    ("text", "name", "date"),
    [
        ("Bavaria", "Bavaria, Germany", "2027-01-06"),
        ("Bayern", "Bavaria, Germany", "2027-01-06"),
        ("DE-BY", "Bavaria, Germany", "2027-01-06"),
        ("Bavaria, Germany", "Bavaria, Germany", "2027-01-06"),
        ("Berlin", "Berlin, Germany", "2027-03-08"),
        ("the state of California", "California, United States", "2027-03-31"),
        ("Washington, D.C.", "Washington DC, United States", "2027-04-16"),
        ("Québec", "Quebec, Canada", "2027-06-24"),
        ("Catalonia", "Catalonia, Spain", "2027-09-11"),
        ("Ticino", "Ticino, Switzerland", "2027-06-29"),
        ("Victoria", "Victoria, Australia", "2027-11-02"),
        ("Scotland, UK", "Scotland", "2027-11-30"),
        ("gb-nir", "Northern Ireland", "2027-07-12"),
    ],
)
def test_a_part_of_a_country_has_its_own_holidays_and_is_named(
    offline: OfflineClient, text: str, name: str, date: str
) -> None:
    answer = offline.answer("/public_holidays/check", country=text, date=date)
    assert (answer["country"], answer["is_holiday"]) == (name, True)
    whole = answer["country"].rpartition(", ")[2] if ", " in name else "United Kingdom"
    state = offline.answer("/public_holidays/check", country=whole, date=date)
    assert (state["country"], state["is_holiday"]) == (whole, False)


def test_every_answer_about_holidays_names_the_part(offline: OfflineClient) -> None:
    where = {"country": "Bavaria"}
    spans = {"start": "2027-01-01", "end": "2027-01-10"}
    answers = [
        offline.answer("/public_holidays/year", year="2027", **where),
        offline.answer("/public_holidays/next", date="2027-01-02", **where),
        offline.answer("/public_holidays/find", holiday="Epiphany", year="2027", **where),
        offline.answer("/public_holidays/working_days", **spans, **where),
    ]
    assert {answer["country"] for answer in answers} == {"Bavaria, Germany"}
    assert answers[1]["date"] == answers[2]["date"] == "2027-01-06"
    assert answers[3]["working_days"] == 4


def test_a_name_of_both_means_the_country_unless_another_stands_behind_it(
    offline: OfflineClient,
) -> None:
    def named(text: str) -> str:
        answer = offline.answer("/public_holidays/check", country=text, date="2027-05-26")
        return f"{answer['country']}: {answer['is_holiday']}"

    assert named("Georgia") == "Georgia: True"
    assert named("Georgia, USA") == named("Georgia (US)") == "Georgia, United States: False"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Belfast", "United Kingdom"),
        ("Munich", "Germany"),
        ("Granada", "Spain"),
        ("Europe", "continent"),
        ("Flanders", "'Flanders'"),
        ("Bavaria, Austria", "Austria"),
        ("US-ZZ", "'US-ZZ'"),
    ],
)
def test_what_is_no_country_and_no_part_of_one_is_refused_as_that(
    offline: OfflineClient, text: str, said: str
) -> None:
    query = {"country": text, "date": "2027-07-12"}
    assert said in offline.error(404, "/public_holidays/check", **query)


def test_a_country_tells_the_holidays_of_its_parts_apart_from_its_own(
    offline: OfflineClient,
) -> None:
    year = offline.answer("/public_holidays/year", country="UK", year="2027")
    assert year["count"] == len(year["holidays"]) == 8
    assert year["in_parts_only"][0] == "2027-03-29 Easter Monday (3 of 4 parts)"
    day = offline.answer("/public_holidays/check", country="UK", date="2027-03-29")
    assert day["is_holiday"] is False
    assert day["in_parts_only"] == "Easter Monday in England, Northern Ireland, Wales"
    found = offline.answer(
        "/public_holidays/find", country="UK", holiday="Easter Monday", year="2027"
    )
    assert found["date"] == "2027-03-29"
    assert found["in_parts_only"] == "England, Northern Ireland, Wales"


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("check", {"country": "UK", "date": "2027-03-26"}),
        ("check", {"country": "England", "date": "2027-11-30"}),
        ("check", {"country": "Norway", "date": "2027-11-30"}),
        ("year", {"country": "Scotland", "year": "2027"}),
        ("year", {"country": "Norway", "year": "2027"}),
        ("find", {"country": "UK", "holiday": "Good Friday", "year": "2027"}),
    ],
)
def test_what_holds_for_all_that_was_asked_names_no_parts(
    offline: OfflineClient, path: str, query: dict[str, str]
) -> None:
    assert "in_parts_only" not in offline.answer(f"/public_holidays/{path}", **query)
