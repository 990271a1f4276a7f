"""A time of day with the day that its sentence tells apart from it."""

from __future__ import annotations

import pytest

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_registry.api import Parameter
from toolsrv_runtime.planner.reading.moments import dated

(TIME,) = (
    one
    for api in load_offline_catalog().apis
    if api.id.endswith("/convert_time")
    for one in api.parameters
    if one.name == "time"
)
TASK = "I land at 18:40 local time on 3 May 2027; what is that in Oslo? On 4 May 2027 I leave."


@pytest.mark.parametrize(
    ("value", "part", "read"),
    [
        ("18:40", "what is that in Oslo", "18:40"),
        ("18:40", "I land at 18:40", "2027-05-03 18:40"),
        ("6.40 pm", "I land at 18:40", "6.40 pm"),
        ("6:40 pm", "I land at 18:40", "2027-05-03 18:40"),
        ("2027-05-03 18:40", "I land at 18:40", "2027-05-03 18:40"),
        ("noon", "I land at 18:40", "noon"),
    ],
)
def test_a_bare_time_gets_the_day_of_its_sentence(value: str, part: str, read: str) -> None:
    assert dated(TIME, value, part, TASK) == read


def test_it_gets_none_where_several_are_told_or_none_is_taken() -> None:
    both = "At 18:40, on 3 May 2027 or on 4 May 2027?"
    assert dated(TIME, "18:40", "At 18:40", both) == "18:40"
    clock = Parameter(name="time", type="STRING", description="Like 14:30")
    assert dated(clock, "18:40", "I land at 18:40", TASK) == "18:40"
