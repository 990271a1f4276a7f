"""Untrusted text on its way to a terminal, and tasks on their way to a model."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsrv.plain import clean_task, compact_json, one_line, plain
from toolsrv_registry.errors import UsageError
from toolsrv_runtime import TASK_LIMIT

ANY_TEXT = st.text(st.characters(), max_size=300)
HARMFUL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


@given(ANY_TEXT)
def test_nothing_that_steers_a_terminal_is_left(text: str) -> None:
    shown = plain(text)
    assert not HARMFUL.search(shown)
    assert plain(shown) == shown
    shown.encode("utf-8")


@given(st.text(st.characters(categories=["L", "N", "P", "Zs"]), max_size=200))
def test_ordinary_text_in_any_language_stays(text: str) -> None:
    assert (
        plain(text).split() == text.split()
        or "\u115f" in text
        or "\u3164" in text
        or ("\uffa0" in text or "\u1160" in text)
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("[bold]markup[/bold]", "[bold]markup[/bold]"),
        ("\u202egnp.exe", "gnp.exe"),
        ("bad \udcff byte", "bad \ufffd byte"),
    ],
)
def test_escape_sequences_go_and_text_stays(text: str, shown: str) -> None:
    assert plain(text) == shown


@given(ANY_TEXT, st.integers(1, 80))
def test_a_line_is_one_line_of_the_asked_length(text: str, limit: int) -> None:
    line = one_line(text, limit)
    assert len(line) <= limit
    assert "\n" not in line


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=20), st.lists))
def test_json_stays_json(value: object) -> None:
    assert json.loads(compact_json(value)) is not ...


def test_a_task_is_trimmed_and_cleaned() -> None:
    assert clean_task("  what\x00 time\x1b[2J is it?\n") == "what time is it?"
    assert clean_task("東京は何時ですか") == "東京は何時ですか"


@pytest.mark.parametrize("task", ["", "   ", "\n\t", "\x00\x1b[0m", "\u200b\ufeff"])
def test_an_empty_task_is_refused(task: str) -> None:
    with pytest.raises(UsageError, match="empty"):
        clean_task(task)


def test_a_task_has_a_limit_and_it_is_the_solvers() -> None:
    assert len(clean_task("x" * TASK_LIMIT)) == TASK_LIMIT
    with pytest.raises(UsageError, match="20,001"):
        clean_task("x" * (TASK_LIMIT + 1))
