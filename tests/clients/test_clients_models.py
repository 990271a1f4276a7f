"""Published clients with a scripted model: they find our entry, call our tools, pass results on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.clients.model_api import FINAL, ModelApi, Step
from tests.clients.model_clients import MODEL_CLIENTS, ModelClient
from tests.clients.model_protocols import Tool
from tests.clients.places import Home

from toolsrv.clients.known import CLIENTS
from toolsrv.clients.places import Machine

API = "Data/country_facts/capital_city"
SCRIPT = (
    Step("search_apis", {"query": "capital city of a country", "limit": 3}),
    Step("call_api", {"id": API[:-1], "arguments": {"country": "Peru"}}),
    Step("call_api", {"id": API, "arguments": {"country": "Peru"}}),
    Step("solve_task", {"task": "What is the capital of Norway?"}),
)
pytestmark = pytest.mark.nightly


def _cases() -> list[Any]:
    return [
        pytest.param(client, how, id=f"{client.package.program}-{how}")
        for client in MODEL_CLIENTS
        for how, can in (("stdio", True), ("http", client.http), ("project", client.trust))
        if can
    ]


@pytest.mark.parametrize(("client", "how"), _cases())
def test_a_client_connects_calls_the_tools_and_hands_results_to_its_model(
    client: ModelClient, how: str, home: Home, schemas: dict[str, dict[str, Any]]
) -> None:
    program = str(client.package.install())
    with ModelApi(SCRIPT, schemas, client.prefix) as model:
        client.before(home, model.url)
        more = client.trust(home) if client.trust and how == "project" else {}
        file = _file(client, how, home)
        before = _content(file)
        if client.connect:
            home.toolsrv("connect", client.connect, *_flags(how, home))
        entered = _content(file)
        if client.first:
            words = [one.replace("URL", model.url) for one in client.first]
            assert home.run([program, *words]).code == 0
        start = client.start(model.url)
        ended = home.run([program, *start.arguments], {**start.env, **more})
    assert ended.code == 0, ended
    assert model.tools.keys() == schemas.keys(), ended
    for name, tool in model.tools.items():
        assert _lost(tool, schemas[name]) == []
    results = [one for one in model.results if one.tool != "get_run"]
    assert [one.tool for one in results] == [one.tool for one in SCRIPT], ended
    search, wrong, call, solve = (one.text for one in results)
    assert API in search
    assert "no API has the id" in wrong
    assert API in wrong.replace("\\/", "/")  # the hint
    assert "Lima" in call
    assert _half(call) == client.shown
    assert "Oslo" in solve or "Oslo" in model.results[-1].text
    assert FINAL in ended.output
    if client.connect:
        kept = _content(file) == entered  # some clients write their own state into it
        home.toolsrv("disconnect", client.connect, *(_flags(how, home) if how == "project" else ()))
        assert '"serve"' not in (_content(file) or "")
        assert home.server.url not in (_content(file) or "")
        assert not kept or _content(file) == before


def _file(client: ModelClient, how: str, home: Home) -> Path:
    """Return the file that the entry goes into; any for a client that is set up by hand."""
    if not client.connect:
        return home.folder / "none"
    known = CLIENTS[client.connect]
    if how == "project":
        return known.project_path(home.work) or home.folder
    return known.path(Machine("linux", home.folder, {}))


def _content(file: Path) -> str | None:
    return file.read_text("utf-8") if file.exists() else None


def _flags(how: str, home: Home) -> tuple[str, ...]:
    """Return the flags of ``connect`` for an entry on HTTP, or in the file of a project."""
    port = str(home.server.port)
    return {"stdio": (), "http": ("--http", "--port", port), "project": ("--scope", "project")}[how]


def _lost(tool: Tool, schema: Mapping[str, Any]) -> list[str]:
    """Return what the model is not shown of a schema: parameters, words about them, requirements."""
    properties = schema.get("properties", {})
    names = [name for name in properties if name not in tool.properties]
    words = [
        f"{name}: description"
        for name, value in properties.items()
        if value["description"] not in tool.properties.get(name, {}).get("description", "")
    ]
    wanted = set(schema.get("required", ())) - set(tool.schema.get("required", ()))
    return [*names, *words, *(f"{name}: required" for name in wanted)]


def _half(text: str) -> str:
    """Return which half of a result of ``call_api`` a text holds."""
    plain, data = f"{API}: status 200" in text, '"status":200' in text.replace(" ", "")
    return "both" if plain and data else "text" if plain else "data" if data else "none"
