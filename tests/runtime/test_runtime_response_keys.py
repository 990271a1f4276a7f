"""Key paths of example responses, and the schemas of those that are kept."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from toolsrv_registry.api import Api, Parameter
from toolsrv_runtime.calls.compress import TextBudget, compress, filter_response
from toolsrv_runtime.calls.response_keys import MOST_KEYS, identifier_paths, response_keys

SHELF = {
    "took": 3,
    "books": [
        {"id": 1, "title": "Salt", "cover": {"s": "a.png", "l": "b.png"}, "tags": ["x"]},
        {"id": 2, "title": "Iron", "cover": {"s": "c.png", "l": "d.png"}, "year": 1999},
    ],
    "next": None,
}

SCALARS = st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-1, 1) | st.text(max_size=6)
VALUES = st.recursive(
    SCALARS,
    lambda one: st.lists(one, max_size=4) | st.dictionaries(st.text(max_size=5), one, max_size=5),
    max_leaves=30,
)


def test_paths_name_the_keys_of_all_items_with_their_types() -> None:
    assert response_keys([SHELF]).types == {
        "took": "int",
        "books[].id": "int",
        "books[].title": "str",
        "books[].cover.s": "str",
        "books[].cover.l": "str",
        "books[].tags": "list of str",
        "books[].year": "int",
        "next": "any",
    }


def test_the_schema_keeps_what_was_chosen_and_nothing_else() -> None:
    keys = response_keys([SHELF])
    schema = keys.schema(["books[].title", "books[].cover.s", "books[].tags", "next"])
    assert schema == {
        "books": [{"title": "str", "cover": {"s": "str"}, "tags": ["str"]}],
        "next": True,
    }
    assert filter_response(SHELF, schema) == {
        "books": [
            {"title": "Salt", "cover": {"s": "a.png"}, "tags": ["x"]},
            {"title": "Iron", "cover": {"s": "c.png"}},
        ],
        "next": None,
    }
    assert keys.schema([]) is None
    assert keys.schema(["invented", "books[].pages"]) is None


def test_keys_of_several_responses_are_merged() -> None:
    keys = response_keys([{"a": 1, "b": None}, {"b": {"c": 1}, "d": "x"}])
    assert keys.types == {"a": "int", "b.c": "int", "d": "str"}


def test_a_list_of_objects_is_filtered_where_the_schema_is_one_too() -> None:
    rows = [{"id": 1, "hash": "f" * 500}, {"id": 2, "hash": "e" * 500}]
    schema = response_keys([rows]).schema(["[].id"])
    assert schema == [{"id": "int"}]
    assert compress(rows, TextBudget(60), schema) == '[{"id": 1}, {"id": 2}]'
    assert "hash" in compress([{"hash": "f" * 500}], TextBudget(60), schema)  # nothing would stay


@pytest.mark.parametrize(
    "keyed",
    [
        {"1999": {"a": 1}, "2000": {"a": 2}, "2001": {"a": 3}, "2002": {"a": 4}},
        {f"C{at}": at / 7 for at in range(16)},
        {f"k{at}": at for at in range(2 * MOST_KEYS + 1)},
    ],
)
def test_an_object_whose_keys_are_data_is_one_choice(keyed: dict[str, Any]) -> None:
    keys = response_keys([{"rates": keyed, "date": "2024-01-01"}])
    assert keys.types == {"rates": "any", "date": "str"}
    assert keys.schema(["rates"]) == {"rates": True}
    assert response_keys([keyed]).types == {}


def test_an_object_of_more_keys_than_a_model_is_shown_is_one_choice() -> None:
    wide = {f"k{at}": at if at % 2 else str(at) for at in range(MOST_KEYS + 9)}
    keys = response_keys([{"stats": wide, "date": "2024-01-01"}])
    assert keys.types == {"stats": "object", "date": "str"}
    assert keys.schema(["stats"]) == {"stats": True}
    assert keys.schema(["date"]) == {"date": "str"}


def test_sparse_keys_of_many_items_are_data() -> None:
    items = [{f"p{at * 9 + key}": key for key in range(9)} for at in range(10)]
    assert response_keys([{"items": items}]).types == {"items": "any"}


def test_keys_that_no_prompt_can_show_are_always_kept() -> None:
    odd = {"ok": 1, "more": 2, "a\x00b": 3, "": 4, "x" * 200: 5}
    keys = response_keys([odd])
    assert set(keys.types) == {"ok", "more"}
    assert filter_response(odd, keys.schema(["ok"])) == {
        k: v for k, v in odd.items() if k != "more"
    }


def test_keys_with_dots_and_brackets_are_told_from_nested_ones() -> None:
    keys = response_keys([{"a.b": 1, "a": {"b": 2}, "c[]": 3, 'd"': 4}])
    assert list(keys.types) == ['"a.b"', "a.b", '"c[]"', '"d\\""']
    assert keys.schema(['"a.b"']) == {"a.b": "int"}


@pytest.mark.parametrize("value", [None, 3, "text", [], {}, [1, 2], [[{"a": 1}]], [None], [{}]])
def test_a_response_without_keys_has_no_choices(value: Any) -> None:
    keys = response_keys([value])
    assert keys.types == {}
    assert keys.schema(keys.types) is None


def test_wide_deep_and_long_responses_are_bounded() -> None:
    wide = {f"a{at}x": {f"b{at}{n}": {"c": n, "d": "x"} for n in range(at)} for at in range(90)}
    deep: Any = 1
    for _ in range(190):
        deep = [{"a": deep}]
    start = time.monotonic()
    assert 0 < len(response_keys([wide]).types) <= MOST_KEYS
    assert len(response_keys([{"deep": deep, "b": 1}]).types) == 2
    assert response_keys([[{"a": 1}] * 500_000]).types == {"[].a": "int"}
    assert time.monotonic() - start < 5


def test_what_a_document_names_and_no_example_has_is_kept() -> None:
    keys = response_keys([{"data": [{"id": 1, "etag": "x"}], "took": 1}])
    documented = {
        "data": [{"id": "int", "etag": "str", "deleted": "bool"}],
        "took": "int",
        "more": True,
    }
    assert keys.schema(["data[].id"], documented) == {
        "data": [{"id": "int", "deleted": "bool"}],
        "more": True,
    }


def api(name: str, *required: str) -> Api:
    parameters = tuple(Parameter(name=one) for one in required)
    return Api(id=f"T/t/{name}", category="T", tool="t", name=name, required=parameters)


def test_identifiers_that_other_apis_require_are_found_by_name() -> None:
    listing = api("list", "team")
    others = [listing, api("one", "playerId"), api("map", "country_code"), api("squad", "team")]
    keys = response_keys(
        [{"players": [{"id": 1, "name": "A"}], "player": {"id": 2}, "team": 3, "countryCode": "F"}]
    )
    names = {parameter.name for one in others for parameter in one.required}
    assert identifier_paths(keys, listing, names) == {
        "players[].id",
        "player.id",
        "countryCode",
    }


def _mixed(value: Any) -> bool:
    """Whether a list in it has objects but not as its first: such lists are left alone."""
    if isinstance(value, dict):
        return any(map(_mixed, value.values()))
    if not isinstance(value, list):
        return False
    objects = [isinstance(one, dict) for one in value]
    return (any(objects) and not objects[0]) or any(map(_mixed, value))


@given(st.dictionaries(st.text(max_size=5), VALUES, max_size=6), st.data())
def test_any_subset_of_paths_keeps_what_it_names(
    value: dict[str, Any], data: st.DataObject
) -> None:
    assume(not _mixed(value))
    keys = response_keys([value])
    paths = list(keys.types)
    assert len(paths) == len(set(paths)) <= MOST_KEYS
    if not paths:
        return
    assert filter_response(value, keys.schema(paths)) == value
    chosen = data.draw(st.sets(st.sampled_from(paths)))
    if chosen:
        left = filter_response(value, keys.schema(chosen))
        assert set(keys.types) & set(response_keys([left]).types) <= chosen
