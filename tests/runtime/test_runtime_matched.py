"""What the matcher's word comes to in the compact format: one value for one parameter, and no more."""

from __future__ import annotations

import pytest
from tests.priors import Silent, Tuned

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_registry.api import Api, Parameter
from toolsrv_registry.functions import FunctionList
from toolsrv_runtime.planner.matched import Matched, holds
from toolsrv_runtime.planner.needs import Needs
from toolsrv_runtime.planner.scene import Offer, Scene

APIS = {api.id: api for api in load_offline_catalog().apis}
CONVERT = APIS["Science/unit_converter/convert_units"]
LEAP = APIS["Tools/date_calculator/leap_year"]
BILL = APIS["Food/kitchen_helper/split_bill_with_tip"]
BMI = APIS["Health_and_Fitness/body_metrics/body_mass_index"]
SORT = APIS["Tools/text_case_studio/sort_words"]
TEMPERATURE = APIS["Science/unit_converter/convert_temperature"]


def scene(task: str, *apis: Api, seen: tuple[tuple[str, str], ...] = ()) -> Scene:
    offers = tuple(Offer(at, one) for at, one in enumerate(FunctionList(apis), start=1))
    return Scene(task, offers, (), (), seen)


def of(api: Api, name: str) -> Parameter:
    return next(one for one in api.parameters if one.name == name)


def test_without_a_matcher_nothing_is_said_for_or_against() -> None:
    matched = Matched(scene("Was 1996 a leap year?", LEAP), "Was 1996 a leap year", Silent())
    year = of(LEAP, "year")
    assert matched.serves(LEAP) == 0.0
    assert matched.given(LEAP, year) is None
    assert matched.values(LEAP, year) == []
    assert matched.score(LEAP, year, "1996") == matched.within(LEAP, year, "1996") == -float("inf")
    assert not matched.is_told_by(LEAP)
    assert Matched(scene("x", LEAP), "x", None).serves(LEAP) == 0.0


def test_each_parameter_gets_words_of_its_own() -> None:
    task = "The tank holds 40 gallons. How many litres is that?"
    matched = Matched(scene(task, CONVERT), "How many litres is that", Tuned())
    found = {one.name: matched.values(CONVERT, one)[0] for one in CONVERT.required}
    assert found == {"amount": "40", "from_unit": "gallons", "to_unit": "litres"}
    rival = matched.score(CONVERT, of(CONVERT, "to_unit"), "gallons")
    assert rival < matched.score(CONVERT, of(CONVERT, "from_unit"), "gallons") - 3


def test_an_optional_value_is_given_where_it_is_stated() -> None:
    tip = of(BILL, "tip_percent")
    told = (
        "We were 4 at dinner, 86.50 in all, and want to leave 15 percent tip. What does each pay?"
    )
    silent = "We were 4 at dinner, 86.50 in all. What does each pay?"
    for task, stated in ((told, True), (silent, False)):
        matched = Matched(scene(task, BILL), "What does each pay", Tuned())
        odds = matched.given(BILL, tip)
        assert odds is not None
        assert (odds > 0) is stated


def test_a_value_that_is_whole_by_its_form_keeps_what_its_part_deserves() -> None:
    task = "I am 5 ft 9 in tall and weigh 164 lb. What is my BMI?"
    matched = Matched(scene(task, BMI), "What is my BMI", Tuned())
    height = of(BMI, "height")
    assert matched.within(BMI, height, "5 ft 9 in") >= matched.score(BMI, height, "5 ft 9 in")
    assert matched.within(BMI, height, "5 ft 9 in") > matched.within(BMI, height, "164 lb")


def test_a_listed_value_is_named_by_its_words() -> None:
    enum = of(SORT, "order")
    task = "Sort these words, descending please: pear, fig, apple"
    matched = Matched(scene(task, SORT), task, Tuned())
    assert matched.listed(SORT, enum) == "descending"
    assert matched.listed(SORT, enum, taken=["descending"]) == "ascending"
    assert matched.listed(SORT, enum, taken=["descending", "ascending"]) == ""
    assert Matched(scene(task, SORT), task, Silent()).listed(SORT, enum) == ""


def test_a_listed_value_may_be_meant_in_other_words() -> None:
    task = "Put Zoe, Amir, Ngozi and Bea in order, from Z to A"
    matched = Matched(scene(task, SORT), task, Tuned())
    assert matched.listed(SORT, of(SORT, "order")) == "descending"


def test_two_parameters_with_one_list_get_two_values() -> None:
    task = "What is 98.6 °F in °C?"
    matched = Matched(scene(task, TEMPERATURE), task, Tuned())
    said = {matched.listed(TEMPERATURE, one) for one in TEMPERATURE.parameters if one.enum}
    assert said == {"fahrenheit", "celsius"}


def test_a_list_that_was_not_read_to_its_end_says_nothing() -> None:
    long = of(SORT, "order").model_copy(update={"enum": tuple(f"order {at}" for at in range(40))})
    api = SORT.model_copy(update={"id": "x/y/z", "required": (long,), "optional": ()})
    matched = Matched(scene("sort by order 39", api), "sort by order 39", Tuned())
    assert matched.listed(api, long) == ""
    assert matched.given(api, long) is None


def test_a_part_that_states_nothing_is_told_from_one_that_does() -> None:
    task = "Was 1996 a leap year? And how about that one?"
    offered = scene(task, LEAP)
    assert Matched(offered, "Was 1996 a leap year", Tuned()).is_told_by(LEAP)
    assert not Matched(offered, "how about that one", Tuned()).is_told_by(LEAP)


@pytest.mark.parametrize("prior", [Tuned(), Silent()])
def test_what_the_matcher_is_sure_of_is_a_need_whatever_its_words(prior: Tuned) -> None:
    task = "Good morning to you all. 40 gallons in litres. Thanks"
    needs = Needs(scene(task, CONVERT, LEAP), prior)
    found = needs.left([])
    assert (found == "40 gallons in litres") is (type(prior) is Tuned)


def test_a_part_that_is_not_in_the_task_is_read_as_all_of_it() -> None:
    task = "Was 1996 a leap year?"
    assert Matched(scene(task, LEAP), "not in it", Tuned()).serves(LEAP) > 0


@pytest.mark.parametrize(
    ("whole", "part", "does"),
    [
        ("6 ft 2 in", "6 ft", True),
        ("12:30 pm", "12:30", True),
        ("132.60", "6", False),
        ("132.60", "132", False),
        ("1,250", "250", False),
        ("6 ft 2 in", "2 i", False),
        ("It was late, again.", "late", True),
        ("It was late, again.", "again", True),
        ("anything", "", False),
    ],
)
def test_a_value_holds_words_and_numbers_whole(whole: str, part: str, does: bool) -> None:
    assert holds(whole, part) is does
