"""Function lists: ToolBench's vectors, the mended default, and names that stay apart."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsrv_registry import functions, names
from toolsrv_registry.api import Api, Parameter

VECTORS = json.loads((Path(__file__).parent / "data" / "toolbench_vectors.json").read_text("utf-8"))


def cases(group: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = VECTORS["groups"][group]["cases"]
    return found


def api(
    name: str = "Search",
    tool: str = "T",
    *,
    description: str = "",
    required: tuple[Parameter, ...] = (),
    optional: tuple[Parameter, ...] = (),
    category: str = "Tools",
) -> Api:
    return Api(
        id=f"{category}/{names.standardize(tool)}/{names.api_name(name)}",
        category=category,
        tool=tool,
        name=name,
        description=description,
        required=required,
        optional=optional,
    )


@pytest.mark.parametrize("case", cases("standardize"), ids=lambda c: repr(c["in"]))
def test_a_name_is_standardised_as_toolbench_does(case: dict[str, Any]) -> None:
    assert names.standardize(case["in"]) == case["standardize"]
    assert names.api_name(case["in"]) == case["api_or_param"]


@pytest.mark.parametrize("case", cases("standardize_category"), ids=lambda c: repr(c["in"]))
def test_a_category_is_standardised_as_toolbench_does(case: dict[str, Any]) -> None:
    assert names.standardize_category(case["in"]) == case["out"]


@pytest.mark.parametrize("case", cases("function_name"), ids=lambda c: c["function_name"])
def test_a_function_is_named_as_toolbench_does(case: dict[str, Any]) -> None:
    assert names.function_name(case["api_name"], case["tool_name"]) == case["function_name"]


@pytest.mark.parametrize("case", cases("function_json"), ids=lambda c: c["note"])
def test_a_literal_function_object_equals_toolbenchs(case: dict[str, Any]) -> None:
    raw = case["api"]
    built = Api(
        id="x",
        category="x",
        tool="x",
        name=raw["api_name"],
        description=raw["api_description"],
        required=tuple(Parameter(**p) for p in raw["required_parameters"]),
        optional=tuple(Parameter(**p) for p in raw["optional_parameters"]),
    )
    shown = functions.function_object(built, case["standard_tool_name"], literal=True)
    assert json.dumps(shown) == json.dumps(case["function"])


@pytest.mark.parametrize("case", cases("tool_list_block"))
def test_the_tool_list_equals_toolbenchs(case: dict[str, Any]) -> None:
    pairs = [(tool, text) for tool, text in case["tool_descriptions"]]
    assert functions.tool_list_block(pairs) == case["block"]


@given(st.text())
def test_standard_names_are_stable_and_clean(name: str) -> None:
    once = names.standardize(name)
    assert names.standardize(once) == once
    assert "__" not in once
    assert not once[:1].isdigit()


def test_optional_only_parameters_show_by_default_and_vanish_in_literal_mode() -> None:
    only_optional = api(optional=(Parameter(name="q"),))
    assert list(functions.function_object(only_optional)["parameters"]["properties"]) == ["q"]
    literal = functions.function_object(only_optional, literal=True)["parameters"]
    assert literal == {"type": "object", "properties": {}, "required": [], "optional": []}


def test_the_description_is_left_alone_by_default() -> None:
    one_letter = api("N", "newapi", description="New var")
    assert '"New var"' in functions.function_object(one_letter)["description"]
    blind = functions.function_object(one_letter, literal=True)["description"]
    assert "n_for_newapiew var" in blind


def test_parameters_whose_keys_collide_stay_addressable() -> None:
    twins = api(required=(Parameter(name="array[]"), Parameter(name="array")))
    keys = functions.parameter_keys(twins)
    assert {key: p.name for key, p in keys.items()} == {"array_2": "array[]", "array": "array"}
    assert functions.argument_schema(twins)["required"] == ["array_2", "array"]
    function = functions.FunctionList([twins]).function("search_for_t")
    assert function is not None
    sent = function.original_arguments({"array": 1, "array_2": 2, "other": 3})
    assert sent == {"array": 1, "array[]": 2, "other": 3}


def test_in_literal_mode_the_later_of_two_equal_keys_wins_and_the_name_stays_twice() -> None:
    twins = api(
        required=(Parameter(name="id", description="a"), Parameter(name="ID", description="b"))
    )
    shown = functions.function_object(twins, literal=True)["parameters"]
    assert shown["properties"] == {"is_id": {"type": "string", "description": "b"}}
    assert shown["required"] == ["is_id", "is_id"]
    assert functions.argument_schema(twins, literal=True)["required"] == ["is_id"]


def test_one_wire_name_listed_twice_is_one_parameter() -> None:
    parameter = Parameter(name="id")
    twice = api(required=(parameter,), optional=(parameter,))
    assert list(functions.parameter_keys(twice)) == ["is_id"]
    assert functions.function_object(twice)["parameters"]["optional"] == []


def test_argument_schema_is_closed_typed_and_enumerated() -> None:
    typed = api(
        required=(Parameter(name="lat", type="NUMBER"), Parameter(name="Day", type="DATE (YYYY)")),
        optional=(
            Parameter(name="on", type="boolean"),
            Parameter(name="unit", enum=("C", "F")),
            Parameter(name="n", type="NUMBER", enum=("1", "2.5")),
            Parameter(name="bad", type="NUMBER", enum=("1", "inf")),
        ),
    )
    assert functions.argument_schema(typed) == {
        "type": "object",
        "properties": {
            "lat": {"type": ["number", "string"], "pattern": functions.CODE},
            "day": {"type": "string"},
            "on": {"type": "boolean"},
            "unit": {"type": "string", "enum": ["C", "F"]},
            "n": {"type": "number", "enum": [1, 2.5]},
            "bad": {"type": "number"},
        },
        "required": ["lat", "day"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize("text", ["02134", "1,2,4", "12%", "+49 30 1234", "1-2", "12:30"])
def test_digits_that_are_no_number_can_be_written_for_toolbenchs_number(text: str) -> None:
    assert re.fullmatch(functions.CODE, text)
    assert not re.fullmatch(functions.CODE, "twelve")


@pytest.mark.parametrize(
    ("schema", "shown"),
    [
        ({"type": "integer"}, {"type": "integer"}),
        ({"type": ["number", "null"]}, {"type": "number"}),
        ({"type": "array", "items": {"type": "string"}}, None),
        ({}, {"type": "string"}),
        ({"type": "object", "properties": {"a": {}}, "required": ["a"]}, None),
        (
            {
                "properties": {
                    "a": {"anyOf": [{"type": "null"}, {"type": "string", "maxLength": 2}]}
                }
            },
            {"type": "object", "properties": {"a": {"type": "string"}}, "required": []},
        ),
        ({"enum": ["a"]}, {"type": "string", "enum": ["a"]}),
        ({"description": "One", "default": 5, "type": "array"}, {"type": "array"}),
    ],
)
def test_what_a_model_writes_follows_the_schema_of_a_document(
    schema: dict[str, Any], shown: dict[str, Any] | None
) -> None:
    held = api(required=(Parameter(name="n", json_schema=schema),))
    shown = schema if shown is None else shown
    assert functions.argument_schema(held)["properties"]["n"] == shown
    assert functions.function_object(held)["parameters"]["properties"]["n"]["type"] == shown["type"]


def test_finish_comes_last_and_can_be_replaced() -> None:
    offered = functions.FunctionList([api()])
    assert [entry["name"] for entry in offered.to_json()] == ["search_for_t", "Finish"]
    assert offered.to_json(finish={"name": "Finish", "x": 1})[-1] == {"name": "Finish", "x": 1}
    assert offered.lookup("Finish") is None


def test_apis_whose_cut_names_collide_all_stay_callable() -> None:
    tool = "168predict VIP Football Predictions"
    days = [api(f"{day} Sure VIP Over 1.5 Goals", tool) for day in ("Yesterday", "Today")]
    offered = functions.FunctionList(days)
    first, second = offered.names
    assert first == names.function_name(days[0].name, tool)
    assert second.startswith("today_sure_vip_over")
    assert [offered.lookup(name) for name in offered.names] == days


def test_an_undisputed_name_is_never_given_away_to_a_collision() -> None:
    same = [api("a", "t"), api("a", "t", category="Other"), api("a", "t 2")]
    offered = functions.FunctionList(same)
    assert offered.names == ("a_for_t", "a_for_t_3", "a_for_t_2")


def test_an_api_listed_twice_is_offered_once() -> None:
    assert len(functions.FunctionList([api(), api()])) == 1


@given(st.lists(st.tuples(st.text(max_size=90), st.text(max_size=40)), max_size=12))
def test_names_are_unique_short_and_complete_for_any_apis(pairs: list[tuple[str, str]]) -> None:
    apis = [api(name, tool, category=f"C{number}") for number, (name, tool) in enumerate(pairs)]
    offered = functions.FunctionList(apis)
    assert [offered.lookup(name) for name in offered.names] == apis
    assert all(len(name) <= names.FUNCTION_NAME_LIMIT for name in offered.names)
    assert functions.FunctionList(apis).names == offered.names


@given(st.lists(st.text(max_size=20), max_size=8), st.booleans())
def test_schema_and_function_object_speak_of_the_same_keys(raw: list[str], literal: bool) -> None:
    built = api(required=tuple(Parameter(name=name) for name in raw))
    schema = functions.argument_schema(built, literal=literal)
    shown = functions.function_object(built, literal=literal)["parameters"]
    assert list(schema["properties"]) == list(shown["properties"])
    assert set(schema["required"]) == set(shown["required"])
    assert set(functions.parameter_keys(built, literal=literal)) == set(schema["properties"])
