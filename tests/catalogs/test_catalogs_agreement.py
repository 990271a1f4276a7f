"""The JSON descriptions, the handlers, the answers and the README say the same."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

import toolsrv_catalogs.offline
from toolsrv_catalogs.offline import OFFLINE_HOST, load_offline_catalog
from toolsrv_catalogs.offline.app import find_endpoint
from toolsrv_catalogs.offline.descriptions import markdown_table
from toolsrv_catalogs.offline.endpoint import Parameter
from toolsrv_catalogs.offline.testing import OfflineClient
from toolsrv_registry import names
from toolsrv_registry.api import Api

_TOOLS = Path(toolsrv_catalogs.offline.__file__).parent / "tools"
_README = Path(__file__).parents[2] / "catalogs" / "README.md"
_APIS = {api.id: api for api in load_offline_catalog().apis}
# What is said about the present moment or drawn by lot is not said twice.
_CHANGING = re.compile(
    r"/(current_time|zone|time_difference|year|next|find|week_number|age|sunrise_sunset|day_length"
    r"|golden_hour|moon_phase|generate|passphrase|uuid|dice|coin|number|pick|person|address"
    r"|company|lorem)$"
)
_FIXED = {"/world_words/number", "/ip_toolkit/address"}
_LARGE = {"/qr_maker/svg", "/qr_maker/text", "/qr_maker/wifi"}


def _documents() -> Iterator[tuple[Path, dict[str, Any]]]:
    for path in sorted(_TOOLS.glob("*/*.json")):
        yield path, json.loads(path.read_text(encoding="utf-8"))


def _examples() -> dict[str, Any]:
    return {api["url"]: api["test_endpoint"] for _, doc in _documents() for api in doc["api_list"]}


def _call(offline: OfflineClient, api: Api) -> dict[str, Any]:
    path = urlsplit(api.url).path
    query = {}
    for parameter in api.required:
        placeholder = f"{{{parameter.name}}}"
        if placeholder in path:
            path = path.replace(placeholder, quote(parameter.default, safe=""))
        else:
            query[parameter.name] = parameter.default
    return offline.answer(path, **query)


def test_the_catalog_is_as_large_as_promised() -> None:
    catalog = load_offline_catalog()
    assert catalog.name == "offline"
    assert len(catalog.apis) >= 64
    assert len(catalog.tools) >= 18
    assert len({tool.category for tool in catalog.tools}) >= 12


def test_files_lie_where_their_names_say_and_modules_beside_them() -> None:
    for path, document in _documents():
        assert path.stem == names.standardize(document["tool_name"])
        assert path.parent.name == names.standardize_category(path.parent.name)
        assert import_module(f"toolsrv_catalogs.offline.domains.{path.stem}").tool.endpoints
        assert document["pricing"] == "FREE"
        assert document["host"] == OFFLINE_HOST
        for api in document["api_list"]:
            assert api["url"].startswith(f"https://{OFFLINE_HOST}/{path.stem}/")
            assert api["method"] == "GET"
            assert api["statuscode"] == 200


def test_every_handler_is_described_once() -> None:
    described = sorted(urlsplit(api.url).path for api in _APIS.values())
    declared = sorted(
        f"/{path.stem}{endpoint}"
        for path, _ in _documents()
        for endpoint in import_module(
            f"toolsrv_catalogs.offline.domains.{path.stem}"
        ).tool.endpoints
    )
    assert described == declared


def test_function_names_are_unique_and_uncut() -> None:
    functions = [names.function_name(api.name, api.tool) for api in _APIS.values()]
    assert len(functions) == len(set(functions))
    assert max(map(len, functions)) < names.FUNCTION_NAME_LIMIT


@pytest.mark.parametrize("api_id", _APIS)
def test_description_and_handler_agree(api_id: str) -> None:
    api = _APIS[api_id]
    declared = find_endpoint(urlsplit(api.url).path).parameters
    assert [p.name for p in api.required] == [p.name for p in declared.values() if p.required]
    assert [p.name for p in api.optional] == [p.name for p in declared.values() if not p.required]
    assert api.description
    for parameter in api.parameters:
        counterpart = declared[parameter.name]
        assert parameter.description
        assert parameter.enum == counterpart.field.choices
        assert (parameter.type == "ENUM") == bool(parameter.enum)
        assert names.api_name(parameter.name) == parameter.name
        if not counterpart.required:
            assert _same_default(parameter.default, counterpart)


def _same_default(described: str, declared: Parameter) -> bool:
    if declared.default is None:
        return described == ""
    return bool(declared.field.parse(described) == declared.default)


@pytest.mark.parametrize("api_id", _APIS)
def test_the_example_is_what_the_api_answers(offline: OfflineClient, api_id: str) -> None:
    api = _APIS[api_id]
    example = _examples()[api.url]
    answer = _call(offline, api)
    assert list(answer) == list(example)
    path = urlsplit(api.url).path
    if path in _FIXED or not _CHANGING.search(path):
        assert answer == example


@pytest.mark.parametrize("api_id", _APIS)
def test_answers_are_small_flat_objects(offline: OfflineClient, api_id: str) -> None:
    api = _APIS[api_id]
    answer = _call(offline, api)
    assert 2 <= len(answer) <= 6
    if urlsplit(api.url).path not in _LARGE:
        assert len(json.dumps(answer, ensure_ascii=False)) <= 450


def test_the_readme_holds_the_present_table() -> None:
    assert markdown_table() in _README.read_text(encoding="utf-8")
