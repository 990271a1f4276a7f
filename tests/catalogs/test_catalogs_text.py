"""Cleaning text that comes from outside."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsrv_catalogs.text import clean


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("dos\r\nand\rmac", "dos\nand\nmac"),
        ("nul\x00 bell\x07 escape\x1b[31m", "nul bell escape[31m"),
        ("zero\u200bwidth\ufeff", "zerowidth"),
        ("right\u202eto\u2066left", "righttoleft"),
        ("tag\U000e0041\U000e0042", "tag"),
        ("half\ud800", "half"),
        ("äöü 你好 👋", "äöü 你好 👋"),
    ],
)
def test_hidden_characters_go_and_visible_ones_stay(text: str, expected: str) -> None:
    assert clean(text, 100) == expected


@given(st.text(max_size=300), st.integers(0, 200))
def test_cleaning_is_idempotent_and_capped(text: str, limit: int) -> None:
    cleaned = clean(text, limit)
    assert len(cleaned) <= limit
    assert clean(cleaned, limit) == cleaned


@given(st.text(max_size=300))
def test_no_control_or_format_override_survives(text: str) -> None:
    cleaned = clean(text, 300)
    assert not any(unicodedata.category(c) == "Cc" and c not in "\n\t" for c in cleaned)
    assert not any(unicodedata.bidirectional(c) in {"RLO", "LRO", "RLI", "LRI"} for c in cleaned)
