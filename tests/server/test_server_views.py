"""What is told about APIs, calls and runs, and the words the MCP server says about itself."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsrv.domains import load_catalogs
from toolsrv.mcp_server import descriptions, texts
from toolsrv.runs.queue import Run
from toolsrv.settings import Mode, Settings, load
from toolsrv.views import apis, runs
from toolsrv.views.apis import describe_keys
from toolsrv.workbench import Workbench
from toolsrv_registry.api import Api, Parameter, SecurityScheme
from toolsrv_registry.storage.health import HealthEntry, HealthStatus
from toolsrv_runtime import outcome
from toolsrv_runtime import outcome as out
from toolsrv_runtime.calls.arguments import bind
from toolsrv_runtime.calls.caller import CallResult
from toolsrv_runtime.solve import SolveOptions

APIS = [api for catalog in load_catalogs() for api in catalog.apis]
README = Path(__file__).parents[2] / "server" / "README.md"


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.id)
def test_the_example_of_an_api_is_a_call_it_takes(api: Api) -> None:
    view = apis.api_view(api)
    assert len(bind(api, view.example)) == len(view.example)
    assert {one.name for one in view.parameters if one.required} == set(view.example)


def test_a_stand_in_has_the_parameters_type() -> None:
    def value(**fields: object) -> object:
        return apis.example_value(Parameter.model_validate({"name": "p", **fields}))

    assert value(default="Oslo") == "Oslo"
    assert value(enum=("a", "b")) == "a"
    assert value(type="NUMBER") == 1
    assert value(type="BOOLEAN") is True


def test_a_long_response_is_cut_and_says_so() -> None:
    result = CallResult(
        api_id="C/t/a",
        arguments={},
        status=200,
        response=["x" * 1000] * 1000,
        error="",
        source="offline",
        seconds=0.1,
        url="",
    )
    view = apis.call_view(result)
    assert view.truncated
    assert len(view.response) < apis.RESPONSE_LIMIT + 100
    assert "was cut" in texts.call_text(view)


def test_what_steers_a_terminal_is_in_no_text() -> None:
    evil = "\x1b[2Jx\u202e"
    api = Api(id="C/t/a", category="C", tool=evil, name=evil, description=evil)
    shown = texts.describe_text(apis.DescribeView(apis=(apis.api_view(api),), not_found=()))
    assert "\x1b" not in shown
    assert "\u202e" not in shown


def _scheme(kind: str, **parts: str) -> SecurityScheme:
    return SecurityScheme.model_validate({"name": kind, "kind": kind, **parts})


KEY = _scheme("apiKey", place="query", key="key")
BEARER = _scheme("http", scheme="bearer")


@pytest.mark.parametrize(
    ("url", "security", "said"),
    [
        ("https://a.example/x", (), ""),
        ("https://a.example:8443/x", ((KEY,),), "query key (toolsrv keys set a.example)"),
        ("https://x.p.rapidapi.com/x", (), "header X-RapidAPI-Key (toolsrv keys set rapidapi)"),
        (
            "https://a.example/x",
            ((KEY, BEARER), ()),
            (
                "query key (toolsrv keys set a.example/apiKey) and"
                " bearer token (toolsrv keys set a.example/http), or none"
            ),
        ),
        ("", ((KEY,),), "query key"),
        (
            "https://a.example/x",
            ((_scheme("http", scheme="basic"),),),
            "basic USER:PASSWORD (toolsrv keys set a.example)",
        ),
        (
            "https://a.example/x",
            ((_scheme("oauth2"),),),
            "bearer token (toolsrv keys set a.example)",
        ),
    ],
)
def test_the_key_that_a_call_needs_is_told(
    url: str, security: tuple[tuple[SecurityScheme, ...], ...], said: str
) -> None:
    api = Api(id="C/t/a", category="C", tool="t", name="a", url=url, security=security)
    view = apis.api_view(api)
    assert describe_keys(view.keys) == said
    text = texts.describe_text(apis.DescribeView(apis=(view,), not_found=()))
    assert (f"Key: {said}" in text) is bool(said)


def test_what_is_called_and_what_its_check_found_is_told_to_models_too() -> None:
    api = Api(
        id="C/t/a", category="C", tool="t", name="a", method="DELETE", url="https://a.example/x"
    )
    check = HealthEntry(
        api_id=api.id,
        content_hash="",
        checked_at="2026-11-20T10:00:00+00:00",
        verdict=HealthStatus.HTTP_ERROR,
        status=404,
    )
    view = apis.DescribeView(apis=(apis.api_view(api, check),), not_found=())
    lines = texts.describe_text(view).splitlines()
    assert "Request: DELETE https://a.example/x" in lines
    assert "Checked: 404 on 2026-11-20 (dead)" in lines
    unchecked = apis.api_view(api.model_copy(update={"url": ""}))
    assert unchecked.check is None
    assert apis.call_line(unchecked) == "DELETE, without an address"


@pytest.mark.anyio
async def test_the_phase_of_a_run_follows_its_events() -> None:
    run = Run("t", SolveOptions())
    assert "2 runs first" in runs.phase(run, 2)
    run.status = "working"
    assert "loading" in runs.phase(run, 0)
    run.add_event(
        outcome.CallEvent(seconds=0, node=1, depth=1, api_id="C/t/a", function="f", arguments={})
    )
    run.add_event(outcome.BudgetEvent(seconds=0, usage=out.Usage(calls=2), limits=out.Limits()))
    assert runs.phase(run, 0) == "calling C/t/a"
    said = out.Opinion(node=7, verdict="accepted")
    run.add_event(outcome.OpinionEvent(seconds=0, depth=2, opinion=said))
    assert "accepted" in runs.phase(run, 0)
    assert runs.run_view(run, 0).usage.calls == 2
    assert run.id in texts.run_text(runs.run_view(run, 0))


def test_second_opinions_are_told_after_the_answer() -> None:
    said = out.Opinion(node=7, verdict="rejected", reason="no response says 42")
    view = runs.RunView(run_id="run_x", status="answered", answer="41", opinions=(said,))
    text = texts.run_text(view)
    assert "node 7" in text
    assert "rejected: no response says 42" in text


def test_what_of_a_long_answer_nobody_looked_at_is_told() -> None:
    claim = out.Claim(text="Berlin", kind="name", start=0)
    assert runs.unsupported_line([], 0) == ""
    assert runs.unsupported_line([claim]) == "No response says: Berlin"
    view = runs.RunView(run_id="run_x", status="answered", unsupported=(claim,), unread=7)
    text = texts.run_text(view)
    assert "No response says: Berlin (name at 0)." in text
    assert "Not looked at, as the answer is so long: 7 more statements." in text
    assert runs.unsupported_line([], 1).endswith(": 1 more statement")


@given(st.lists(st.text(max_size=40), max_size=400), st.sampled_from(get_args(Mode)))
def test_instructions_never_grow_beyond_their_limit(domains: list[str], mode: Mode) -> None:
    said = descriptions.instructions(domains, Settings(mode=mode))
    assert len(said.encode()) <= descriptions.INSTRUCTIONS_LIMIT


def test_the_instructions_state_the_workflow_first_and_name_the_domains() -> None:
    domains = Workbench(load().settings).domains()
    said = descriptions.instructions(domains, load().settings)
    assert said.index("search_apis") < said.index("describe_apis") < said.index("call_api")
    assert all(domain in said for domain in domains)


def test_the_readme_lists_the_tools_with_their_parameters() -> None:
    from toolsrv.mcp_server.server import build_server

    server = build_server(Workbench(load().settings), warm=False)
    documented = dict(re.findall(r"^\| `(\w+)\((.*?)\)` \|", README.read_text(), re.MULTILINE))
    tools = {tool.name: tool for tool in server._tool_manager.list_tools()}
    assert set(documented) == set(tools)
    for name, tool in tools.items():
        assert set(documented[name].split(", ")) == set(tool.parameters["properties"])


def test_a_long_list_of_allowed_values_is_shown_cut_and_an_example_apart_from_a_default() -> None:
    values = tuple(f"v{number}" for number in range(300))
    shown = apis.parameter_view("v", Parameter(name="v", enum=values, example="v7"), required=True)
    assert (len(shown.allowed), shown.allowed_in_all) == (64, 300)
    assert (shown.default, shown.example) == ("", "v7")
    assert apis.allowed_words(shown).endswith("v63, … (300 in all).")
    assert apis.allowed_words(shown.model_copy(update={"allowed": ()})) == ""
