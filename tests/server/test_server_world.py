"""The world speaks ToolBench's and StableToolBench's wire, and has none of their defects."""

from __future__ import annotations

import json
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from toolsrv.api_server.protocol import RAPIDAPI_FIELDS, read_request
from toolsrv_catalogs.offline import load_offline_catalog
from toolsrv_runtime.calls.caller import default_caller

HERE = Path(__file__).parent
HELPERS = runpy.run_path(str(HERE / "world_server.py"))
TOKEN: str = HELPERS["TOKEN"]
VECTORS = json.loads((HERE.parent / "runtime/data/call_vectors.json").read_text(encoding="utf-8"))
ERRORS = VECTORS["groups"]["process_error"]["cases"]
NAMES = {f"case_{number}": case["api_returned"] for number, case in enumerate(ERRORS)}
OTHERS: dict[str, Any] = {
    "long": "x" * 5000,
    "deep": {"a": {"b": [1, None, True, "é"]}},
    "wide": {"x": 1, "y": 2},
    "list": [{"x": 1, "y": 2}],
}


@pytest.fixture(scope="module")
def values() -> Iterator[str]:
    """A world whose APIs answer with the values of the vectors."""
    caller = HELPERS["values_caller"]({**NAMES, **OTHERS}, schema={"a": {"b": "list"}, "x": "int"})
    apis = HELPERS["value_apis"](*NAMES, *OTHERS)
    with HELPERS["world_of"](apis, caller) as (where, _):
        yield where


@pytest.fixture(scope="module")
def offline() -> Iterator[str]:
    """A world of the catalog that ships."""
    apis = {api.id: api for api in load_offline_catalog().apis}
    with HELPERS["world_of"](apis, default_caller()) as (where, _):
        yield where


def body(api: str, arguments: Any = "{}", **others: Any) -> dict[str, Any]:
    """Return what ToolBench's client sends (vectors ``service_request``)."""
    return {
        "category": "Data",
        "tool_name": "values",
        "api_name": api,
        "tool_input": arguments,
        "strip": "truncate",
        "toolbench_key": TOKEN,
        **others,
    }


def ask(where: str, asked: Any, path: str = "/virtual", **headers: str) -> httpx.Response:
    return httpx.post(where + path, json=asked, headers=headers, timeout=60)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("path", ["/rapidapi", "/virtual"])
def test_an_error_has_the_references_label(values: str, name: str, path: str) -> None:
    case = ERRORS[int(name.removeprefix("case_"))]
    said = ask(values, body(name), path)
    assert said.status_code == 200
    assert said.json() == {"error": case["error"], "response": str(case["api_returned"])}


def test_a_response_is_the_text_of_the_value_cut_to_its_limit(values: str) -> None:
    assert ask(values, body("deep")).json()["response"] == "{'a': {'b': [1, None, True, 'é']}}"
    assert ask(values, body("long")).json() == {"error": "", "response": "x" * 2048}


def test_a_response_is_stripped_as_asked(values: str) -> None:
    def said(strip: str, api: str = "wide", arguments: str = "{}") -> str:
        text: str = ask(values, body(api, arguments, strip=strip)).json()["response"]
        return text

    whole, kept = "{'x': 1, 'y': 2}", "{'x': 1}"
    assert [said(one) for one in ("truncate", "filter", "", "unknown")] == [
        whole, kept, whole, whole,
    ]  # fmt: skip
    assert said("filter", "list") == f"[{whole}]"
    noted = [f'{{"note": "{number}"}}' for number in range(16)]
    assert {said("random", "wide", one) for one in noted} == {whole, kept}
    assert len({said("random") for _ in range(4)}) == 1


def test_half_a_surrogate_pair_is_a_name_like_any_other(values: str) -> None:
    sent = json.dumps(body("long", category="\ud800"))
    assert httpx.post(f"{values}/virtual", content=sent, timeout=60).status_code == 404


def test_the_request_of_the_vectors_names_one_api() -> None:
    # vectors service_request
    sent = {
        "category": "Commerce",
        "tool_name": "aliexpress_true_api",
        "api_name": "hot_products",
        "tool_input": '{"page": 1}',
        "strip": "truncate",
        "toolbench_key": "KEY",
    }
    request = read_request(sent, RAPIDAPI_FIELDS)
    assert request.api_ids() == ("Commerce/aliexpress_true_api/hot_products",)
    assert request.tool_input == '{"page": 1}'


def ids(category: str, tool: str, api: str) -> tuple[str, ...]:
    sent = {"category": category, "tool_name": tool, "api_name": api, "tool_input": ""}
    return read_request(sent, RAPIDAPI_FIELDS).api_ids()


def test_names_are_standardised_and_suffixes_of_the_virtual_server_are_understood() -> None:
    assert ids("Sports", "168predict VIP", "x") == ("Sports/get_168predict_vip/x",)
    assert ids("News, Media", "A", "id") == ("News_Media/a/is_id",)
    found = ids("Weather", "weather_api_for_Weather", "forecast_for_weather_api")
    assert found[0] == "Weather/weather_api_for_weather/forecast_for_weather_api"
    assert "Weather/weather_api/forecast" in found
    assert ids("Data", "usa_jobs_for_it", "full_stack_jobs")[0] == (
        "Data/usa_jobs_for_it/full_stack_jobs"
    )


@pytest.mark.parametrize("name", ["../../etc/passwd", "__import__('os')", "x;y", "a\x00b", "é" * 9])
@pytest.mark.parametrize("field", ["category", "tool_name", "api_name"])
def test_a_name_is_looked_up_and_nothing_else(values: str, field: str, name: str) -> None:
    said = ask(values, body("long", **{field: name}))
    assert said.status_code == 404
    assert set(said.json()) == {"error", "response"}
    assert "Traceback" not in said.text


def test_arguments_are_text_or_an_object_and_never_source(offline: str) -> None:
    asked = {
        "category": "Location",
        "tool_name": "world_clock_for_Location",
        "api_name": "time_difference",
    }
    cities = {"from_city": "London", "to_city": "Sydney", "date": "2026-01-05"}
    for given in (cities, json.dumps(cities)):
        said = ask(offline, body("", given, **asked))
        assert said.json()["error"] == ""
        assert "'hours_difference': 11.0" in said.json()["response"]
        assert said.headers["x-toolsrv-source"] == "offline"
    quoted = {**cities, "from_city": 'London"); __import__("os")._exit(1); ("'}
    said = ask(offline, body("", quoted, **asked))
    assert said.status_code == 200
    assert said.headers["x-toolsrv-kind"] != "ok"


def test_wrong_arguments_are_told_by_name(offline: str) -> None:
    asked = {"category": "Location", "tool_name": "World Clock", "api_name": "Time Difference"}
    said = ask(offline, body("", {"wrong": 1}, **asked)).json()
    assert "'wrong'" in said["error"]
    assert "from_city" in said["error"]
    assert said["response"] == ""


@pytest.mark.parametrize("given", ["{", "[]", "3", '{"a": ' * 5000, "1" * 6000])
def test_arguments_that_are_no_object_have_the_references_error(values: str, given: str) -> None:
    said = ask(values, body("long", given))
    assert said.status_code == 200
    assert said.json() == {"error": "Tool input parse error...\n", "response": ""}


def test_no_arguments_are_an_empty_text(values: str) -> None:
    assert ask(values, body("deep", "")).json()["error"] == ""


def test_the_virtual_server_demands_every_field_and_the_other_those_it_needs(values: str) -> None:
    whole = body("deep")
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    for name in whole:
        asked = {key: value for key, value in whole.items() if key != name}
        said = ask(values, asked, **bearer)
        assert (said.status_code, name in said.json()["error"]) == (422, True)
        said = ask(values, asked, "/rapidapi", **bearer)
        assert said.status_code == (200 if name in {"strip", "toolbench_key"} else 422)
    said = ask(values, {**whole, "api_name": ["deep"]})
    assert (said.status_code, "api_name" in said.json()["error"]) == (422, True)


def test_the_token_is_taken_from_any_place_where_research_code_puts_it(values: str) -> None:
    without = body("deep", toolbench_key="")
    assert ask(values, without, Authorization=f"Bearer {TOKEN}").status_code == 200
    assert ask(values, without, Authorization=f"bearer {TOKEN}").status_code == 200
    assert ask(values, without, toolbench_key=TOKEN).status_code == 200
    assert ask(values, body("deep")).status_code == 200


def test_without_the_token_there_is_nothing(values: str) -> None:
    wrong = TOKEN[:-1] + "x"
    refused = [
        ask(values, body("deep", toolbench_key="")),
        ask(values, body("deep", toolbench_key=wrong)),
        ask(values, body("deep", toolbench_key=[TOKEN])),
        httpx.post(f"{values}/virtual", content=json.dumps(body("deep", toolbench_key="é\ud800"))),
        ask(values, body("deep"), Authorization=f"Bearer {wrong}"),
        ask(values, body("deep"), Authorization=f"Basic {TOKEN}"),
        ask(values, body("deep"), toolbench_key=wrong),
        ask(values, body("no such API", toolbench_key=wrong)),
    ]
    for said in refused:
        assert said.status_code == 401
        assert said.headers["www-authenticate"].startswith("Bearer")
        assert wrong not in said.text
        assert TOKEN not in said.text


def test_a_web_page_of_another_place_is_not_answered(values: str) -> None:
    assert ask(values, body("deep"), Host="evil.example").status_code == 421
    assert ask(values, body("deep"), Host="[").status_code in {400, 421}
    assert ask(values, body("deep"), Origin="http://evil.example").status_code == 403
    assert ask(values, body("deep"), Origin="null").status_code == 403
    assert ask(values, body("deep"), Origin=values).status_code == 200


@pytest.mark.parametrize("sent", [b"", b"{", b"[]", b"\xff\xfe", b"[" * 100_000, b'"text"'])
def test_a_body_that_is_no_object_is_refused_in_the_same_shape(values: str, sent: bytes) -> None:
    said = httpx.post(f"{values}/virtual", content=sent, timeout=60)
    assert said.status_code == 422
    assert set(said.json()) == {"error", "response"}


def test_other_paths_and_methods_are_refused_in_the_same_shape(values: str) -> None:
    for said in (
        httpx.get(f"{values}/virtual"),
        httpx.get(f"{values}/"),
        httpx.post(f"{values}/rapidapi/../virtual/x"),
        httpx.post(f"{values}/%2e%2e/etc"),
    ):
        assert said.status_code in {404, 405}
        assert set(said.json()) == {"error", "response"}


def test_an_error_of_ours_is_told_without_its_inside() -> None:
    apis = HELPERS["value_apis"]("missing")
    with HELPERS["world_of"](apis, HELPERS["values_caller"]({})) as (where, _):
        said = ask(where, body("missing"))
    assert "Traceback" not in said.text
    assert "KeyError" not in said.text
    assert ".py" not in said.text
