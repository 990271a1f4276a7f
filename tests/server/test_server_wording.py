"""Numbers and values in the words of people: singular and plural, yes and no, few digits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from toolsrv.cli.output import format_value, pluralize

Run = Callable[..., Result]


def test_a_number_agrees_with_its_noun() -> None:
    waits = ("changed text waits", "changed texts wait")
    assert [pluralize(n, "host") for n in (0, 1, 2_000)] == ["0 hosts", "1 host", "2,000 hosts"]
    assert [pluralize(n, *waits) for n in (1, 2)] == [
        "1 changed text waits",
        "2 changed texts wait",
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "yes"), (False, "no"), (None, "none"), ("", "none"), ([], "none"), ([1], "[1]"),
        (6_917_376, "6,917,376"), (1.0294926589959157, "1.03"), (0.0, "0"), ("f16", "f16"),
    ],
)  # fmt: skip
def test_a_value_is_told_in_few_characters(value: object, text: str) -> None:
    assert format_value(value) == text


def test_tables_hold_nothing_that_only_a_program_understands(run: Run, ready_dir: Path) -> None:
    assert ready_dir.is_dir()
    for words in (("model", "info"), ("index", "build"), ("catalog", "inspect", "offline")):
        shown = run(*words).stdout
        cells = {cell.strip() for line in shown.splitlines() for cell in line.split("│")}
        assert not cells & {"True", "False", "None", "null", "[]", "{}"}
        assert "?B" not in shown
        assert (
            max(
                (len(cell.partition(".")[2]) for cell in cells if cell[:2] in ("0.", "1.")),
                default=0,
            )
            < 4
        )


def test_nothing_that_waits_is_not_told_as_served(run: Run, ready_dir: Path) -> None:
    assert ready_dir.is_dir()
    done = run("catalog", "accept", "offline")
    assert done.exit_code == 0
    assert done.stdout == ""
    assert "nothing waits in offline" in done.stderr
