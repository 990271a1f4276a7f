"""Days that an answer tells besides: which of them a task means."""

from __future__ import annotations

import pytest

from toolsrv_runtime.planner.reading import upcoming

MOON = [
    ("moon_phase", "waning gibbous"),
    ("next_new_moon", "2026-12-09"),
    ("next_full_moon", "2026-12-24"),
    ("next_run", "none"),
]


@pytest.mark.parametrize(
    ("task", "left"),
    [
        ("When is the next full moon, and does the sun set late that day?", ["next_full_moon"]),
        ("the next New Moon or the next full moon", ["next_new_moon", "next_full_moon"]),
        ("Which moon is there on 24 December 2026?", []),
    ],
)
def test_a_day_told_besides_counts_where_the_task_names_it(task: str, left: list[str]) -> None:
    found = [name for name, _ in upcoming.meant(MOON, task)]
    assert found == ["moon_phase", *left, "next_run"]


@pytest.mark.parametrize(
    ("part", "day"),
    [
        ("how many days until the next full moon", "2026-12-24"),
        ("from the next new moon to the next full moon", ""),
        ("how many days until Christmas", ""),
    ],
)
def test_the_day_that_a_part_calls_by_its_name_is_told(part: str, day: str) -> None:
    assert upcoming.told(part, MOON) == day
