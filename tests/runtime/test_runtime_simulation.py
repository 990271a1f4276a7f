"""Simulated calls: nothing is sent, every result says so, and the same call gives the same."""

from __future__ import annotations

import asyncio
import json
import random
import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsrv_registry.api import Api, Parameter, SecurityScheme
from toolsrv_runtime.calls import simulation
from toolsrv_runtime.calls.caller import ApiOrigin, Caller, CallResult, Network
from toolsrv_runtime.calls.compress import filter_by_schema
from toolsrv_runtime.calls.simulation import (
    ModelSimulator,
    SchemaSimulator,
    SilentCaller,
    SimulatingCaller,
    Simulator,
    generate_response,
)
from toolsrv_runtime.calls.transports import offline_transports
from toolsrv_runtime.contract.models import (
    ChatModel,
    ChatRequest,
    Engine,
    SystemMessage,
    UserMessage,
)
from toolsrv_runtime.engine.scripted import ScriptedEngine
from toolsrv_runtime.models.openai import messages
from toolsrv_runtime.models.scripted import ScriptedChat
from toolsrv_runtime.profiles import Profile
from toolsrv_runtime.stop import Stop

GROUPS = json.loads((Path(__file__).parent / "data" / "response_vectors.json").read_text("utf-8"))[
    "groups"
]
PROFILE = Profile(name="toolllama-2", format="toolllama", context=8192)
COMPACT = Profile(name="compact", format="compact", context=2048)
FORECAST = Api(
    id="Weather/sky/forecast",
    category="Weather",
    tool="Sky",
    name="Forecast",
    description="The weather to come.",
    url="https://sky.p.rapidapi.com/forecast",
    required=(Parameter(name="city"),),
    optional=(Parameter(name="days", type="NUMBER", default="3"),),
)
SCHEMA = {
    "city": "str",
    "sunny": "bool",
    "days": [{"date": "str", "max": "float", "_list_length": 4}],
    "alerts": "empty list",
    "codes": ["list of int with length 2"],
    "note": "NoneType",
}


def call(
    simulator: Simulator, *, schema: Any = None, api: Api = FORECAST, **given: Any
) -> CallResult:
    async def made() -> CallResult:
        inner = SilentCaller(
            transports=offline_transports(), home=lambda _: ApiOrigin(schema=schema)
        )
        async with SimulatingCaller(inner, simulator) as caller:
            assert caller.can_call(api)
            return await caller.call(api, given or {"city": "Lima"})

    return asyncio.run(made())


def test_a_simulated_response_has_the_shape_of_the_schema_and_says_what_it_is() -> None:
    result = call(SchemaSimulator(), schema=SCHEMA)
    assert (result.source, result.kind, result.status, result.ok) == ("simulated", "ok", 200, True)
    said = result.response
    assert list(said) == list(SCHEMA)
    assert said["city"] == "Lima"
    assert isinstance(said["sunny"], bool)
    assert [list(day) for day in said["days"]] == [["date", "max"]] * 4
    assert (said["alerts"], said["note"], len(said["codes"])) == ([], None, 2)
    assert 0 <= result.seconds < 300


def test_a_seed_gives_the_same_response_to_the_same_call_only() -> None:
    one = call(SchemaSimulator(1), schema=SCHEMA).response
    assert call(SchemaSimulator(1), schema=SCHEMA).response == one
    assert call(SchemaSimulator(2), schema=SCHEMA).response != one
    assert call(SchemaSimulator(1), schema=SCHEMA, city="Cusco").response != one


def test_an_api_needs_no_key_to_be_simulated() -> None:
    scheme = SecurityScheme(name="k", kind="apiKey", place="header", key="X-Key")
    locked = FORECAST.model_copy(update={"url": "https://sky.test/x", "security": ((scheme,),)})
    real = Caller(
        transports={}, network=Network(transport=httpx.MockTransport(lambda _: httpx.Response(500)))
    )
    caller = SimulatingCaller(real, SchemaSimulator())
    assert (real.ready(locked).key, real.lacks(locked) != "") == ("missing", True)
    assert (caller.ready(locked).key, caller.ready(locked).lacks) == ("", "")
    assert caller.lacks(locked) == ""
    got = call(SchemaSimulator(), api=locked)
    assert (got.ok, got.source) == (True, "simulated")


def test_the_order_of_arguments_is_no_other_call() -> None:
    one, other = (
        SchemaSimulator().answer(FORECAST, given, SCHEMA, Stop())
        for given in ({"city": "Lima", "days": 2}, {"days": 2, "city": "Lima"})
    )
    assert one == other


@pytest.mark.parametrize(
    ("key", "form"),
    [
        ("homepage_url", r"https://example\.com/\w+/\d+"),
        ("permalink", r"https://example\.com/\w+/\d+"),
        ("E-Mail", r"\w+@example\.com"),
        ("birthdate", r"\d{4}-\d{2}-\d{2}"),
        ("departure_time", r"\d{4}-\d{2}-\d{2}"),
        ("created_at", r"\d{4}-\d{2}-\d{2}"),
        ("id", r"[a-z]+-\d+"),
        ("userId_id", r"[a-z]+-\d+"),
        ("flat", r"[a-z]+ [a-z]+"),
        ("idea", r"[a-z]+ [a-z]+"),
    ],
)
def test_a_text_has_the_form_that_its_key_speaks_for(key: str, form: str) -> None:
    for seed in range(5):
        made = generate_response({key: "str"}, {}, random.Random(seed))[key]
        assert re.fullmatch(form, made)


def test_without_a_schema_the_known_fields_come_back() -> None:
    response = call(SchemaSimulator()).response
    assert response["city"] == "Lima"
    assert isinstance(response["result"], str)


def test_what_is_served_here_is_not_simulated(apis: dict[str, Api]) -> None:
    capital = apis["Data/country_facts/capital_city"]
    result = call(SchemaSimulator(), api=capital, country="Peru")
    assert (result.source, result.response["capital"]) == ("offline", "Lima")


@pytest.mark.parametrize(
    ("api", "given", "kind"),
    [
        (FORECAST, {"days": 2}, "bad_arguments"),
        (FORECAST.model_copy(update={"method": "POST"}), {"city": "Lima"}, "needs_consent"),
    ],
)
def test_arguments_and_policy_are_judged_as_for_a_real_call(
    api: Api, given: dict[str, Any], kind: str
) -> None:
    async def made() -> CallResult:
        async with SimulatingCaller(SilentCaller(transports={}), SchemaSimulator()) as caller:
            return await caller.call(api, given)

    result = asyncio.run(made())
    assert (result.ok, result.response) == (False, None)
    assert result.kind in (kind, "blocked_by_policy")


@given(
    st.recursive(
        st.sampled_from(["str", "int", "float", "bool", "NoneType", "empty list", "?"]) | st.none(),
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=6), inner),
        max_leaves=12,
    ),
    st.integers(),
)
def test_any_schema_gives_json_that_the_schema_names(schema: Any, seed: int) -> None:
    made = generate_response(schema, {}, random.Random(seed))
    assert json.loads(json.dumps(made)) == made
    if isinstance(made, dict):
        assert filter_by_schema(made, schema).keys() == made.keys()


def test_a_schema_without_end_is_followed_some_levels_down() -> None:
    schema: Any = "str"
    for _ in range(400):
        schema = [schema] if isinstance(schema, dict) else {"a": schema}
    made, levels = generate_response(schema, {}, random.Random(1)), 0
    while made is not None:
        made = made[0] if isinstance(made, list) else made["a"]
        levels += 1
    assert 20 < levels < 50


def test_mirrorapi_is_asked_as_its_checkpoints_were_trained() -> None:
    for case in GROUPS["mirrorapi_user_message"]["cases"]:
        assert simulation.mirror_prompt(case["doc"], case["tool_input"]) == case["user_message"]
    asked = simulation.mirror_prompt({}, {"city": "Lima", "toolbench_key": "secret"})
    assert asked == "API doc:\n{}\n\nRequest:\n{'city': 'Lima'}"


def test_an_api_is_told_to_mirrorapi_with_its_keys_in_order() -> None:
    doc = simulation.mirror_document(FORECAST)
    assert list(doc) == [
        "api_name", "api_description", "required_parameters", "optional_parameters",
        "tool_description", "tool_name", "tool_category",
    ]  # fmt: skip
    assert doc["api_name"] == "Forecast"
    assert simulation.mirror_document(FORECAST, normalised=True)["api_name"] == "forecast"
    assert list(doc["optional_parameters"][0]) == ["name", "type", "description", "default"]


def test_mirrorapi_replies_are_read_as_the_reference_reads_them() -> None:
    for case in GROUPS["mirrorapi_parse"]["cases"]:
        expected = (case["error"], case["response"])
        assert (simulation.parse_mirror_reply(case["model_text"]) or (None, None)) == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"error": "", "response": "cut of', ("", "cut of")),
        ('x {"error": "e", "response": "a "b""}', ("e", 'a "b""}')),
        (
            '{"mechanism_of_the_api": "a "m"", "error": "a "b"", "response": "r"}',
            ('a "b"', 'r"}'),
        ),
        ("[1]", None),
        ('{"response": 1}', None),
        ("[" * 10_000, None),
    ],
)
def test_broken_mirrorapi_replies_are_read_as_far_as_they_go(text: str, said: Any) -> None:
    assert simulation.parse_mirror_reply(text) == said


@pytest.mark.parametrize("kind", ["engine", "chat model"])
def test_a_model_simulates_in_mirrorapi_s_format(kind: str) -> None:
    text = json.dumps({"error": "", "response": json.dumps({"temperature": 21})})
    engine, chat = ScriptedEngine([text]), ScriptedChat([text])
    model: Engine | ChatModel = engine if kind == "engine" else chat
    result = call(ModelSimulator(lambda: (model, PROFILE)))
    assert (result.source, result.kind, result.response) == ("simulated", "ok", {"temperature": 21})
    asked = engine.prompts[0] if kind == "engine" else chat.requests[0].messages[1].text
    assert "API doc:\n{'api_name': 'Forecast'" in asked
    assert "Request:\n{'city': 'Lima'}" in asked
    if kind == "chat model":
        (request,) = chat.requests
        assert (request.tools, request.temperature, request.seed) == ((), 0.1, 42)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("no JSON", "gave no response"),
        ('{"error": "", "response": ""}', "gave no response"),
        ('{"error": "city is unknown", "response": ""}', "city is unknown"),
    ],
)
def test_what_a_model_fails_to_simulate_is_a_failed_call(text: str, error: str) -> None:
    result = call(ModelSimulator(lambda: (ScriptedEngine([text]), PROFILE)))
    assert (result.source, result.kind, result.ok) == ("simulated", "server_error", False)
    assert error in result.error


@pytest.mark.parametrize(
    ("profile", "error"),
    [(PROFILE, "the script is over"), (COMPACT, "scripted is too small to simulate an API")],
)
def test_a_model_that_cannot_be_asked_is_a_failed_call(profile: Profile, error: str) -> None:
    result = call(ModelSimulator(lambda: (ScriptedEngine([]), profile)))
    assert (result.source, result.ok) == ("simulated", False)
    assert error in result.error


@pytest.mark.parametrize("mode", ["tools", "json_schema", "grammar", "none"])
def test_a_server_is_asked_for_text_where_there_is_no_function(mode: Any) -> None:
    request = ChatRequest((SystemMessage("be an API"), UserMessage("API doc")))
    written = messages.write_request(request, mode, "m")
    assert not written.keys() & {"tools", "tool_choice", "response_format", "grammar"}
    assert [one["content"] for one in written["messages"]] == ["be an API", "API doc"]
