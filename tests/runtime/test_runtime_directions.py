"""Which of two scales is from and which is to, and which way a list goes, by the words alone."""

from __future__ import annotations

import pytest

from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_runtime.planner.reading.directions import straight, told, turned
from toolsrv_runtime.planner.reading.wish import Wish

APIS = {api.id.rpartition("/")[2]: api for api in load_offline_catalog().apis}
TEMPERATURE = APIS["convert_temperature"]
TWICE = (
    "I'm in Lima, she is in Oslo. When it's 3 pm here, what is it for her? "
    "And when it's 3 pm there, what is it for me?"
)


@pytest.mark.parametrize(
    ("text", "first", "second"),
    [
        ("350 fahrenheit to celsius", "fahrenheit", "celsius"),
        ("What is -40° Celsius in Fahrenheit?", "celsius", "fahrenheit"),
        ("how many degrees fahrenheit are 30 degrees celsius", "celsius", "fahrenheit"),
        ("to kelvin from celsius, please", "celsius", "kelvin"),
        ("in kelvin, what's 12 fahrenheit", "fahrenheit", "kelvin"),
        ("set to sixty-eight, Fahrenheit obviously; in Celsius?", "fahrenheit", "celsius"),
        ("celsius or fahrenheit", "", ""),
        ("30 celsius", "", ""),
        ("30 celsius and 40 celsius", "", ""),
        ("30 celsius and 40 fahrenheit", "", ""),
        ("20 celsius in fahrenheit and 100 fahrenheit in celsius", "", ""),
    ],
)
def test_what_stands_behind_the_number_is_what_is_converted(
    text: str, first: str, second: str
) -> None:
    by_name = {one.name: one for one in TEMPERATURE.parameters}
    assert told(by_name["from_scale"], TEMPERATURE, Wish(text, "", text)) == first
    assert told(by_name["to_scale"], TEMPERATURE, Wish(text, "", text)) == second


def test_parameters_without_a_direction_have_the_scale_of_the_number_or_none() -> None:
    text = "30 celsius to fahrenheit"
    for api in APIS.values():
        for parameter in api.parameters:
            if not parameter.name.startswith(("from", "to")):
                scale = "celsius" if "celsius" in parameter.enum else ""
                assert told(parameter, api, Wish(text, "", text)) == scale


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("put these in ABC order: zagreb, oslo", "ascending"),
        ("sort pear, fig, lime alphabetically", "ascending"),
        ("the words from Z to A please", "descending"),
        ("sort them in reverse", "descending"),
        ("sort pear, fig, lime", ""),
        ("alphabetically, but backwards", "descending"),
        ("in alphabetical order, starting from the Z end", "descending"),
        ("shortest first, or backwards", ""),
    ],
)
def test_up_and_down_are_read_from_how_people_put_them(text: str, order: str) -> None:
    sort = APIS["sort_words"]
    (parameter,) = (one for one in sort.parameters if one.enum)
    assert told(parameter, sort, Wish(text, "", text)) == order


@pytest.mark.parametrize(
    ("part", "task", "value"),
    [
        ('Decode "Khoor"', 'Decode "Khoor" with a Caesar cipher, shift 3', "-3"),
        ('"Khoor"', 'Letters pushed three places forward: "Khoor". Crack it!', "-3"),
        ('Encrypt "Hello"', 'Encrypt "Hello" with shift 3', "3"),
        ('Encrypt "Hello"', 'Encrypt "Hello" and decode "Khoor" with shift 3', "3"),
        ('decode "Khoor"', 'Encrypt "Hello" and decode "Khoor" with shift 3', "-3"),
    ],
)
def test_what_undoes_by_the_document_is_below_zero(part: str, task: str, value: str) -> None:
    (shift,) = APIS["caesar_cipher"].optional
    assert turned(shift, "3", part, task) == value
    assert turned(shift, "-3", part, task) == "-3"
    (text,) = APIS["caesar_cipher"].required
    assert turned(text, "3", part, task) == "3"


@pytest.mark.parametrize(
    ("text", "first", "second"),
    [
        ("how many millilitres go into 12 fluid ounces?", "fluid ounces", "millilitres"),
        ("12 fluid ounces in millilitres", "fluid ounces", "millilitres"),
        ("12 millilitres, 12 fluid ounces", "millilitres", "fluid ounces"),
        ("a dozen millilitres in fluid ounces", "millilitres", "fluid ounces"),
        ("112 fluid ounces", "millilitres", "fluid ounces"),
        ("How many millilitres are in a fluid ounces jug?", "fluid ounces", "millilitres"),
        ("a couple of fluid ounces in millilitres", "fluid ounces", "millilitres"),
        ("12 millilitres to a fluid ounces scale", "millilitres", "fluid ounces"),
        ("extra fluid ounces", "millilitres", "fluid ounces"),
    ],
)
def test_the_unit_behind_the_number_is_the_one_to_convert(
    text: str, first: str, second: str
) -> None:
    made = {"amount": "12", "from_unit": "millilitres", "to_unit": "fluid ounces"}
    assert straight(made, text) == {"amount": "12", "from_unit": first, "to_unit": second}
    cities = {"from_city": "Oslo", "to_city": "Bergen"}
    assert straight(cities, "Bergen, Oslo 12") == cities


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("How much later is it in Oslo than in Lima?", "Lima"),
        ("What time is it in Oslo when it is 3 pm in Lima?", "Lima"),
        ("when it's noon over in Lima, how late is it in Oslo", "Lima"),
        ("Madrid at 15:00 Lima time, then Oslo", "Lima"),
        ("How many hours is Oslo ahead of Lima?", "Lima"),
        ("How far ahead of Oslo is Lima?", "Oslo"),
        ("at 3 pm in Oslo it is later than in Lima", "Oslo"),
        ("the hours between Oslo and Lima", "Oslo"),
        ("from 3 in Lima to Oslo", "Oslo"),
    ],
)
def test_a_place_behind_a_time_or_a_comparison_is_where_it_is_told(text: str, first: str) -> None:
    second = "Lima" if first == "Oslo" else "Oslo"
    made = {"time": "3 pm", "from_zone": "Oslo", "to_zone": "Lima"}
    assert straight(made, text) == {"time": "3 pm", "from_zone": first, "to_zone": second}


@pytest.mark.parametrize(
    ("text", "part", "first"),
    [
        ("I'm in Lima, she is in Oslo. When it's 3 pm here, what time is it for her?", "", "Lima"),
        ("I'm in Oslo, she is in Lima. At 3 pm her time, what will my clock say?", "", "Lima"),
        ("I'm in Oslo, she is in Lima. At 3 pm my time, what does her watch show?", "", "Oslo"),
        # A place behind a time is sure; so is a route.
        ("I'm in Lima, she is in Oslo. What is 3 pm in Oslo for me?", "", "Oslo"),
        ("I live in Lima. From Oslo to Lima, please: she rings at 3 pm my time", "", "Oslo"),
        # Neither says whose, or both are of one side.
        ("When it's 3 pm here, what time is it there: Oslo, Lima", "", "Oslo"),
        ("I'm in Lima, I live in Oslo. It's 3 pm here", "", "Oslo"),
        # Asked twice, in both ways: by the sentence of the part.
        (TWICE, "what is it for her", "Lima"),
        (TWICE, "what is it for me", "Oslo"),
        (TWICE, "", "Oslo"),
    ],
)
def test_whose_the_places_are_tells_from_which_to_which(text: str, part: str, first: str) -> None:
    second = "Lima" if first == "Oslo" else "Oslo"
    made = {"time": "3 pm", "from_zone": "Oslo", "to_zone": "Lima"}
    assert straight(made, text, part) == {"time": "3 pm", "from_zone": first, "to_zone": second}


@pytest.mark.parametrize("keys", [("from", "to"), ("from_airport", "to_airport")])
def test_any_pair_of_from_and_to_is_told_by_whose_it_is(keys: tuple[str, str]) -> None:
    text = "We are in Lima, our aunt is in Oslo. How far away is she from us?"
    made = dict(zip(keys, ("Oslo", "Lima"), strict=True))
    assert straight(made, text) == dict(zip(keys, ("Lima", "Oslo"), strict=True))
    others = dict(zip(("first", "second"), ("Oslo", "Lima"), strict=True))
    assert straight(others, text) == others


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("take B flat down by five semitones", "-5"),
        ("what is 5 semitones lower than A", "-5"),
        ("take B flat up by five semitones", "5"),
        ("five semitones from B flat", "5"),
    ],
)
def test_what_goes_down_by_the_document_is_below_zero(part: str, value: str) -> None:
    semitones = next(one for one in APIS["transpose_note"].parameters if one.name == "semitones")
    assert turned(semitones, "5", part, part) == value
    assert turned(semitones, "-5", part, part) == "-5"
    (year,) = APIS["leap_year"].required
    assert turned(year, "5", part, part) == "5"


def test_a_part_is_read_with_its_sentence_and_the_task() -> None:
    sort = APIS["sort_words"]
    (order,) = (one for one in sort.parameters if one.enum)
    part = "put them in alphabetical order"
    assert told(
        order, sort, Wish(part, "", f"Quito, Lagos: {part}, but starting from the Z end")
    ) == ("descending")
    assert told(order, sort, Wish(part, "", f"Quito, Lagos: {part}. Then z to a.")) == "ascending"
    scale = next(one for one in TEMPERATURE.parameters if one.name == "from_scale")
    task = "It is set to 68, Fahrenheit. What do I set where it is all Celsius?"
    assert (
        told(scale, TEMPERATURE, Wish("What do I set where it is all Celsius", "", task))
        == "fahrenheit"
    )
