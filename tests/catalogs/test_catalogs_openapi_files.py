"""OpenAPI in files: references that stay inside their folder, YAML that stays small."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.openapi_documents import document

from toolsrv_catalogs import yaml_text
from toolsrv_catalogs.importer import ImportResult, read_catalog


def _lay(root: Path, files: dict[str, Any]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content))
    return root


def _parameters(reading: ImportResult) -> list[str]:
    return [p.name for api in reading.catalog.apis for p in api.parameters]


def _referring(ref: str) -> dict[str, Any]:
    return document({"operationId": "go", "parameters": [{"$ref": ref}]})


def test_references_lead_to_other_files_of_the_folder_and_on_from_there(tmp_path: Path) -> None:
    root = _lay(
        tmp_path / "specs",
        {
            "api/main.json": _referring("../parts/parameters.json#/page"),
            "parts/parameters.json": {
                "page": {
                    "name": "page",
                    "in": "query",
                    "schema": {"$ref": "schemas/number.json"},
                }
            },
            "parts/schemas/number.json": {"type": "integer", "default": 1},
        },
    )
    reading = read_catalog(root)
    (api,) = reading.catalog.apis
    assert [(p.name, p.type, p.default) for p in api.optional] == [("page", "NUMBER", 1)]
    assert {one.path: one.kind for one in reading.files} == {
        "api/main.json": "openapi",
        "parts/parameters.json": "fragment",
        "parts/schemas/number.json": "fragment",
    }
    assert not [refusal for one in reading.files for refusal in one.refused]


def test_a_single_file_reads_its_neighbours_but_never_leaves_its_folder(tmp_path: Path) -> None:
    secret = {"name": "secret", "in": "query"}
    root = _lay(
        tmp_path,
        {
            "secret.json": secret,
            "specs/near.json": {"name": "near", "in": "query"},
            "specs/good.json": _referring("near.json"),
            "specs/bad.json": _referring("../secret.json"),
            "specs/linked.json": _referring("link.json"),
        },
    )
    (root / "specs/link.json").symlink_to(root / "secret.json")
    assert _parameters(read_catalog(root / "specs/good.json")) == ["near"]
    for name in ("bad", "linked"):
        reading = read_catalog(root / f"specs/{name}.json")
        assert _parameters(reading) == []
        reasons = [one.reason for file in reading.files for one in file.refused]
        assert len(reasons) == 1
        assert "leads to nothing" in reasons[0]


def test_files_that_are_neither_tools_nor_documents_are_refused(tmp_path: Path) -> None:
    root = _lay(
        tmp_path,
        {
            "good.json": document({"operationId": "good"}),
            "swagger.json": {"swagger": "1.2", "paths": {}},
            "old.json": {"openapi": "2.9", "paths": {}},
            "list.json": [1, 2],
            "odd.json": {"a": 1},
        },
    )
    (root / "broken.yaml").write_text("a: [1, 2")
    reading = read_catalog(root)
    assert [api.name for api in reading.catalog.apis] == ["good"]
    refused = {one.path: one.refused[0].reason for one in reading.files if one.refused}
    assert "Swagger 2.0" in refused["swagger.json"]
    assert "3.0 to 3.2" in refused["old.json"]
    assert "neither" in refused["list.json"]
    assert "neither" in refused["odd.json"]
    assert "no YAML" in refused["broken.yaml"]


# --- YAML ----------------------------------------------------------------------------------------


def test_yaml_reads_as_json_would_have_it() -> None:
    text = "a: &x {b: 1, c: no, 200: 2020-01-01}\nd: {<<: *x, b: 3}\ne: [*x, ~, 1.5, 0x1f, '1']"
    assert yaml_text.load(text) == {
        "a": {"b": 1, "c": "no", "200": "2020-01-01"},
        "d": {"b": 3, "c": "no", "200": "2020-01-01"},
        "e": [{"b": 1, "c": "no", "200": "2020-01-01"}, None, 1.5, 31, "1"],
    }


def _bomb(head: str, row: str) -> str:
    return head + "".join(
        row.format(name=chr(98 + n), inner=",".join(["*" + chr(97 + n)] * 9)) for n in range(12)
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (_bomb("a: &a [l,l,l,l]\n", "{name}: &{name} [{inner}]\n"), "expand"),
        (_bomb("a: &a {{x: 1}}\n".format(), "{name}: &{name} {{<<: [{inner}]}}\n"), "expand"),
        ("[" * 5000, "nested deeper than 100"),
        ("- " * 5000, "nested deeper than 100"),
        ("[" * 101 + "]" * 101, "nested deeper than 100"),
        ("a: &a [*a]", "nothing yet"),
        ("a: *b", "nothing yet"),
        ("? [a]\n: b", "key"),
        ("!!python/object/apply:os.system ['true']: 1\nb: [", "key"),
        ("a: b: c", "mapping"),
        ("\t- a", "token"),
    ],
)
def test_yaml_that_does_harm_is_a_value_error(text: str, reason: str) -> None:
    started = time.perf_counter()
    with pytest.raises(ValueError, match=reason):
        yaml_text.load(text)
    assert time.perf_counter() - started < 5


def test_yaml_tags_are_not_obeyed() -> None:
    text = "a: !!python/object/apply:os.system ['exit 1']\nb: !!python/name:os.system x"
    assert yaml_text.load(text) == {"a": ["exit 1"], "b": "x"}


_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**9), 10**9)
    | st.floats(allow_nan=False, allow_infinity=False, min_value=-1e9, max_value=1e9)
    | st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=12),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text(st.characters(codec="ascii", min_codepoint=32)), inner, max_size=4
        )
    ),
    max_leaves=15,
)


@given(_JSON)
def test_json_values_survive_yaml(value: Any) -> None:
    # "0E0" is text to the writer (YAML 1.1) and a number to the reader (1.2).
    assume(not re.search(r"\d[eE][-+]?\d", str(value)))
    assert yaml_text.load(yaml.safe_dump(value, allow_unicode=True)) == value or "<<" in str(value)


def test_a_key_that_stands_twice_is_told(tmp_path: Path) -> None:
    text = "openapi: 3.0.3\ninfo: {title: T}\nservers: [{url: https://t.example}]\npaths:\n"
    text += "  /a: {get: {operationId: one}}\n  /a: &a {post: {operationId: two}}\n"
    text += "  /b: {<<: *a, post: {operationId: three}}\n"
    (tmp_path / "a.yaml").write_text(text)
    reading = read_catalog(tmp_path / "a.yaml")
    assert [api.name for api in reading.catalog.apis] == ["two", "three"]
    (note,) = reading.files[0].notes
    assert note == "'/a' stands twice in one mapping; the last one counts"
