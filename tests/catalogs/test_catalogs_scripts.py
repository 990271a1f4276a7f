"""Tools of other scripts and catalogs of one title: every API has an id, and keeps it."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from toolsrv_catalogs.importer import read_catalog
from toolsrv_catalogs.mcp_tools import read_mcp_tools
from toolsrv_catalogs.toolbench import read_tool
from toolsrv_catalogs.unique_ids import addresses, with_unique_ids
from toolsrv_registry.api import Api, Catalog, Tool
from toolsrv_registry.storage.store import Store


def entry(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "required_parameters": [], "optional_parameters": [], **more}


def ids(names: list[str]) -> dict[str, str]:
    tool = read_tool({"tool_name": "Погода", "api_list": [entry(n) for n in names]}, "Weather")
    return {api.name: api.id for api in tool.apis}


def test_ids_of_other_scripts_do_not_hang_on_their_order() -> None:
    names = ["погода", "Погода", "pogoda", "ПОГОДА", "завтра"]
    wanted = ids(names)
    assert wanted["pogoda"] == "Weather/pogoda/pogoda"
    assert wanted["завтра"] == "Weather/pogoda/zavtra"
    assert len(set(wanted.values())) == len(names)
    for seed in range(8):
        assert ids(random.Random(seed).sample(names, len(names))) == wanted


def test_latin_names_are_counted_in_the_order_of_the_file_as_ever() -> None:
    tool = read_tool({"tool_name": "T", "api_list": [entry("a b"), entry("A-B")]}, "Data")
    assert [(api.name, api.id) for api in tool.apis] == [
        ("a b", "Data/t/a_b"),
        ("A-B", "Data/t/a_b_2"),
    ]


@pytest.mark.parametrize("script", ["날씨", "てんき", "الطقس", "Καιρός", "погода", "🚀", "!!!"])
def test_files_of_one_category_push_nothing_out(script: str, tmp_path: Path) -> None:
    folder = tmp_path / "tools" / "Weather"
    folder.mkdir(parents=True)
    for at in range(3):
        document = {"tool_name": script, "api_list": [entry(script, url=f"https://a.example/{at}")]}
        (folder / f"{at}.json").write_text(json.dumps(document))
    catalog = read_catalog(tmp_path).catalog
    assert len({api.id for api in catalog.apis}) == 3
    assert script == "!!!" or "unnamed" not in catalog.apis[0].id


def test_tools_of_an_mcp_server_in_another_script_have_readable_ids() -> None:
    tools = [{"name": name, "inputSchema": {"type": "object"}} for name in ("погода", "Погода")]
    for listed in (tools, tools[::-1]):
        apis = read_mcp_tools(listed, name="server").catalog.apis
        assert {api.name: api.id for api in apis} == {
            "Погода": "Other/server/pogoda",
            "погода": "Other/server/pogoda_2",
        }


def document(title: str, path: str, operation: str) -> str:
    return json.dumps(
        {
            "openapi": "3.0.3",
            "info": {"title": title, "version": "1"},
            "servers": [{"url": "https://a.example"}],
            "paths": {path: {"get": {"operationId": operation, "responses": {}}}},
        }
    )


def test_two_documents_of_one_title_in_one_folder_are_both_there(tmp_path: Path) -> None:
    for name, path in (("a", "/users"), ("b", "/orders"), ("c", "/items")):
        (tmp_path / f"{name}.json").write_text(document("REST API", path, "list"))
    found = {api.url: api.id for api in read_catalog(tmp_path).catalog.apis}
    assert found == {
        "https://a.example/users": "Other/rest_api/list",
        "https://a.example/orders": "Other/rest_api/list_2",
        "https://a.example/items": "Other/rest_api/list_3",
    }


def one(url: str, api_id: str = "Other/my_api/list") -> Api:
    return Api(id=api_id, category="Other", tool="My API", name="list", url=url)


def catalog(name: str, *apis: Api) -> Catalog:
    return Catalog(name=name, tools=(Tool(category="Other", name="My API", apis=apis),))


def test_a_catalog_of_the_same_title_is_kept_apart_and_stays_so(tmp_path: Path) -> None:
    def put(wanted: Catalog) -> list[str]:
        known = store.labels.calls_by_id(addresses(wanted))
        others = {
            api_id: [call for name, call in calls.items() if name != wanted.name]
            for api_id, calls in known.items()
        }
        own = [api_id for api_id, calls in known.items() if wanted.name in calls]
        found, _ = with_unique_ids(wanted, others, own)
        store.put_catalog(found)
        return [api.id for api in found.apis]

    with Store.open(tmp_path / "registry.sqlite3") as store:
        assert put(catalog("a", one("https://a.example"))) == ["Other/my_api/list"]
        assert put(catalog("b", one("https://b.example"))) == ["Other/my_api_b/list"]
        assert put(catalog("b", one("https://b.example"))) == ["Other/my_api_b/list"]
        assert put(catalog("a", one("https://a.example"))) == ["Other/my_api/list"]
        assert [api.url for api in store.apis()] == ["https://a.example", "https://b.example"]
        store.remove_catalog("a")
        assert put(catalog("b", one("https://b.example"))) == ["Other/my_api_b/list"]


def test_another_edition_of_the_same_api_keeps_its_id() -> None:
    wanted = catalog("b", one("https://a.example"))
    found, changed = with_unique_ids(
        wanted, {"Other/my_api/list": [("GET", "https://a.example")]}, []
    )
    assert found is wanted
    assert not changed
