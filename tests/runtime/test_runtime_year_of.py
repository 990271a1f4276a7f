"""The year of the one day that a task tells."""

from __future__ import annotations

import pytest

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_registry.api import Parameter
from toolsrv_runtime.planner.reading.wish import Wish
from toolsrv_runtime.planner.reading.year_of import told

APIS = {api.id.rpartition("/")[2]: api for api in load_offline_catalog().apis}
ROMAN = APIS["number_to_roman"]
NUMBER: Parameter = ROMAN.required[0]


@pytest.mark.parametrize(
    ("part", "task", "year"),
    [
        ("the year in Roman letters", "born Oct 2nd 1998: the year in Roman letters", "1998"),
        (
            "that year as a Roman numeral",
            "married on 3 May 1951, that year as a Roman numeral",
            "1951",
        ),
        (
            "the year in Roman letters",
            "born Oct 2nd 1998, wed 3 May 2027: the year in Roman letters",
            "",
        ),
        ("the year in Roman letters", "born Oct 2nd: the year in Roman letters", ""),
        ("the year 1998 in Roman letters", "born Oct 2nd 1990, the year 1998 in Roman letters", ""),
        ("in Roman letters", "born Oct 2nd 1998, in Roman letters", ""),
    ],
)
def test_the_year_is_that_of_the_one_full_date(part: str, task: str, year: str) -> None:
    assert told(NUMBER, ROMAN, Wish(part, task=task)) == year


def test_only_for_what_takes_one_number() -> None:
    task = "born Oct 2nd 1998: the year in Roman letters"
    api = APIS["percentage_of_number"]
    assert told(api.required[0], api, Wish("the year in Roman letters", task=task)) == ""
