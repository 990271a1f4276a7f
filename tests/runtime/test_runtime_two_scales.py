"""Temperatures that an answer tells on two scales."""

from __future__ import annotations

from toolsrv_runtime.planner.reading.two_scales import taken_on


def test_the_first_of_two_scales_is_taken_on_unless_the_other_is_wanted() -> None:
    first, other = ("feels_like_c", "39.7"), ("feels_like_f", "103.4")
    alone, distances = ("dew_point_f", "60.2"), [("distance_km", "10"), ("distance_miles", "6.2")]
    seen = [first, other, alone, *distances]
    assert taken_on(seen, "It has 104 Fahrenheit. And in Celsius?") == [first, alone, *distances]
    assert taken_on(seen, "How hot is 40 °C, in °F?") == seen
