"""Requests of the specification's styles are those that another implementation builds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from toolsrv_lab.evaluation import wire


def test_every_style_explode_and_body_is_as_the_other_library_sends_it() -> None:
    count, found = wire.differences()
    assert count >= 70
    assert [one for one in found if not wire.settled_by(one)] == []
    unused = [start for start in wire.SETTLED if not any(one.id.startswith(start) for one in found)]
    assert unused == []


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("method", {"method": "POST"}),
        ("path", {"url": "https://wire.example/v1/colors/blue%2Fx/end"}),
        ("query", {"url": "https://wire.example/v1/colors/blue/end?a=1"}),
        ("header x-a", {"headers": {"X-A": "1"}}),
        ("body", {"body": "{}"}),
    ],
)
def test_a_difference_in_any_part_is_seen(part: str, change: dict[str, object]) -> None:
    case = next(one for one in wire.cases() if one.id == "path simple whole string 0")
    built = wire.ours(case)
    other = replace(built, **change)  # type: ignore[arg-type]
    assert [one.part for one in wire.compare(built, other)] == [part]
    assert wire.compare(built, built) == []


def test_one_address_in_two_spellings_is_no_difference() -> None:
    one = wire.Request("x", "GET", "https://a.example/a,b?q=%7e")
    other = wire.Request("x", "GET", "https://a.example/a%2cb?q=~")
    assert wire.compare(one, other) == []
