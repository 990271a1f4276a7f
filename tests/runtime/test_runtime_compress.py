"""Responses made short: by a schema, and by structure within a budget of characters or tokens."""

from __future__ import annotations

import json
import math
import re
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsrv_catalogs.text import clean
from toolsrv_runtime.calls.compress import TextBudget, compress, filter_by_schema, json_size

VECTORS = json.loads((Path(__file__).parent / "data" / "response_vectors.json").read_text("utf-8"))
TINY = 40
SHORTENED = '"..."'

texts = st.text(max_size=300)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | texts
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=30) | st.dictionaries(st.text(max_size=100), inner),
    max_leaves=80,
)


def bytes_by_three(text: str) -> int:
    """Count as a tokenizer might: some tokens per character, never none for a text."""
    return (len(text.encode("utf-8", "replace")) + 2) // 3


def test_a_schema_keeps_what_the_reference_keeps() -> None:
    for case in VECTORS["groups"]["schema_compression"]["cases"]:
        assert filter_by_schema(case["response"], case["schema"]) == case["out"]


@pytest.mark.parametrize(
    ("response", "schema", "kept"),
    [
        ({"a": {"x": 1}}, {"a": 5}, {"a": {}}),
        ({"a": [{"x": 1}]}, {"a": []}, {"a": [{}]}),
        ({"a": [{"x": 1}, 3]}, {"a": [{"x": "int"}]}, {"a": [{"x": 1}, 3]}),
        ({"a": [{"x": 1, "y": 2}]}, {"a": {"x": "int"}}, {"a": [{"x": 1}]}),
        ({"a": {"s": {"t": 1}}}, {"a": "str"}, {"a": {"s": {}}}),
        ({"a": [1, {"x": 1}]}, {"a": ["int"]}, {"a": [1, {"x": 1}]}),
        ({"a": 1}, None, {}),
        (
            {"a": {"x": {"y": 1}}, "b": [{"x": 1}]},
            {"a": True, "b": [True]},
            {"a": {"x": {"y": 1}}, "b": [{"x": 1}]},
        ),
    ],
)
def test_a_schema_that_the_reference_crashes_on_leaves_out_what_it_does_not_name(
    response: dict[str, Any], schema: Any, kept: dict[str, Any]
) -> None:
    assert filter_by_schema(response, schema) == kept


@given(st.dictionaries(st.text(max_size=5), values, max_size=5), values)
def test_a_schema_only_ever_leaves_out(response: dict[str, Any], schema: Any) -> None:
    assert list(filter_by_schema(response, schema)) == [
        key
        for key in response
        if schema is True or (isinstance(schema, dict | list | str) and key in schema)
    ]


def test_what_fits_is_shown_whole_whatever_the_schema_says() -> None:
    response = {"city": "Lima", "population": 10_000_000, "mayor": None}
    text = compress(response, TextBudget(200), {"city": "str"})
    assert text == json.dumps(response)


def test_what_does_not_fit_is_shown_by_its_schema_then_by_structure() -> None:
    items = [{"id": at, "noise": "x" * 200} for at in range(4)]
    response = {"items": items, "debug": "y" * 500}
    schema = {"items": [{"id": "int"}]}
    assert json.loads(compress(response, TextBudget(200), schema)) == {
        "items": [{"id": at} for at in range(4)]
    }
    shorter = json.loads(compress({**response, "items": items * 99}, TextBudget(200), schema))
    assert list(shorter) == ["items"]
    assert shorter["items"][0] == {"id": 0}


@pytest.mark.parametrize("schema", [{}, "", {"else": "str"}])
def test_a_schema_that_names_nothing_of_a_response_is_passed_over(schema: Any) -> None:
    text = compress({"text": "word " * 100}, TextBudget(100), schema)
    assert json.loads(text)["text"].startswith("word word")


def test_a_list_at_the_top_has_no_schema() -> None:
    text = compress([{"x": 1, "y": 2}] * 50, TextBudget(100), {"x": "int"})
    assert json.loads(text)[0] == {"x": 1, "y": 2}


@given(values, st.integers(TINY, 2_000))
def test_the_text_is_json_and_never_over_a_budget_of_characters(value: Any, most: int) -> None:
    text = compress(value, TextBudget(most))
    json.loads(text, parse_constant=pytest.fail)
    assert len(text) <= most


@given(values, st.integers(TINY, 700))
def test_the_text_is_json_and_never_over_a_budget_of_tokens(value: Any, most: int) -> None:
    text = compress(value, TextBudget(most, bytes_by_three, reach=8))
    json.loads(text)
    assert bytes_by_three(text) <= most


@given(values, st.integers(0, TINY))
def test_a_tiny_budget_is_kept_too(value: Any, most: int) -> None:
    assert len(compress(value, TextBudget(most))) <= most


@given(values, st.integers(TINY, 2_000))
def test_what_fits_comes_back_clean_and_else_unchanged(value: Any, most: int) -> None:
    if len(json.dumps(value, ensure_ascii=False)) <= most:
        assert json.loads(compress(value, TextBudget(most))) == cleaned(value)


@given(values)
def test_a_value_of_just_the_budget_is_whole_and_the_rest_of_a_budget_is_used(value: Any) -> None:
    value = cleaned(value)
    text = compress(value, TextBudget(1_000_000))
    assert json_size(value, 1_000_000) == len(text)
    assert compress(value, TextBudget(len(text))) == text


def test_a_long_text_fills_its_budget() -> None:
    assert 115 <= len(compress("word " * 1_000, TextBudget(120))) <= 120


def cleaned(value: Any) -> Any:
    """Return JSON with all of its texts clean, and null for what is no number in it."""
    if isinstance(value, dict):
        return {clean(key, len(key)): cleaned(one) for key, one in value.items()}
    if isinstance(value, list):
        return [cleaned(one) for one in value]
    if isinstance(value, str):
        return clean(value, len(value))
    return None if isinstance(value, float) and not math.isfinite(value) else value


@given(values, st.integers(TINY, 1_000))
def test_what_is_left_out_is_counted_rightly(value: Any, most: int) -> None:
    shown = json.loads(compress(value, TextBudget(most)), object_pairs_hook=Pairs)
    check(value, shown)


class Pairs(list[tuple[str, Any]]):
    """An object as its pairs: two long keys may be cut to one text."""


def check(value: Any, shown: Any) -> None:
    """Compare what is shown of a value with the value, marks and all."""
    if shown == "...":
        return
    if isinstance(value, dict) and isinstance(shown, Pairs):
        left = len(value) - len(shown)
        if (
            shown
            and shown[-1][0] == "..."
            and (mark := re.fullmatch(r"(\d+) more keys?", str(shown[-1][1])))
        ):
            left, shown = int(mark[1]), Pairs(shown[:-1])
        assert len(shown) + left == len(value)
        for one, (_, inner) in zip(value.values(), shown, strict=False):
            check(one, inner)
    elif isinstance(value, list) and isinstance(shown, list):
        marks = [
            at for at, one in enumerate(shown) if re.fullmatch(r"\.\.\. \d+ more items?", str(one))
        ]
        if not marks:
            assert len(shown) == len(value)
        else:
            (at,) = marks
            left = int(shown[at].split()[1])
            assert len(shown) - 1 + left == len(value)
            rest = [*value[:at], *value[at + left :]]
            for one, inner in zip(rest, [*shown[:at], *shown[at + 1 :]], strict=True):
                check(one, inner)
    elif isinstance(value, dict | list):
        noun = "key" if isinstance(value, dict) else "item"
        assert f"... {len(value)} {noun}" in shown
    elif isinstance(value, str) and (
        mark := re.search(r" \[\.\.\. (\d+) characters? left out \.\.\.\] ", shown)
    ):
        hidden = len(value) - len(clean(value, len(value)))
        seen = len(shown) - len(mark[0])
        assert 0 <= len(value) - seen - int(mark[1]) <= hidden


@given(st.dictionaries(st.text("abcdef", min_size=1, max_size=20), st.text(min_size=9), min_size=1))
def test_keys_are_kept_before_values(value: dict[str, str]) -> None:
    room = sum(len(key) + 6 + len(SHORTENED) for key in value)
    assert list(json.loads(compress(value, TextBudget(max(TINY, room))))) == list(value)


def test_a_long_list_shows_its_first_and_last_items_and_how_many_are_between() -> None:
    shown = json.loads(compress(list(range(1_000)), TextBudget(100)))
    at = next(at for at, one in enumerate(shown) if isinstance(one, str))
    assert shown[:at] == list(range(at))
    assert shown[at + 1 :] == list(range(1_000 - len(shown) + at + 1, 1_000))
    assert shown[at] == f"... {1_000 - len(shown) + 1} more items"


def test_a_long_text_is_cut_in_its_middle() -> None:
    text = "begin " + "x" * 5_000 + " end"
    shown = json.loads(compress(text, TextBudget(120)))
    assert shown.startswith("begin xxx")
    assert shown.endswith("xxx end")
    assert f"[... {len(text) - shown.count('x') - 10} characters left out ...]" in shown


def test_short_values_stay_beside_long_ones() -> None:
    response = {"id": 7, "text": "long " * 1_000, "tags": ["a", "b"], "ok": True}
    shown = json.loads(compress(response, TextBudget(200)))
    assert (shown["id"], shown["tags"], shown["ok"]) == (7, ["a", "b"], True)


def test_what_a_value_does_not_need_of_its_share_goes_to_longer_ones() -> None:
    response = {"a": "x" * 50, "b": "y" * 500, "c": list(range(12))}
    text = compress(response, TextBudget(240))
    shown = json.loads(text)
    assert (shown["a"], shown["c"]) == (response["a"], response["c"])
    assert 230 <= len(text) <= 240


def test_hidden_characters_do_not_reach_the_model() -> None:
    dirty = "a\u200bb\u202ec\x1b[31m\ufeff\U000e0041d"
    shown = json.loads(compress({dirty: dirty, "list": [dirty] * 500}, TextBudget(300)))
    assert shown["abc[31md"] == "abc[31md"
    assert clean(json.dumps(shown, ensure_ascii=False), 999) == json.dumps(
        shown, ensure_ascii=False
    )
    assert "\\u" not in json.dumps(shown, ensure_ascii=False)


@pytest.mark.parametrize("most", [TINY, 500, 100_000])
def test_deep_nesting_ends_in_a_count(most: int) -> None:
    deep: Any = {"a": 1}
    for _ in range(50_000):
        deep = [deep]
    assert "... 1 item]" in compress(deep, TextBudget(most))


def test_the_time_does_not_grow_with_the_response() -> None:
    def seconds(count: int) -> float:
        rows = [{"id": at, "text": "word " * 20} for at in range(count)]
        start = time.perf_counter()
        compress({"rows": rows}, TextBudget(1_000), {"rows": [{"id": "int"}]})
        return time.perf_counter() - start

    assert seconds(20_000) < 40 * seconds(2_000) + 1
