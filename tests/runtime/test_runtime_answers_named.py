"""Values that a part names of answers and calls: by initials, by the end of a span."""

from __future__ import annotations

from toolsrv_runtime.planner.reading import edges, initials

SEEN = (
    ("greatest_common_divisor", "42"),
    ("least_common_multiple", "252"),
    ("long_country_motto", "Unity"),
    ("days", "12"),
)
SPAN = {"start": "2028-04-03", "end": "2028-06-30"}


def test_a_number_is_known_by_the_initials_of_its_name() -> None:
    assert initials.told("break the LCM down to primes", SEEN) == "252"
    assert initials.told("and the gcd in words", SEEN) == "42"
    assert initials.told("the gcd and the lcm", SEEN) == ""
    assert initials.told("the lcms of it", SEEN) == ""
    assert initials.told("the lcm in words", ()) == ""
    assert initials.told("the sum of it", [("total_hours_elapsed", "7")]) == ""
    assert initials.told("and its name", [("amount_net_due", "7")]) == ""
    assert initials.told("its lcm in primes", [("longest_code_motto", "Unity")]) == ""


def test_a_day_is_known_as_the_end_of_the_one_span() -> None:
    assert edges.told("which week the closing date's in", [SPAN, SPAN]) == "2028-06-30"
    assert edges.told("which weekday is the first day", [SPAN]) == "2028-04-03"
    assert edges.told("the first day or the last day", [SPAN]) == ""
    assert edges.told("which week is that", [SPAN]) == ""
    assert edges.told("the closing date", []) == ""
    assert edges.told("the closing date", [SPAN, {**SPAN, "end": "2028-07-01"}]) == ""
    assert edges.told("the closing date", [{"start": "2028-04-03"}]) == ""
