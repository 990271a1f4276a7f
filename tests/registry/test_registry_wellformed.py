"""Lone surrogates in text and JSON become U+FFFD; everything else stays as it is."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsrv_registry import wellformed

ANY_TEXT = st.text(st.characters(codec=None, categories=None), max_size=12)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (r'"\ud83d"', "\ufffd"),
        (r'"\uDE00x"', "\ufffdx"),
        (r'"\ud83d\ude00"', "\U0001f600"),
        (r'"\ud83d\ud83d\ude00"', "\ufffd\U0001f600"),
        (r'"\ude00\ud83d"', "\ufffd\ufffd"),
        (r'"\\ud83d"', r"\ud83d"),
        (r'"\\\ud83d"', "\\\ufffd"),
        ('"\ud83d"', "\ufffd"),
        (r'{"\ud83d": ["\udc00"]}', {"\ufffd": ["\ufffd"]}),
        (b'"\\ud83d"', "\ufffd"),
        (b'\xef\xbb\xbf"ok"', "ok"),
    ],
)
def test_half_a_pair_is_replaced_where_json_is_decoded(given: str | bytes, wanted: Any) -> None:
    assert wellformed.loads(given) == wanted


def test_broken_and_deep_json_text_is_cleaned_too() -> None:
    deep = "[" * 50_000 + r'"\ud83d'
    assert wellformed.json_text(deep) == "[" * 50_000 + r'"\ufffd'
    assert wellformed.json_text(r'{"a": "\ud83') == r'{"a": "\ud83'


@given(VALUES)
def test_a_value_can_be_written_and_differs_only_in_surrogates(value: Any) -> None:
    clean = wellformed.value(value)
    dumped = json.dumps(clean, ensure_ascii=False)
    assert dumped.encode().decode() == dumped
    if clean is not value:
        assert any(
            "\ud800" <= one <= "\udfff" for one in json.dumps(value, ensure_ascii=False)
        ) or (clean == value)
    assert wellformed.loads(json.dumps(value)) == clean


def test_what_is_well_formed_is_returned_as_it_is() -> None:
    value = {"a": ["é", "a\nb", 1.5, None, True]}
    assert wellformed.value(value) is value
    text = '{"a": "\U0001f600"}'
    assert wellformed.json_text(text) is text
