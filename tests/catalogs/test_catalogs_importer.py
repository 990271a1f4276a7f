"""From files to one catalog: oddities load, faults are refused one by one, ToolBench is whole."""

from __future__ import annotations

import json
import re
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsrv_catalogs import findings, sources
from toolsrv_catalogs.fields import CATEGORIES
from toolsrv_catalogs.hosts import address_fault, host_fault
from toolsrv_catalogs.importer import ImportResult, catalog_name, check_name, read_catalog
from toolsrv_registry import names
from toolsrv_registry.errors import DataError, UsageError
from toolsrv_registry.index.lexicon import LexiconCache
from toolsrv_registry.search.recall import DEPTH
from toolsrv_registry.storage.store import Store

DATA = Path(__file__).parents[3] / "shared" / "data" / "toolbench"
GOOD = {"tool_name": "Good", "api_list": [{"name": "ping"}]}


def _lay(root: Path, files: dict[str, Any]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        raw = content if isinstance(content, bytes) else json.dumps(content).encode()
        path.write_bytes(raw)
    return root


def _ids(reading: ImportResult) -> list[str]:
    return [api.id for api in reading.catalog.apis]


def _refused(reading: ImportResult) -> list[tuple[str, str, str, str]]:
    return [
        (one.path, refusal.what, refusal.name, refusal.reason)
        for one in reading.files
        for refusal in one.refused
    ]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b'{"tool_name": "x", "api_list": [', "is no JSON: Expecting value"),
        (b"", "is empty"),
        (b" \n ", "is empty"),
        (b"not json", "is no JSON"),
        (b'{"a": "\xff"}', "is no JSON"),
        (b"[" * 100_000, "is no JSON"),
        (b"[1]", "is neither a tool nor an OpenAPI document"),
        (b'"text"', "is neither a tool nor an OpenAPI document"),
        (b'{"n": 1' + b"0" * 5000 + b"}", "is no JSON"),
    ],
)
def test_a_broken_file_is_refused_and_the_others_are_taken(
    tmp_path: Path, content: bytes, reason: str
) -> None:
    _lay(tmp_path, {"tools/Data/a_bad.json": content, "tools/Data/good.json": GOOD})
    reading = read_catalog(tmp_path)
    assert _ids(reading) == ["Data/good/ping"]
    ((path, what, name, told),) = _refused(reading)
    assert (path, what, name) == ("tools/Data/a_bad.json", "file", "")
    assert told.startswith(reason)


@pytest.mark.parametrize(
    "tool",
    [
        {"tool_name": "X", "tool_description": None, "api_list": [{"name": "a"}]},
        {"name": "X", "api_list": [{"name": "a"}]},
        {"api_list": [{"name": "a", "description": None, "required_parameters": None}]},
        {
            "tool_name": "X",
            "title": "",
            "pricing": "FREE",
            "score": None,
            "host": "",
            "api_list": [
                {
                    "name": "a",
                    "url": "",
                    "method": None,
                    "code": "print(1)",
                    "convert_code": None,
                    "test_endpoint": [1, {"a": None}],
                    "statuscode": 111,
                    "schema": "",
                    "body": {},
                    "headers": [],
                    "optional_parameters": [{"name": "p"}, {"name": "id", "default": None}],
                }
            ],
        },
    ],
)
def test_every_known_oddity_of_tool_files_loads(tmp_path: Path, tool: dict[str, Any]) -> None:
    reading = read_catalog(_lay(tmp_path, {"tools/Data/x.json": tool}))
    assert _ids(reading) == ["Data/x/a"]
    assert _refused(reading) == []


def test_a_tool_without_apis_loads_beside_others(tmp_path: Path) -> None:
    files = {"tools/Data/none.json": {"tool_name": "None", "api_list": None}}
    reading = read_catalog(_lay(tmp_path, files | {"tools/Data/good.json": GOOD}))
    assert [tool.name for tool in reading.catalog.tools] == ["Good", "None"]
    assert _refused(reading) == []


@pytest.mark.parametrize("content", [b"", b'{"api_list": []}', b'{"api_list": null}'])
def test_empty_schema_files_load(tmp_path: Path, content: bytes) -> None:
    files = {"tools/Data/good.json": GOOD, "response_examples/Data/good.json": content}
    reading = read_catalog(_lay(tmp_path, files))
    assert _ids(reading) == ["Data/good/ping"]
    assert _refused(reading) == []


def test_schemas_stand_with_their_apis_and_lost_ones_are_told(tmp_path: Path) -> None:
    tool = {"tool_name": "T", "api_list": [{"name": "a"}, {"name": "b"}, {"name": "a"}]}
    schemas = [
        {"name": "a", "schema": {"first": "str"}},
        {"name": "a", "schema": "empty list"},
        {"name": "z", "schema": {"lost": "int"}},
        {"schema": {}},
        "odd",
    ]
    files = {
        "tools/Data/t.json": tool,
        "response_examples/Data/t.json": {"api_list": schemas},
        "response_examples/Data/none.json": {"api_list": []},
        "response_examples/Data/odd.json": [1],
    }
    reading = read_catalog(_lay(tmp_path, files))
    (read,) = reading.catalog.tools
    assert [one.get("response_schema") for one in read.api_extras] == [
        {"first": "str"},
        None,
        "empty list",
    ]
    assert read.extra["response_schemas"] == [{"name": "z", "schema": {"lost": "int"}}]
    assert {(path.rpartition("/")[2], what) for path, what, _, _ in _refused(reading)} == {
        ("t.json", "schema"),
        ("none.json", "file"),
        ("odd.json", "file"),
    }


def test_a_parameter_list_that_is_no_list_refuses_its_api_only(tmp_path: Path) -> None:
    tool = {
        "tool_name": "T",
        "api_list": [
            {"name": "bad", "required_parameters": "city"},
            {"name": "worse", "optional_parameters": {"name": "city"}},
            {"name": "good", "optional_parameters": ["odd", {"type": "STRING"}, {"name": "q"}]},
            "odd",
        ],
    }
    reading = read_catalog(_lay(tmp_path, {"tools/Data/t.json": tool}))
    assert _ids(reading) == ["Data/t/good"]
    assert [refusal[1:] for refusal in _refused(reading)] == [
        ("API", "number 4", "is no object"),
        ("API", "bad", "required_parameters is no list"),
        ("API", "worse", "optional_parameters is no list"),
        ("parameter", "number 1", "is no object"),
        ("parameter", "", "has no name"),
    ]


def test_an_api_list_that_is_no_list_is_told(tmp_path: Path) -> None:
    files = {"tools/Data/t.json": {"tool_name": "T", "api_list": "x"}, "tools/Data/g.json": GOOD}
    reading = read_catalog(_lay(tmp_path, files))
    assert _refused(reading) == [("tools/Data/t.json", "API", "", "api_list is no list")]


def test_an_id_of_another_file_gets_a_number(tmp_path: Path) -> None:
    files = {
        "tools/Data/a.json": {"tool_name": "Same", "api_list": [{"name": "ping"}]},
        "tools/Data/b.json": {
            "tool_name": "same!",
            "api_list": [{"name": "Ping!", "description": "impostor"}, {"name": "pong"}],
        },
        "tools/Data/c.json": {"tool_name": "Same", "api_list": [{"name": "ping"}]},
        "tools/Sports/a.json": {"tool_name": "Same", "api_list": [{"name": "ping"}]},
    }
    reading = read_catalog(_lay(tmp_path, files))
    ids = ["Data/same/ping", "Data/same/ping_2", "Data/same/pong", "Sports/same/ping"]
    assert _ids(reading) == ids
    assert [api.description for api in reading.catalog.apis] == ["", "impostor", "", ""]
    reason = "its id Data/same/ping belongs to tools/Data/a.json"
    assert _refused(reading) == [
        ("tools/Data/c.json", "API", "ping", reason),
    ]
    assert {one.path: one.apis for one in reading.files}["tools/Data/c.json"] == 0


def test_apis_of_one_name_in_a_file_are_all_kept_and_told(tmp_path: Path) -> None:
    tool = {"tool_name": "T", "api_list": [{"name": "a"}, {"name": "a"}]}
    reading = read_catalog(_lay(tmp_path, {"tools/Data/t.json": tool}))
    assert _ids(reading) == ["Data/t/a", "Data/t/a_2"]
    assert reading.files[0].notes == ("'a' is there again; its id is Data/t/a_2",)


@pytest.mark.parametrize(
    "url",
    [
        "https://no host.example/x",
        "https://a.example{id}/x",
        "https://",
        "https:///x",
        "/relative",
        "javascript:alert(1)",
        "file:///etc/passwd",
        "https://user:secret@a.example/",
        "https://a.example\\@b.example/",
        "https://a.example:port/",
        "https://-a-.example/",
        "https://a..example/",
        "https://[::1/",
        "https://[zz]/",
        "https://256.256.256.256/",
        "https://0x7f000001/",
        f"https://{'a' * 64}.example/",
        f"https://{'a.' * 130}example/",
    ],
)
def test_hosts_that_are_no_hosts_are_refused_and_the_api_kept(tmp_path: Path, url: str) -> None:
    tool = {"tool_name": "T", "api_list": [{"name": "bad", "url": url}, {"name": "good"}]}
    reading = read_catalog(_lay(tmp_path, {"tools/Data/t.json": tool}))
    assert [(api.name, api.url) for api in reading.catalog.apis] == [("bad", ""), ("good", "")]
    ((_, what, name, reason),) = _refused(reading)
    assert (what, name) == ("address", "bad")
    assert reason.endswith("the API cannot be called")


@pytest.mark.parametrize(
    "url",
    [
        "https://a.example",
        "http://jak_api.p.example/x/{id}?q={q}",
        "https://xn--bcher-kva.example",
        "https://bücher.example:8443/",
        "http://127.0.0.1:8000/",
        "http://[::1]:8000/",
        "https://a.example./",
    ],
)
def test_odd_but_real_addresses_are_taken(url: str) -> None:
    assert address_fault(url) == ""


@given(st.text(max_size=60))
def test_any_text_is_judged_as_a_host_and_as_an_address(text: str) -> None:
    assert isinstance(host_fault(text), str)
    assert isinstance(address_fault(text), str)
    if not address_fault(f"https://{text}/"):
        assert not set(re.split(r"[/?#]", text)[0]) & set(" \t\n{}@\\")


def test_a_tool_whose_host_is_none_loses_the_host_only(tmp_path: Path) -> None:
    reading = read_catalog(_lay(tmp_path, {"tools/Data/t.json": GOOD | {"host": "no host!"}}))
    assert reading.catalog.tools[0].host == ""
    assert _refused(reading)[0][1:3] == ("address", "Good")


def test_hidden_characters_are_cleaned_and_counted_per_file(tmp_path: Path) -> None:
    tool = {
        "tool_name": "T\u200b",
        "tool_description": "a\u202eb\x00c",
        "api_list": [{"name": "p\ufeffq", "description": "x\U000e0041y" + "z" * 9000}],
    }
    reading = read_catalog(_lay(tmp_path, {"tools/Data/t.json": tool, "tools/Data/g.json": GOOD}))
    (read,) = [tool for tool in reading.catalog.tools if tool.name == "T"]
    assert (read.description, read.apis[0].name) == ("abc", "pq")
    assert read.apis[0].description.startswith("xyz")
    counts = {one.path: (one.hidden, one.cut) for one in reading.files}
    assert counts == {"tools/Data/g.json": (0, 0), "tools/Data/t.json": (5, 1)}


def test_what_is_too_large_to_keep_aside_is_told(tmp_path: Path) -> None:
    tool = {"tool_name": "T", "api_list": [{"name": "a", "test_endpoint": "x" * 100_000}]}
    reading = read_catalog(_lay(tmp_path, {"tools/Data/t.json": tool}))
    assert "test_endpoint" in reading.files[0].notes[0]
    assert reading.catalog.tools[0].api_extras == ()


def test_notes_and_refusals_of_a_file_have_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(findings, "REFUSALS_LIMIT", 200)
    tool = GOOD | {"api_list": [{"name": "a"}, *[None] * 500]}
    reading = read_catalog(_lay(tmp_path, {"tools/Data/t.json": tool}))
    assert (len(_refused(reading)), reading.files[0].left_out) == (200, 300)


def test_a_source_without_apis_says_why(tmp_path: Path) -> None:
    with pytest.raises(DataError) as raised:
        read_catalog(_lay(tmp_path, {"tools/Data/t.json": b"{", "x.txt": b""}))
    assert "tools/Data/t.json" in raised.value.message
    assert raised.value.hint


def test_more_than_fits_ends_the_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "TOTAL_LIMIT", 100)
    files = {f"tools/Data/{n}.json": GOOD | {"tool_name": f"T{n}"} for n in range(9)}
    reading = read_catalog(_lay(tmp_path, files))
    assert 0 < len(_ids(reading)) < 9
    assert not reading.complete


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("toolenv.tar.gz", "toolenv"),
        ("a/My Tools!.zip", "My-Tools"),
        ("petstore.v3.yaml", "petstore.v3"),
        ("..json", "catalog"),
        ("日本.json", "catalog"),
        ("x" * 100, "x" * 64),
    ],
)
def test_a_catalog_is_named_after_its_source(path: str, name: str) -> None:
    assert catalog_name(Path(path)) == name
    check_name(name)


def test_a_tools_folder_is_named_after_what_it_is_in(tmp_path: Path) -> None:
    assert catalog_name(_lay(tmp_path / "mine", {"tools/Data/g.json": GOOD}) / "tools") == "mine"


@pytest.mark.parametrize("name", ["", "a b", "../x", "-x", "x" * 65, "a\n", "é"])
def test_a_name_that_is_none_is_bad_usage(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError):
        read_catalog(_lay(tmp_path, {"tools/Data/g.json": GOOD}), name=name)


def test_there_are_49_categories() -> None:
    assert len(CATEGORIES) == 49
    assert {"News_Media", "Health_and_Fitness", "eCommerce"} <= CATEGORIES


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "tool_name",
                    "name",
                    "api_list",
                    "required_parameters",
                    "optional_parameters",
                    "default",
                    "enum",
                    "in",
                    "url",
                    "host",
                    "x-toolsrv",
                    "security",
                    "id",
                    "schema",
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(
    st.dictionaries(st.sampled_from(["api_list", "tool_name", "name", "host"]), _VALUES), _VALUES
)
def test_any_json_in_the_layout_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, tool: dict[str, Any], schemas: Any
) -> None:
    root = tmp_path_factory.mktemp("any")
    files = {"tools/Data/x.json": tool, "response_examples/Data/x.json": schemas}
    reading = read_catalog(_lay(root, files | {"tools/Data/good.json": GOOD}))
    assert "Data/good/ping" in _ids(reading)
    assert len(_ids(reading)) == len(set(_ids(reading)))


# --- ToolBench's own catalog ---------------------------------------------------------------------

real = pytest.mark.skipif(not DATA.is_dir(), reason="ToolBench's data is not at ../shared/data")


@pytest.fixture(scope="module")
def toolbench() -> ImportResult:
    return read_catalog(DATA / "toolenv.tar.gz")


@pytest.fixture(scope="module")
def store(toolbench: ImportResult, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with Store.open(tmp_path_factory.mktemp("store") / "registry.sqlite3") as opened:
        opened.put_catalog(toolbench.catalog)
        yield opened


@real
def test_all_of_toolbench_is_there_under_its_own_names(toolbench: ImportResult) -> None:
    apis = iter(toolbench.catalog.apis)
    checked = respelled = 0
    documents: dict[str, Any] = {}
    with tarfile.open(DATA / "toolenv.tar.gz") as packed:
        for member in packed:
            if member.isfile() and "/tools/" in member.name:
                file = packed.extractfile(member)
                assert file is not None
                documents[member.name] = json.load(file)
    for path, document in sorted(documents.items()):
        category = path.split("/")[2]
        for entry in document["api_list"]:
            api = next(apis)
            # Three names hold a zero-width space, which no catalog of ours keeps.
            assert api.name == entry["name"].replace("\u200b", "")
            assert (api.tool, api.category) == (document["tool_name"], category)
            wanted = f"{category}/{names.standardize(document['tool_name'])}/"
            assert api.id.startswith(wanted + names.readable_api_name(entry["name"]))
            respelled += names.is_respelled(entry["name"])
            shown = [p["name"] for k in ("required", "optional") for p in entry[f"{k}_parameters"]]
            assert [p.name for p in api.parameters] == shown
            checked += 1
    assert checked == 16_463
    assert respelled <= 3  # of the names mainly in another script
    assert len(toolbench.catalog.tools) == 3_451


@real
def test_of_toolbench_only_addresses_are_refused(toolbench: ImportResult) -> None:
    refused = _refused(toolbench)
    assert {what for _, what, _, _ in refused} == {"address"}
    assert len(refused) == 23
    assert sum(not api.url for api in toolbench.catalog.apis) == 19
    extras = [extra for tool in toolbench.catalog.tools for extra in tool.api_extras]
    assert sum("response_schema" in extra for extra in extras) == 9_990


@real
def test_every_query_of_toolbench_names_apis_that_are_there(toolbench: ImportResult) -> None:
    ids = {api.id for api in toolbench.catalog.apis}
    lines = (DATA / "queries_dev.jsonl").read_text("utf-8").splitlines()
    asked = {api["id"] for line in lines for api in json.loads(line)["relevant"]}
    assert len(asked) > 500
    assert asked <= ids


@real
def test_every_api_is_found_by_its_own_tool_and_name(store: Store) -> None:
    """By words alone, among all 16,463: equal scores share a place."""
    apis = {api.id: api for api in store.apis()}
    lexicon = LexiconCache(store).current()
    assert set(lexicon.ids) == set(apis)
    assert len(apis) == 16_463
    places = []
    for at, api_id in enumerate(lexicon.ids):
        scores = lexicon.fit([f"{apis[api_id].tool} {apis[api_id].name}"]).words[0]
        assert scores[at] > 0, api_id
        places.append(1 + int((scores > scores[at]).sum()))
    # Others share the words, and some names say nothing: tool "a", API "api".
    assert sum(place == 1 for place in places) >= 0.87 * len(places)
    assert sum(place <= 10 for place in places) >= 0.99 * len(places)
    assert sum(place <= DEPTH for place in places) >= 0.9995 * len(places)


@real
def test_toolbench_goes_in_within_its_time_and_again_without_a_change(
    toolbench: ImportResult, tmp_path: Path
) -> None:
    with Store.open(tmp_path / "registry.sqlite3") as opened:
        started = time.process_time()  # other processes have their share of the wall's
        again = read_catalog(DATA / "toolenv.tar.gz")
        assert len(opened.put_catalog(again.catalog, hold=True).added) == 16_463
        assert time.process_time() - started < 20
        assert again.catalog == toolbench.catalog
        assert opened.put_catalog(again.catalog, hold=True).unchanged == 16_463
        assert opened.catalog("toolenv") == toolbench.catalog
