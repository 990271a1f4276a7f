"""Invented responses do not grow with the nesting of a schema's lists."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from toolsrv_runtime.calls.simulation import generate_response
from toolsrv_runtime.stop import Stop


def values(made: Any) -> int:
    """Count the values of a response, objects and lists among them."""
    inner = made.values() if isinstance(made, dict) else made if isinstance(made, list) else ()
    return 1 + sum(values(one) for one in inner)


def lists(levels: int, length: int) -> Any:
    schema: Any = "str"
    for _ in range(levels):
        schema = [{"_list_length": length, "items": schema}]
    return schema


@pytest.mark.parametrize(
    "schema",
    [
        lists(14, 20),
        [[[[[[[[[[[[[[[[[[[[[[[["int"]]]]]]]]]]]]]]]]]]]]]]]],
        [{"_list_length": 20, "a": [{"_list_length": 20, "b": ["list of str with length 20"]}]}],
    ],
)
def test_a_response_stays_small_however_its_lists_are_nested(schema: Any) -> None:
    made = generate_response(schema, {}, random.Random(3))
    assert values(made) < 2_000
    json.dumps(made)


def test_where_the_lists_end_the_rest_of_the_response_is_there() -> None:
    made = generate_response({"many": lists(14, 20), "total": "int"}, {}, random.Random(3))
    assert isinstance(made["total"], int)
    assert len(made["many"]) < 20
    inner = made
    for name in ["many", *["items"] * 13]:
        inner = inner[name]
        assert len(inner) >= 1
        inner = inner[0]
    assert isinstance(inner["items"], str)


def test_a_response_within_its_budget_has_the_lengths_that_the_schema_says() -> None:
    made = generate_response(lists(2, 20), {}, random.Random(3))
    assert [len(one["items"]) for one in made] == [20] * 20


def test_a_list_that_nobody_waits_for_ends() -> None:
    stop = Stop()
    stop.set()
    assert len(generate_response(lists(1, 20), {}, random.Random(3), stop)) == 1
    assert len(generate_response(lists(1, 20), {}, random.Random(3), Stop())) == 20


def test_a_length_without_end_is_no_length() -> None:
    assert isinstance(
        generate_response("list of str with length " + "9" * 5_000, {}, random.Random(1)), str
    )
