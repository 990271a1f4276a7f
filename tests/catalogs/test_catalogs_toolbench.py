"""Reading ToolBench tool files: the format, its looseness, its real data."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsrv_catalogs import toolbench
from toolsrv_catalogs.findings import FileFindings
from toolsrv_registry.api import Tool
from toolsrv_registry.errors import DataError, NotFoundError

_DATA = Path(__file__).parents[3] / "shared" / "data" / "toolbench" / "toolenv.tar.gz"


def _tool(**document: Any) -> Tool:
    return toolbench.read_tool({"tool_name": "My Tool", **document}, "Data")


def _write(root: Path, category: str, name: str, content: str) -> Path:
    path = root / category / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")
    return path


def test_a_full_document_is_read_with_its_parameters() -> None:
    tool = _tool(
        tool_description="Does things",
        host="h.example",
        api_list=[
            {
                "name": "Get Thing",
                "description": "One thing",
                "method": "get",
                "url": "https://h.example/thing/{id}",
                "required_parameters": [
                    {"name": "id", "type": "NUMBER", "description": "Which", "default": 0}
                ],
                "optional_parameters": [
                    {"name": "unit", "type": "ENUM", "description": "", "enum": ["km", "mi"]}
                ],
            }
        ],
    )
    (api,) = tool.apis
    assert api.id == "Data/my_tool/get_thing"
    assert (api.method, api.tool_description, api.category) == ("GET", "Does things", "Data")
    assert (api.required[0].default, api.required[0].key) == (0, "is_id")
    assert api.optional[0].enum == ("km", "mi")
    assert api.optional[0].default == ""


@pytest.mark.parametrize(
    "document",
    [
        {"tool_name": "My Tool", "tool_description": None, "api_list": None},
        {"name": "My Tool"},
        {"tool_name": None, "name": "My Tool", "api_list": "nonsense"},
    ],
)
def test_null_and_missing_keys_read_as_empty(document: dict[str, Any]) -> None:
    tool = toolbench.read_tool(document, "Data")
    assert (tool.name, tool.description, tool.apis) == ("My Tool", "", ())


def test_the_file_stem_names_a_nameless_tool(tmp_path: Path) -> None:
    path = _write(tmp_path, "Data", "some_tool.json", "{}")
    assert toolbench.read_tool_file(path, "Data").name == "some_tool"


def test_a_document_without_any_name_is_refused() -> None:
    with pytest.raises(DataError):
        toolbench.read_tool({}, "Data")


def test_odd_entries_are_left_out_and_null_fields_read_as_empty() -> None:
    tool = _tool(
        api_list=[
            "odd",
            None,
            {"name": None, "description": None, "method": None, "required_parameters": None},
            {"name": "b", "optional_parameters": [None, {"type": "STRING"}, {"name": "q"}]},
        ]
    )
    first, second = tool.apis
    assert (first.id, first.description, first.method) == ("Data/my_tool/unnamed", "", "GET")
    assert [p.name for p in second.optional] == ["q"]
    assert second.optional[0].type == "STRING"


def test_apis_of_one_name_all_stay_reachable() -> None:
    tool = _tool(api_list=[{"name": "Get"}, {"name": "get!"}, {"name": "GET"}, {"name": "get_2"}])
    ids = [api.id.rpartition("/")[2] for api in tool.apis]
    assert ids == ["get", "get_2", "get_3", "get_2_2"]


def test_texts_are_cleaned_and_capped() -> None:
    tool = _tool(
        tool_description="a\u202eb" + "x" * 9000,
        api_list=[
            {
                "name": "n" * 300,
                "description": "y" * 9000,
                "required_parameters": [{"name": "p", "description": "z" * 3000}],
            }
        ],
    )
    (api,) = tool.apis
    assert tool.description.startswith("abx")
    sizes = (len(tool.description), len(api.name), len(api.description))
    assert sizes == (8192, 256, 8192)
    assert len(api.required[0].description) == 2048


@pytest.mark.parametrize(
    ("default", "expected"),
    [
        (0, 0),
        (False, False),
        ([], []),
        (1.5, 1.5),
        (None, ""),
        ("a\u200bb", "ab"),
        ({"k\x00": ["v\u202e", None]}, {"k": ["v", None]}),
        (float("nan"), ""),
        ([float("inf")], ""),
        ("x" * 9000, "x" * 2048),
    ],
)
def test_defaults_keep_their_type_but_no_hidden_text(default: Any, expected: Any) -> None:
    parameter = {"name": "p", "default": default}
    (api,) = _tool(api_list=[{"name": "a", "optional_parameters": [parameter]}]).apis
    assert api.optional[0].default == expected


def test_what_json_cannot_hold_is_left_out_with_its_reason_and_the_rest_kept() -> None:
    found = FileFindings()
    api: dict[str, Any] = {"name": "a", "weight": float("inf"), "code": "x"}
    api["optional_parameters"] = [{"name": "p", "default": float("nan")}]
    document = {"tool_name": "T", "api_list": [api], "score": float("nan")}
    tool = toolbench.read_tool(document, "Data", found=found)
    assert tool.api_extras == ({"keys": {"code": "x"}},)
    assert tool.extra == {}
    assert len(found.notes) == 3
    assert all("NaN or infinity" in note for note in found.notes)
    assert any("weight" in note for note in found.notes)
    assert any("score" in note for note in found.notes)


def test_a_huge_default_becomes_a_cut_text() -> None:
    parameter = {"name": "p", "default": list(range(5000))}
    (api,) = _tool(api_list=[{"name": "a", "optional_parameters": [parameter]}]).apis
    assert len(api.optional[0].default) == 2048


@pytest.mark.parametrize("content", ["", "  \n", "not json", "[1, 2]", '"text"', "[" * 100_000])
def test_an_unreadable_file_is_named_in_the_error(tmp_path: Path, content: str) -> None:
    path = _write(tmp_path, "Data", "broken.json", content)
    with pytest.raises(DataError) as raised:
        toolbench.read_tool_file(path, "Data")
    assert str(path) in str(raised.value)


def test_a_file_that_is_not_utf8_is_named_in_the_error(tmp_path: Path) -> None:
    path = tmp_path / "latin.json"
    path.write_bytes(b'{"tool_name": "caf\xe9"}')
    with pytest.raises(DataError) as raised:
        toolbench.read_tool_file(path, "Data")
    assert "latin.json" in str(raised.value)


def test_missing_files_and_folders_are_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        toolbench.read_tool_file(tmp_path / "none.json", "Data")
    with pytest.raises(NotFoundError):
        toolbench.read_folder(tmp_path / "none")
    with pytest.raises(DataError):
        toolbench.read_folder(tmp_path)


def test_a_folder_is_read_in_path_order_with_unique_ids(tmp_path: Path) -> None:
    api_list = [{"name": "ping"}]
    for category, name, tool in [
        ("Sports", "b", "Same"),
        ("Data", "a", "Same"),
        ("Data", "c", "same!"),
    ]:
        text = json.dumps({"tool_name": tool, "api_list": api_list})
        _write(tmp_path, category, f"{name}.json", text)
    _write(tmp_path, "Data", ".hidden.json", "")
    _write(tmp_path, ".git", "x.json", "")
    catalog = toolbench.read_folder(tmp_path, name="mine")
    assert catalog.name == "mine"
    ids = [api.id for api in catalog.apis]
    assert ids == ["Data/same/ping", "Data/same/ping_2", "Sports/same/ping"]


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "name",
                    "type",
                    "description",
                    "default",
                    "enum",
                    "url",
                    "method",
                    "required_parameters",
                    "optional_parameters",
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(
    st.fixed_dictionaries(
        {"tool_name": st.text(min_size=1, max_size=9).filter(str.strip), "api_list": _JSON}
    ),
    st.text(max_size=20),
)
def test_any_json_reads_or_is_refused_as_data(document: dict[str, Any], category: str) -> None:
    try:
        tool = toolbench.read_tool(document, category)
    except DataError:
        return
    ids = [api.id for api in tool.apis]
    assert len(ids) == len(set(ids))


@pytest.mark.skipif(not _DATA.exists(), reason="ToolBench's catalog is not at ../shared/data")
def test_files_of_the_real_catalog_are_read() -> None:
    tools: list[Tool] = []
    with tarfile.open(_DATA) as archive:
        for member in archive:
            parts = member.name.split("/")
            if member.isfile() and parts[1] == "tools" and len(tools) < 300:
                file = archive.extractfile(member)
                assert file is not None
                with file:
                    tool = toolbench.read_tool_bytes(file.read(), parts[2], source=member.name)
                tools.append(tool)
    assert len(tools) == 300
    ids = [api.id for tool in toolbench.distinct(tools) for api in tool.apis]
    assert len(ids) == len(set(ids)) > 600
    assert any(not tool.description for tool in tools)
    assert all(api.method == "GET" for tool in tools for api in tool.apis)
    assert sum(not api.url for tool in tools for api in tool.apis) <= 5
