"""Values told behind their parameter's own name, and no others."""

from __future__ import annotations

import pytest

from toolsrv_registry.api import Parameter
from toolsrv_runtime.planner.reading.labels import labelled


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("seasonId", "Who plays next in competition 8 of season 42409, page 0?", "42409"),
        ("competitionId", "Who plays next in competition 8 of season 42409, page 0?", "8"),
        ("page", "Who plays next in competition 8 of season 42409, page 0?", "0"),
        ("documentId", "summary of the one document d-5501 in folder f-220", "d-5501"),
        ("folder_id", "summary of the one document d-5501 in folder f-220", "f-220"),
        ("order_number", "where is order no. 77-12?", "77-12"),
        ("inboxId", "what came in at test inbox #in-22.", "in-22"),
        ("to_base", "from base 16 to base 2", ""),
        ("password", "crack my password Tr0mbone!River quickly", ""),
        ("id", "the id 37", ""),
        ("page", "homepage 3", ""),
        ("page", "the page is long", ""),
        ("hours", "26 miles in 3 hours 30 minutes", ""),
        ("hours", "in hours 30", "30"),
        ("page", "in chapter 2 page 5", "5"),
    ],
)
def test_what_stands_behind_a_name_is_its_value(name: str, text: str, value: str) -> None:
    assert labelled(Parameter(name=name), text) == value
