"""Earlier and later values, by the words of time near each."""

from __future__ import annotations

import pytest

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_registry.api import Api, Parameter
from toolsrv_runtime.planner.reading.changes import told
from toolsrv_runtime.planner.reading.wish import Wish

APIS = {api.id.rpartition("/")[2]: api for api in load_offline_catalog().apis}
CHANGE = APIS["percent_change"]


def pair(text: str, api: Api = CHANGE) -> tuple[str, ...]:
    return tuple(told(one, api, Wish(text, text)) for one in api.required)


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        ("We only sold 2,890 in April. In March it had been 3,400. How bad is it?", "3400", "2890"),
        ("Rent is now 1,250, last year it was 1,100. What's the change?", "1100", "1250"),
        ("It used to be 80, today 95", "80", "95"),
        ("The price is down to 70 from 85", "85", "70"),
        ("I paid 310; the year before 280", "280", "310"),
        ("310 this time; a year ago, 280.", "280", "310"),
        ("They fell to 8,100; previously they were 9,000", "9000", "8100"),
        ("It closed at 47.5 after opening at 50", "50", "47.5"),
        ("My salary was 52000 and is 54600", "52000", "54600"),
        ("It is 54600 and was 52000", "52000", "54600"),
        ("It was 40 before and 50 after", "40", "50"),
        ("From 4 million down to 3.2 million", "4000000", "3200000"),
        ("it fell 12% - to 88 from 100", "100", "88"),
        ("In 2023 it was 350 last time, today it's 410", "350", "410"),
        ("from eighty to ninety-five", "80", "95"),
        ("from -5 to 3 degrees", "-5", "3"),
    ],
)
def test_time_words_and_tense_tell_which_is_earlier(text: str, old: str, new: str) -> None:
    assert pair(text) == (old, new)


@pytest.mark.parametrize(
    "text",
    [
        "The change between 80 and 95",
        "80 now, 95 now",
        "It was 80 and it was 95",
        "Now 80, last year 85 and before that 90",
        "Now 80",
        "Compare 150 with 120",
        "",
    ],
)
def test_nothing_is_said_where_no_words_tell(text: str) -> None:
    assert pair(text) == ("", "")


def test_the_part_counts_before_what_leads_up_to_it() -> None:
    old, _ = CHANGE.required
    before = "Now it's 80, it used to be 90. How bad is that?"
    assert told(old, CHANGE, Wish("How bad is that?", before)) == "90"
    assert told(old, CHANGE, Wish("from 60 to 70", before)) == "60"


def test_names_and_documents_tell_which_parameter_is_earlier() -> None:
    def of(**described: str) -> Api:
        made = [
            Parameter(name=name, type="NUMBER", description=text)
            for name, text in described.items()
        ]
        return Api(id="c/t/n", category="c", tool="t", name="n", required=tuple(made))

    text = "now 80, last year 90"
    assert pair(text, of(final_price="", initial_price="")) == ("80", "90")
    assert pair(text, of(endValue="", startValue="")) == ("80", "90")
    assert pair(text, of(x="The value before", y="The value after")) == ("90", "80")
    assert pair(text, of(previous="", years="", current="")) == ("90", "", "80")
    assert pair(text, of(old="", before="")) == ("", "")
    assert pair(text, of(x="", y="")) == ("", "")
    assert pair(text, APIS["discount"]) == pair(text, APIS["gcd_and_lcm"]) == ("", "")
