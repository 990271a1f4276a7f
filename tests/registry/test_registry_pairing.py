"""Rows of tokens of an API beside a text: what stands where, and what is cut when it is too long."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st

from toolsrv_registry import pairing
from toolsrv_registry.api import Api, Parameter
from toolsrv_registry.encoder import SHIPPED_ENCODER

PLACES = 512
"""As many tokens as the encoder has places for."""


@cache
def read_tokenizer() -> Any:
    found = tokenizers.Tokenizer.from_file(str(SHIPPED_ENCODER / "tokenizer.json"))
    found.no_truncation()
    found.no_padding()
    return found


@pytest.fixture
def tokenizer() -> Any:
    return read_tokenizer()


def an_api(*parameters: Parameter, description: str = "Current weather of a city.") -> Api:
    return Api(
        id="Weather/weather/current",
        category="Weather",
        tool="Weather",
        name="current",
        description=description,
        method="GET",
        url="https://weather.example/current",
        required=tuple(one for one in parameters if one.name == "city"),
        optional=tuple(one for one in parameters if one.name != "city"),
    )


CITY = Parameter(name="city", description="Where.")
UNITS = Parameter(name="units", enum=("metric", "imperial"))


def row(
    tokenizer: Any,
    api: Api,
    text: str,
    clause: tuple[int, int] | None = None,
    facts: tuple[tuple[str, str], ...] = (),
    *,
    whole: bool = False,
) -> pairing.PairedTokens:
    told = [(pairing.tokenise(tokenizer, a), pairing.tokenise(tokenizer, b)) for a, b in facts]
    return pairing.pair(
        pairing.document(tokenizer, api),
        pairing.tokenise(tokenizer, text),
        None if whole else clause or (0, len(text)),
        told,
    )


def test_the_required_parameters_come_first_each_behind_its_marker(tokenizer: Any) -> None:
    api = an_api(UNITS, CITY)
    assert [one.name for one in pairing.parameters(api)] == ["city", "units"]
    paired = row(tokenizer, api, "rain in Oslo?")
    assert paired.markers[0] == 0
    assert [paired.ids[at] for at in paired.markers[1:]] == [pairing.MARKER] * 2
    said = tokenizer.decode(list(paired.ids[paired.markers[1] + 1 : paired.markers[2]]))
    assert said == "city : where."
    assert "metric, imperial" in pairing.parameter_text(UNITS, required=False)


def test_the_clause_is_told_from_the_rest_of_the_text(tokenizer: Any) -> None:
    text = "I fly on Monday. Will it rain in Oslo? Thanks"
    begin, end = text.index("Will"), text.index("?")
    paired = row(tokenizer, an_api(CITY), text, (begin, end))
    marked = [
        text[place[1] : place[2]]
        for place, kind in zip(paired.sources, paired.kinds, strict=True)
        if kind == pairing.CLAUSE and place
    ]
    assert marked == ["Will", "it", "rain", "in", "Oslo"]


def test_a_span_is_found_by_its_characters(tokenizer: Any) -> None:
    text = "rain in New York City?"
    facts = (("capital", "Buenos Aires"),)
    paired = row(tokenizer, an_api(CITY), text, facts=facts)
    begin = text.index("New")
    found = pairing.targets(paired, {0: (0, begin, begin + 13), 1: (1, 0, 12)})
    for parameter, said in ((0, "new york city"), (1, "buenos aires")):
        first, last = found[parameter]
        assert tokenizer.decode(list(paired.ids[first : last + 1])) == said


def test_half_a_token_is_no_span(tokenizer: Any) -> None:
    paired = row(tokenizer, an_api(CITY), "rain in Oslo")
    assert pairing.targets(paired, {0: (0, 8, 10), 1: (0, 40, 44)}) == {}


def test_a_long_text_is_read_around_its_clause(tokenizer: Any) -> None:
    text = "well " * 900 + "rain in Oslo" + " and so on" * 300
    begin = text.index("rain")
    paired = row(tokenizer, an_api(CITY), text, (begin, begin + 12))
    kept = [text[p[1] : p[2]] for p in paired.sources if p]
    assert kept[:1] == ["well"]
    assert kept[kept.index("rain") :][:3] == ["rain", "in", "Oslo"]


def test_a_whole_text_has_no_clause_and_the_room_of_the_facts(tokenizer: Any) -> None:
    paired = row(tokenizer, an_api(CITY), "well " * 900, facts=(("city", "Oslo"),), whole=True)
    assert pairing.CLAUSE not in paired.kinds
    assert pairing.FACT not in paired.kinds
    read = [place for place in paired.sources if place]
    assert len(read) == pairing.WHOLE_TOKENS > pairing.TEXT_TOKENS
    assert read[0] == (0, 0, 4)


def test_allowed_values_stand_in_the_document_and_only_there(tokenizer: Any) -> None:
    paired = row(tokenizer, an_api(UNITS, CITY), "imperial units in Oslo, please")
    assert paired.options[:2] == ((), ())
    said = [
        tokenizer.decode(list(paired.ids[one[0] : one[1] + 1])) for one in paired.options[2] if one
    ]
    assert said == ["metric", "imperial"]
    firsts, lasts = paired.places(2)
    assert list(zip(firsts, lasts, strict=True)) == list(paired.options[2])
    open_, _ = paired.places(1)
    assert all(paired.sources[at] is not None for at in open_)


def test_an_allowed_value_that_is_cut_off_has_no_place(tokenizer: Any) -> None:
    many = Parameter(name="units", enum=tuple(f"very long name {at}" for at in range(30)))
    paired = row(tokenizer, an_api(many, CITY), "x")
    assert len(paired.options[2]) == pairing.LISTED
    assert paired.options[2][0] is not None
    assert paired.options[2][-1] is None


def test_many_long_parameters_share_the_room(tokenizer: Any) -> None:
    told = [Parameter(name=f"p{at}", description="word " * 40) for at in range(9)]
    lists = [Parameter(name="units", enum=tuple(f"value {n}" for n in range(12)))]
    paired = row(tokenizer, an_api(*lists, *told), "x", whole=True)
    assert len(paired.markers) == 1 + pairing.MOST_PARAMETERS
    assert paired.kinds.count(pairing.DOCUMENT) <= 260


TEXT = st.text(max_size=900)


@given(
    st.text(max_size=4_000),
    st.lists(st.tuples(TEXT, TEXT), max_size=14),
    st.lists(st.tuples(TEXT, TEXT), max_size=30),
    st.integers(0, 5_000),
    st.integers(0, 5_000),
    st.booleans(),
)
def test_whatever_is_read_fits_and_every_place_is_in_its_source(
    text: str,
    told: list[tuple[str, str]],
    facts: list[tuple[str, str]],
    begin: int,
    length: int,
    whole: bool,
) -> None:
    parameters = [
        Parameter(name=f"p{at} {a}", description=b, enum=(a, b) if at % 3 == 0 else ())
        for at, (a, b) in enumerate(told)
    ]
    paired = row(
        read_tokenizer(),
        an_api(*parameters),
        text,
        (begin, begin + length),
        tuple(facts),
        whole=whole,
    )
    assert len(paired.ids) == len(paired.kinds) == len(paired.sources) <= PLACES
    assert len(paired.markers) == 1 + min(len(told), pairing.MOST_PARAMETERS)
    assert len(paired.options) == len(paired.markers)
    for option in (one for options in paired.options for one in options if one):
        assert 0 < option[0] <= option[1] < len(paired.ids)
    sources = [text, *(value for _, value in facts)]
    for place in paired.sources:
        assert place is None or 0 <= place[1] <= place[2] <= len(sources[place[0]])
