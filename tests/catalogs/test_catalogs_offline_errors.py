"""What the offline application says when a request is off."""

from __future__ import annotations

import pytest

from toolsrv_catalogs.offline.testing import OfflineClient


def test_a_missing_parameter_is_named(offline: OfflineClient) -> None:
    message = offline.error(422, "/city_finder/distance", from_city="Paris")
    assert "'to_city'" in message


def test_an_empty_parameter_counts_as_missing(offline: OfflineClient) -> None:
    assert "'date'" in offline.error(422, "/date_calculator/weekday", date="  ")


def test_an_empty_optional_parameter_counts_as_left_out(offline: OfflineClient) -> None:
    assert offline.answer("/city_finder/city", city="Oslo", country="")["country"] == "Norway"


def test_an_unknown_parameter_is_named_with_a_suggestion(offline: OfflineClient) -> None:
    message = offline.error(422, "/date_calculator/weekday", dates="2026-01-01")
    assert "'dates'" in message
    assert "'date'" in message


def test_a_parameter_given_twice_is_refused(offline: OfflineClient) -> None:
    params = [("date", "2026-01-01"), ("date", "2026-01-02")]
    response = offline.request("GET", "/date_calculator/weekday", params)
    assert response.status_code == 422


def test_a_parameter_of_the_path_cannot_be_given_again(offline: OfflineClient) -> None:
    assert "'country'" in offline.error(422, "/country_facts/Norway/capital", country="Sweden")


@pytest.mark.parametrize(
    ("path", "parameter", "value", "others"),
    [
        ("/date_calculator/weekday", "date", "03/05/2026", {}),
        ("/unit_converter/convert", "amount", "many", {"from_unit": "km", "to_unit": "mi"}),
        ("/unit_converter/convert", "to_unit", "kg", {"amount": "1", "from_unit": "km"}),
        ("/text_case_studio/case", "case", "wobbly", {"text": "a"}),
        ("/world_clock/convert_time", "time", "soon", {"from_zone": "CET", "to_zone": "UTC"}),
        ("/math_desk/calculate", "expression", "__import__('os')", {}),
        ("/math_desk/factors", "number", "9" * 400, {}),
        ("/math_desk/roman/decode", "roman", "IIII", {}),
        ("/ip_toolkit/network", "network", "300.0.0.0/8", {}),
        ("/ip_toolkit/split", "prefix", "8", {"network": "10.0.0.0/16"}),
        ("/chemistry_bench/molar_mass", "formula", "Xx9", {}),
        ("/chemistry_bench/molar_mass", "formula", "heavy", {}),
        ("/codec_box/base64/decode", "encoded", "%%%", {}),
        ("/codec_box/hex/decode", "encoded", "ff", {}),
        ("/public_holidays/check", "date", "2999-01-01", {"country": "Norway"}),
        ("/public_holidays/working_days", "end", "2020-01-01", {"start": "2021-01-01"}),
        ("/date_calculator/add", "amount", "99999999", {"date": "2026-01-01"}),
        ("/music_theory/chord", "root", "H", {}),
        ("/game_table/dice", "dice", "999d9999", {}),
        ("/body_metrics/bmi", "height", "9 km", {"weight": "70"}),
        ("/airport_guide/code/Oslo1", "code", "", {}),
        ("/book_numbers/isbn/convert", "isbn_number", "123", {}),
    ],
)
def test_a_malformed_value_is_refused_by_name(
    offline: OfflineClient, path: str, parameter: str, value: str, others: dict[str, str]
) -> None:
    given = {parameter: value, **others} if value else others
    assert f"'{parameter}'" in offline.error(422, path, **given)


@pytest.mark.parametrize(
    ("path", "named", "params"),
    [
        ("/world_clock/current_time", "Xyzzyville", {"city": "Xyzzyville"}),
        ("/world_clock/current_time", "New Delhi", {"city": "India"}),
        ("/city_finder/city", "','", {"city": ","}),
        ("/city_finder/city", "'-'", {"city": " - "}),
        ("/sun_and_moon/day_length", "', France'", {"city": ", France"}),
        ("/country_facts/Narnia/capital", "Narnia", {}),
        ("/airport_guide/code/QQQ", "QQQ", {}),
        ("/chemistry_bench/element/unobtainium", "unobtainium", {}),
        ("/color_lab/hex", "blurple-ish", {"color": "blurple-ish"}),
        ("/currency_facts/info", "doubloon", {"currency": "doubloon"}),
        ("/world_words/language", "Dothraki!", {"language": "Dothraki!"}),
        ("/kitchen_helper/ingredient_weight", "gravel", {"ingredient": "gravel", "amount": "1"}),
        ("/public_holidays/find", "Towel Day", {"country": "Norway", "holiday": "Towel Day"}),
        ("/unit_converter/describe", "blorp", {"unit": "blorp"}),
    ],
)
def test_a_name_of_nothing_is_not_found_by_name(
    offline: OfflineClient, path: str, named: str, params: dict[str, str]
) -> None:
    assert named in offline.error(404, path, **params)


@pytest.mark.parametrize(
    "path", ["/", "/nothing", "/math_desk", "/math_desk/", "/math_desk/prime/7/", "/a%00b/%2e%2e"]
)
def test_an_unknown_path_is_not_found_in_json(offline: OfflineClient, path: str) -> None:
    offline.error(404, path)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_other_methods_are_refused_in_json(offline: OfflineClient, method: str) -> None:
    response = offline.request(method, "/date_calculator/weekday")
    assert response.status_code == 405
    assert response.json()["error"]


def test_an_error_quotes_hostile_text_escaped_and_cut(offline: OfflineClient) -> None:
    message = offline.error(404, "/world_clock/current_time", city="\u202e\x1b[31m" + "A" * 3000)
    assert len(message) < 300
    assert message.isprintable()
