"""One of a ranked list."""

from __future__ import annotations

import pytest

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_registry.api import Api, Parameter
from toolsrv_runtime.planner.reading.ranked import told
from toolsrv_runtime.planner.reading.wish import Wish

APIS = {api.id.rpartition("/")[2]: api for api in load_offline_catalog().apis}
CITIES, WORDS = APIS["largest_cities"], APIS["word_frequency"]


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("What is the biggest city of Kazakhstan?", "1"),
        ("the most populous city in Nigeria and its currency", "1"),
        ("What is Kenya's largest city?", "1"),
        ("What's the biggest Polish city?", "1"),
        ("Which city is the most populous in Chile?", "1"),
        ("Which Polish city has the most people?", "1"),
        ("the capital of Turkey and its largest city", "1"),
        ("the biggest cities of Peru", ""),
        ("the three biggest cities", ""),
        ("the 3 biggest cities and the biggest city", ""),
        ("Which cities are the biggest in Chile?", ""),
        ("the second biggest city of Canada", ""),
        ("the largest city of France after Paris", ""),
        ("one of the largest cities, the largest city's name", ""),
        ("the smallest city of Peru", ""),
        ("the biggest airport of Peru", ""),
        ("Which city has the biggest airport?", ""),
        ("cities of Peru", ""),
    ],
)
def test_one_is_listed_where_the_singular_asks_for_it(text: str, limit: str) -> None:
    (parameter,) = CITIES.optional
    assert told(parameter, CITIES, Wish(text, text)) == limit
    (country,) = CITIES.required
    assert told(country, CITIES, Wish(text, text)) == ""


def test_a_function_lists_by_its_own_rank() -> None:
    (top,) = WORDS.optional
    for text, said in (
        ('the most common word in "a b a"', "1"),
        ('the most frequent words in "a b a"', ""),
        ('the longest word in "a b a"', ""),
    ):
        assert told(top, WORDS, Wish(text, text)) == said


def test_what_leads_up_to_a_part_counts_where_the_part_says_nothing() -> None:
    (limit,) = CITIES.optional
    assert (
        told(limit, CITIES, Wish("how many live there?", "Its biggest city, how many live there?"))
        == "1"
    )
    assert (
        told(limit, CITIES, Wish("the largest cities", "its biggest city, the largest cities"))
        == ""
    )


@pytest.mark.parametrize(
    ("name", "description", "limit"),
    [
        ("limit", "", "1"),
        ("maxResults", "", "1"),
        ("n", "Number of hotels to return", "1"),
        ("rooms", "Number of rooms", ""),
        ("max_price", "Price limit", ""),
        ("page_size", "Hotels on a page", ""),
    ],
)
def test_only_how_many_to_list_is_one(name: str, description: str, limit: str) -> None:
    parameter = Parameter(name=name, type="NUMBER", description=description)
    api = Api(
        id="c/t/n",
        category="c",
        tool="t",
        name="n",
        description="The cheapest hotels of a city.",
        optional=(parameter,),
    )
    assert told(parameter, api, Wish("the cheapest hotel in Lima")) == limit
    required = api.model_copy(update={"optional": (), "required": (parameter,)})
    assert told(parameter, required, Wish("the cheapest hotel in Lima")) == ""
